//===- Gpt2.cpp - GPT-2 ---------------------------------------------------------===//
//
// Learned positions, layer norm before each block, one fused projection of query, key and value, matrices as
// Conv1D stores them, a head that shares the token table.
//
//===---------------------------------------------------------------------------===//

#include "Architecture.h"

#include <cmath>

using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

namespace {
class Gpt2 : public Architecture {
public:
  explicit Gpt2(const Section &config);
  Value forward(Graph &g, Value ids, Value labels) const override;
  ::ds::Result<::ds::cost::ModelShape> sizes() const override;

private:
  Value block(Graph &g, Value x, int64_t index) const;
  Value attend(Graph &g, Value x, int64_t index) const;

  std::string activation;
  double embeddingDropout, residualDropout, attentionDropout, epsilon, deviation;
  bool scales, scalesByLayer;
};
} // namespace

Gpt2::Gpt2(const Section &config) {
  vocabulary.size = config.integer("vocab_size", kVocabularies);
  positions = config.integer("n_positions|max_position_embeddings", kPositions);
  hidden = config.integer("n_embd|hidden_size", kWidths);
  layers = config.integer("n_layer|num_hidden_layers", kLayers);
  heads = config.integer("n_head|num_attention_heads", kHeads);
  inner = config.integer("n_inner", kInnerWidths, std::min(4 * hidden, kInnerWidths.max));
  size = headSize(config, hidden, heads, "n_embd|hidden_size", "n_head|num_attention_heads");
  activation = readActivation(config, "activation_function", "gelu_new");
  residualDropout = config.number("resid_pdrop", kProbabilities, 0.1);
  embeddingDropout = config.number("embd_pdrop", kProbabilities, 0.1);
  attentionDropout = config.number("attn_pdrop", kProbabilities, 0.1);
  epsilon = config.number("layer_norm_epsilon", kEpsilons, 1e-5);
  deviation = config.number("initializer_range", kDeviations, 0.02);
  scales = config.flag("scale_attn_weights", true);
  scalesByLayer = config.flag("scale_attn_by_inverse_layer_idx", false);
  vocabulary.tied = config.flag("tie_word_embeddings", true);
  refuseTrue(config, "add_cross_attention", "models with an encoder are not supported");
  widest = std::max(3 * hidden, inner);
  scoreHeads = attentionDropout > 0 ? heads : 0;
  basePrefix = "transformer.";
}

Value Gpt2::attend(Graph &g, Value x, int64_t index) const {
  Scope scope(g, "attn");
  // The causal mask of old checkpoints, and the fill of its hidden scores.
  g.ignoreWeight("bias");
  g.ignoreWeight("masked_bias");
  Value joined = conv1d(g, "c_attn", x, 3 * hidden, deviation);
  Emitter e = g.ops();
  auto split = e.getBuilder().create<SplitOp>(e.getLoc(), mlir::SmallVector<mlir::Type>(3, x.getType()),
                                              joined, e.getBuilder().getI64IntegerAttr(2));
  AttentionOptions options;
  options.scale = scales ? 1 / std::sqrt(static_cast<double>(size)) : 1;
  options.scale /= scalesByLayer ? static_cast<double>(index + 1) : 1;
  options.dropout = attentionDropout;
  Value mixed = attention(g, splitHeads(g, split.getResult(0), size), splitHeads(g, split.getResult(1), size),
                          splitHeads(g, split.getResult(2), size), options);
  // What writes into the residual stream starts smaller, by the number of such layers.
  double small = deviation / std::sqrt(2.0 * static_cast<double>(layers));
  return g.dropout(conv1d(g, "c_proj", joinHeads(g, mixed), hidden, small), residualDropout);
}

Value Gpt2::block(Graph &g, Value x, int64_t index) const {
  Scope scope(g, "transformer.h." + std::to_string(index));
  Value attended = attend(g, layerNorm(g, "ln_1", x, epsilon), index);
  x = g.ops().add(attended, x);
  Value normal = layerNorm(g, "ln_2", x, epsilon), expanded;
  {
    Scope mlp(g, "mlp");
    expanded = activate(g, activation, conv1d(g, "c_fc", normal, inner, deviation));
    double small = deviation / std::sqrt(2.0 * static_cast<double>(layers));
    expanded = g.dropout(conv1d(g, "c_proj", expanded, hidden, small), residualDropout);
  }
  return g.ops().add(x, expanded);
}

Value Gpt2::forward(Graph &g, Value ids, Value labels) const {
  Value x = embedding(g, "transformer.wte", ids, vocabulary.size, hidden, deviation);
  {
    Scope scope(g, "transformer");
    x = addPositions(g, "wpe", x, positions, deviation);
    x = g.dropout(x, embeddingDropout);
  }
  for (int64_t index = 0; index < layers; ++index)
    x = block(g, x, index);
  x = layerNorm(g, "transformer.ln_f", x, epsilon);
  return languageLoss(g, {"lm_head", "transformer.wte", vocabulary.tied}, x, labels, vocabulary.size,
                      deviation);
}

::ds::Result<::ds::cost::ModelShape> Gpt2::sizes() const {
  ::ds::cost::ModelShape shape = commonShape();
  shape.positions = positions;
  shape.dropout = std::max({embeddingDropout, residualDropout, attentionDropout}) > 0;
  return shape;
}

std::unique_ptr<Architecture> hf::readGpt2(const Section &config) { return std::make_unique<Gpt2>(config); }
