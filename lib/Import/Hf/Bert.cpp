//===- Bert.cpp - BERT as a masked language model -------------------------------===//
//
// Attention in both directions, layer norm after each block. Every sample is one segment (token type 0) and
// fills the whole length; positions whose label is -100 do not count in the loss.
//
//===---------------------------------------------------------------------------===//

#include "Architecture.h"

#include <cmath>

using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

namespace {
class Bert : public Architecture {
public:
  explicit Bert(const Section &config);
  Value forward(Graph &g, Value ids, Value labels) const override;

private:
  Value embed(Graph &g, Value ids) const;
  Value attend(Graph &g, Value x) const;
  Value block(Graph &g, Value x) const;
  Value norm(Graph &g, Value x) const;
  Value predict(Graph &g, Value x) const;

  int64_t segments;
  std::string activation;
  double hiddenDropout, attentionDropout, epsilon, deviation;
};
} // namespace

Bert::Bert(const Section &config) {
  readSizes(config);
  readPadding(config, 0);
  heads = config.integer("num_attention_heads", kHeads);
  segments = config.integer("type_vocab_size", {1, 65536}, 2);
  size = headSize(config, hidden, heads, "hidden_size", "num_attention_heads");
  activation = readActivation(config, "hidden_act", "gelu");
  hiddenDropout = config.number("hidden_dropout_prob", kProbabilities, 0.1);
  attentionDropout = config.number("attention_probs_dropout_prob", kProbabilities, 0.1);
  epsilon = config.number("layer_norm_eps", kEpsilons, 1e-12);
  deviation = config.number("initializer_range", kDeviations, 0.02);
  vocabulary.tied = config.flag("tie_word_embeddings", true);
  refuseTrue(config, "is_decoder", "only the masked language model is supported");
  refuseTrue(config, "add_cross_attention", "models with an encoder are not supported");
  if (config.has("position_embedding_type") && config.text("position_embedding_type") != "absolute")
    config.refuse("position_embedding_type",
                  "expects absolute, but got " + config.describe("position_embedding_type"));
  widest = std::max(3 * hidden, inner);
  scoreHeads = attentionDropout > 0 ? heads : 0;
  basePrefix = "bert.";
}

/// Layer norm of the current layer; old checkpoints call its parameters gamma and beta.
Value Bert::norm(Graph &g, Value x) const {
  Value result = layerNorm(g, "LayerNorm", x, epsilon);
  std::string path = g.layer() + ".LayerNorm";
  g.addReadName(path + ".weight", path + ".gamma");
  g.addReadName(path + ".bias", path + ".beta");
  return result;
}

Value Bert::embed(Graph &g, Value ids) const {
  Scope scope(g, "bert.embeddings");
  g.ignoreWeight("position_ids");
  Value words = embedding(g, "word_embeddings", ids, vocabulary.size, hidden, deviation, vocabulary.padding);
  Value table;
  {
    Scope types(g, "token_type_embeddings");
    table = g.parameter("weight", {segments, hidden}, Init::normal(deviation));
  }
  Emitter e = g.ops();
  mlir::RankedTensorType row = tensorType(table).clone({1, hidden});
  Value segment = e.getBuilder().create<SliceOp>(e.getLoc(), row, table, llvm::ArrayRef<int64_t>{0, 0},
                                                 llvm::ArrayRef<int64_t>{1, 1});
  Value x = e.add(words, e.repeatRows(e.reshape(segment, {hidden}), tensorType(words).getShape()));
  return g.dropout(norm(g, addPositions(g, "position_embeddings", x, positions, deviation)), hiddenDropout);
}

Value Bert::attend(Graph &g, Value x) const {
  Scope scope(g, "attention");
  Value mixed;
  {
    Scope self(g, "self");
    Value q = splitHeads(g, linear(g, "query", x, hidden, /*bias=*/true, deviation), size);
    Value k = splitHeads(g, linear(g, "key", x, hidden, /*bias=*/true, deviation), size);
    Value v = splitHeads(g, linear(g, "value", x, hidden, /*bias=*/true, deviation), size);
    AttentionOptions options;
    options.scale = 1 / std::sqrt(static_cast<double>(size));
    options.causal = false;
    options.dropout = attentionDropout;
    mixed = joinHeads(g, attention(g, q, k, v, options));
  }
  Scope output(g, "output");
  Value projected = g.dropout(linear(g, "dense", mixed, hidden, /*bias=*/true, deviation), hiddenDropout);
  return norm(g, g.ops().add(projected, x));
}

Value Bert::block(Graph &g, Value x) const {
  x = attend(g, x);
  Value expanded;
  {
    Scope intermediate(g, "intermediate");
    expanded = activate(g, activation, linear(g, "dense", x, inner, /*bias=*/true, deviation));
  }
  Scope output(g, "output");
  Value projected = g.dropout(linear(g, "dense", expanded, hidden, /*bias=*/true, deviation), hiddenDropout);
  return norm(g, g.ops().add(projected, x));
}

/// The logits.
Value Bert::predict(Graph &g, Value x) const {
  Scope scope(g, "cls.predictions");
  {
    Scope transform(g, "transform");
    x = norm(g, activate(g, activation, linear(g, "dense", x, hidden, /*bias=*/true, deviation)));
  }
  Value bias = g.parameter("bias", {vocabulary.size}, Init::zeros());
  g.tie("cls.predictions.bias", "cls.predictions.decoder.bias");
  Value table;
  {
    Scope decoder(g, "decoder");
    if (!vocabulary.tied)
      table = g.parameter("weight", {vocabulary.size, hidden}, Init::normal(deviation));
  }
  if (vocabulary.tied) {
    g.tie("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight");
    table = g.existing("bert.embeddings.word_embeddings.weight");
  }
  return project(g, x, table, bias);
}

Value Bert::forward(Graph &g, Value ids, Value labels) const {
  // What checkpoints of the pretraining model have besides.
  for (const char *name : {"bert.pooler.dense.weight", "bert.pooler.dense.bias",
                           "cls.seq_relationship.weight", "cls.seq_relationship.bias"})
    g.ignoreWeight(name);
  Value x = embed(g, ids);
  for (int64_t index = 0; index < layers; ++index) {
    Scope scope(g, "bert.encoder.layer." + std::to_string(index));
    x = block(g, x);
  }
  return tokenLoss(g, predict(g, x), labels);
}

std::unique_ptr<Architecture> hf::readBert(const Section &config) { return std::make_unique<Bert>(config); }
