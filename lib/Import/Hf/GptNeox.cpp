//===- GptNeox.cpp - GPT-NeoX and Pythia ----------------------------------------===//
//
// Attention and feed-forward read the same input and are added at once (unless use_parallel_residual is off);
// a quarter of each head is rotated; query, key and value of one head lie side by side in one projection.
//
//===---------------------------------------------------------------------------===//

#include "Architecture.h"
#include "Rotary.h"

#include <cmath>

using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

namespace {
class GptNeox : public Architecture {
public:
  explicit GptNeox(const Section &config);
  Value forward(Graph &g, Value ids, Value labels) const override;
  ::ds::Result<::ds::cost::ModelShape> sizes() const override;

private:
  Value block(Graph &g, Value x, const RotaryTables &tables) const;
  Value attend(Graph &g, Value x, const RotaryTables &tables) const;
  Value feedForward(Graph &g, Value x) const;

  std::string activation;
  double hiddenDropout, attentionDropout, epsilon, deviation;
  bool parallel, attentionBias;
  Rotary rotary;
};
} // namespace

GptNeox::GptNeox(const Section &config) {
  readSizes(config);
  heads = config.integer("num_attention_heads", kHeads);
  size = headSize(config, hidden, heads, "hidden_size", "num_attention_heads");
  activation = readActivation(config, "hidden_act", "gelu");
  hiddenDropout = config.number("hidden_dropout", kProbabilities, 0);
  attentionDropout = config.number("attention_dropout", kProbabilities, 0);
  epsilon = config.number("layer_norm_eps", kEpsilons, 1e-5);
  deviation = config.number("initializer_range", kDeviations, 0.02);
  parallel = config.flag("use_parallel_residual", true);
  attentionBias = config.flag("attention_bias", true);
  vocabulary.tied = config.flag("tie_word_embeddings", false);
  RotaryKeys keys;
  keys.theta = "rotary_emb_base|rope_theta";
  keys.share = "rotary_pct|partial_rotary_factor";
  keys.defaultShare = 0.25;
  keys.allowsPartial = true;
  keys.positions = positions;
  rotary = readRotary(config, size, keys);
  widest = std::max(3 * hidden, inner);
  scoreHeads = attentionDropout > 0 ? heads : 0;
  basePrefix = "gpt_neox.";
}

Value GptNeox::attend(Graph &g, Value x, const RotaryTables &tables) const {
  Scope scope(g, "attention");
  for (const char *name : {"bias", "masked_bias", "rotary_emb.inv_freq"})
    g.ignoreWeight(name);
  // [B, T, H, 3 D]: query, key and value of one head after the other.
  Value joined =
      splitHeads(g, linear(g, "query_key_value", x, 3 * hidden, attentionBias, deviation), 3 * size);
  Emitter e = g.ops();
  mlir::SmallVector<int64_t> shape(tensorType(joined).getShape());
  shape.back() = size;
  auto split = e.getBuilder().create<SplitOp>(
      e.getLoc(), mlir::SmallVector<mlir::Type>(3, tensorType(joined).clone(shape)), joined,
      e.getBuilder().getI64IntegerAttr(3));
  AttentionOptions options;
  options.scale = 1 / std::sqrt(static_cast<double>(size));
  options.dropout = attentionDropout;
  Value mixed = attention(g, rotate(g, split.getResult(0), tables), rotate(g, split.getResult(1), tables),
                          split.getResult(2), options);
  return linear(g, "dense", joinHeads(g, mixed), hidden, attentionBias, deviation);
}

Value GptNeox::feedForward(Graph &g, Value x) const {
  Scope scope(g, "mlp");
  Value expanded = activate(g, activation, linear(g, "dense_h_to_4h", x, inner, /*bias=*/true, deviation));
  return linear(g, "dense_4h_to_h", expanded, hidden, /*bias=*/true, deviation);
}

Value GptNeox::block(Graph &g, Value x, const RotaryTables &tables) const {
  Value attended = g.dropout(attend(g, layerNorm(g, "input_layernorm", x, epsilon), tables), hiddenDropout);
  Value middle = parallel ? x : g.ops().add(attended, x);
  Value fed =
      g.dropout(feedForward(g, layerNorm(g, "post_attention_layernorm", middle, epsilon)), hiddenDropout);
  Emitter e = g.ops();
  return parallel ? e.add(e.add(fed, attended), x) : e.add(fed, middle);
}

Value GptNeox::forward(Graph &g, Value ids, Value labels) const {
  Value x = embedding(g, "gpt_neox.embed_in", ids, vocabulary.size, hidden, deviation);
  RotaryTables tables;
  {
    Scope scope(g, "gpt_neox.rotary_emb");
    x = g.dropout(x, hiddenDropout);
    tables = makeTables(g, rotary, tensorType(ids).getDimSize(1));
  }
  for (int64_t index = 0; index < layers; ++index) {
    Scope scope(g, "gpt_neox.layers." + std::to_string(index));
    x = block(g, x, tables);
  }
  x = layerNorm(g, "gpt_neox.final_layer_norm", x, epsilon);
  return languageLoss(g, {"embed_out", "gpt_neox.embed_in", vocabulary.tied}, x, labels, vocabulary.size,
                      deviation);
}

::ds::Result<::ds::cost::ModelShape> GptNeox::sizes() const {
  ::ds::cost::ModelShape shape = commonShape();
  shape.biases = attentionBias;
  shape.moreLayerParameters = attentionBias ? 0 : inner + hidden; // of the feed-forward
  shape.learnedPositions = false;
  shape.dropout = std::max(hiddenDropout, attentionDropout) > 0;
  return shape;
}

std::unique_ptr<Architecture> hf::readGptNeox(const Section &config) {
  return std::make_unique<GptNeox>(config);
}
