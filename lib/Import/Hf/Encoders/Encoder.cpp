//===- Encoder.cpp - Masked language models with a norm after each block --------===//

#include "Encoder.h"
#include "Within.h"

#include <cmath>

using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

void Encoder::readKeys(const Section &config, std::optional<int64_t> padding) {
  readSizes(config);
  vocabulary.padding = hf::readPadding(config, vocabulary.size, padding);
  heads = config.integer("num_attention_heads", kHeads);
  size = headSize(config, hidden, heads, "hidden_size", "num_attention_heads");
  keys.segments = config.integer("type_vocab_size", {1, 65536}, 2);
  keys.activation = readActivation(config, "hidden_act", "gelu");
  keys.hiddenDropout = config.number("hidden_dropout_prob", kProbabilities, 0.1);
  keys.attentionDropout = config.number("attention_probs_dropout_prob", kProbabilities, 0.1);
  keys.epsilon = config.number("layer_norm_eps", kEpsilons, 1e-12);
  keys.deviation = config.number("initializer_range", kDeviations, 0.02);
  vocabulary.tied = config.flag("tie_word_embeddings", true);
  if (config.has("position_embedding_type") && config.text("position_embedding_type") != "absolute")
    config.refuse("position_embedding_type",
                  "expects absolute, but got " + config.describe("position_embedding_type"));
}

void Encoder::refuseOtherModels(const Section &config) const {
  refuseTrue(config, "is_decoder", "only the masked language model is supported");
  refuseTrue(config, "add_cross_attention", "models with an encoder are not supported");
}

void Encoder::finish() {
  if (keys.embeddingWidth == 0)
    keys.embeddingWidth = hidden;
  if (keys.headActivation.empty())
    keys.headActivation = keys.activation;
  widest = std::max({3 * hidden, inner, keys.embeddingWidth});
  weights.areDropped = keys.attentionDropout > 0;
  basePrefix = names.base.str() + ".";
}

Value Encoder::norm(Graph &g, llvm::StringRef name, Value x) const {
  Value result = layerNorm(g, name, x, keys.epsilon);
  if (!hasOldNorms)
    return result;
  std::string path = g.layer() + "." + name.str();
  g.addReadName(path + ".weight", path + ".gamma");
  g.addReadName(path + ".bias", path + ".beta");
  return result;
}

Value Encoder::embed(Graph &g, Value ids) const {
  Scope scope(g, names.base.str() + ".embeddings");
  g.ignoreWeight("position_ids");
  const int64_t columns = keys.embeddingWidth;
  Value x =
      embedding(g, "word_embeddings", ids, vocabulary.size, columns, keys.deviation, vocabulary.padding);
  if (keys.segments > 0) {
    Value table;
    {
      Scope types(g, "token_type_embeddings");
      table = g.parameter("weight", {keys.segments, columns}, Init::normal(keys.deviation));
    }
    Emitter e = g.ops();
    auto row = tensorType(table).clone({1, columns});
    Value segment = e.getBuilder().create<SliceOp>(e.getLoc(), row, table, llvm::ArrayRef<int64_t>{0, 0},
                                                   llvm::ArrayRef<int64_t>{1, 1});
    x = e.add(x, e.repeatRows(e.reshape(segment, {columns}), tensorType(x).getShape()));
  }
  x = addPositions(g, "position_embeddings", x, positions + keys.firstPosition, keys.deviation,
                   keys.firstPosition);
  return g.dropout(norm(g, "LayerNorm", x), keys.hiddenDropout);
}

Value Encoder::addBlock(Graph &g, llvm::StringRef dense, llvm::StringRef normName, Value y, Value x) const {
  Value projected;
  {
    Within layer(g, dense);
    projected =
        g.dropout(linear(g, layer.leaf(), y, hidden, /*bias=*/true, keys.deviation), keys.hiddenDropout);
  }
  Within layer(g, normName);
  return norm(g, layer.leaf(), g.ops().add(projected, x));
}

Value Encoder::attend(Graph &g, Value x) const {
  Scope scope(g, names.attention);
  const auto project = [&](llvm::StringRef name) {
    return splitHeads(g, linear(g, name, x, hidden, /*bias=*/true, keys.deviation), size);
  };
  Value q = project(names.query), k = project(names.key), v = project(names.value);
  AttentionOptions options;
  options.scale = 1 / std::sqrt(static_cast<double>(size));
  options.causal = false;
  options.dropout = keys.attentionDropout;
  return joinHeads(g, attention(g, q, k, v, options));
}

Value Encoder::block(Graph &g, Value x) const {
  x = addBlock(g, names.output, names.attentionNorm, attend(g, x), x);
  Value expanded;
  {
    Within layer(g, names.expand);
    expanded = activate(g, keys.activation, linear(g, layer.leaf(), x, inner, /*bias=*/true, keys.deviation));
  }
  return addBlock(g, names.contract, names.outputNorm, expanded, x);
}

/// The logits.
Value Encoder::predict(Graph &g, Value x) const {
  {
    Within layer(g, names.head.dense);
    x = activate(g, keys.headActivation,
                 linear(g, layer.leaf(), x, keys.embeddingWidth, /*bias=*/true, keys.deviation));
  }
  {
    Within layer(g, names.head.norm);
    x = norm(g, layer.leaf(), x);
  }
  Within layer(g, names.head.bias);
  Value bias = g.parameter(layer.leaf(), {vocabulary.size}, Init::zeros());
  if (!names.head.biasAlias.empty())
    g.tie(names.head.bias, names.head.biasAlias);
  const std::string table = names.base.str() + ".embeddings.word_embeddings.weight";
  const std::string matrix = names.head.decoder.str() + ".weight";
  if (vocabulary.tied) {
    g.tie(table, matrix);
    return project(g, x, g.existing(table), bias);
  }
  Within decoder(g, llvm::StringRef(matrix).drop_front(g.layer().empty() ? 0 : g.layer().size() + 1));
  return project(
      g, x, g.parameter(decoder.leaf(), {vocabulary.size, keys.embeddingWidth}, Init::normal(keys.deviation)),
      bias);
}

Value Encoder::forward(Graph &g, Value ids, Value labels) const {
  for (llvm::StringRef name : unused)
    g.ignoreWeight(name);
  Value x = embed(g, ids);
  const std::string base = names.base.str() + ".";
  if (keys.embeddingWidth != hidden)
    x = linear(g, base + "embeddings_project", x, hidden, /*bias=*/true, keys.deviation);
  for (int64_t index = 0; index < layers; ++index) {
    Scope scope(g, base + names.layers.str() + "." + std::to_string(index));
    x = block(g, x);
  }
  return tokenLoss(g, predict(g, x), labels);
}
