//===- ModernBert.cpp - ModernBERT as a masked language model -------------------===//
//
// An encoder with the parts of today's decoders (arXiv 2412.13663): rotary positions, gated feed-forwards,
// norms before each half of a layer, and windows to both sides in all layers but every third.
//
//===---------------------------------------------------------------------------===//

#include "../Architecture.h"
#include "../Rotary.h"

#include <cmath>

using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

namespace {
class ModernBert : public Architecture {
public:
  explicit ModernBert(const Section &config);
  Value forward(Graph &g, Value ids, Value labels) const override;

private:
  /// What a layer's attention sees.
  enum class Reach : uint8_t { Near, All };
  /// Parameters that not every model has.
  struct Biases {
    bool attention = false, mlp = false, classifier = false, decoder = true;
  };
  struct Dropouts {
    double embedding = 0, attention = 0, mlp = 0;
  };

  void readReach(const Section &config);
  Value attend(Graph &g, Value x, Reach reach, const RotaryTables &tables) const;
  Value feedForward(Graph &g, Value x) const;
  Value predict(Graph &g, Value x) const;

  Rotary rotaries[2];       ///< by Reach
  std::vector<Reach> reach; ///< by layer
  int64_t window = 1;       ///< positions seen to either side, the own one included
  Biases biases;
  Dropouts dropouts;
  Norm norms;
  std::string activation, headActivation;
  double deviation = 0.02;
};
} // namespace

void ModernBert::readReach(const Section &config) {
  window = config.integer("local_attention", kPositions, 128) / 2 + 1;
  const int64_t period = config.integer("global_attn_every_n_layers", kLayers, 3);
  for (int64_t index = 0; index < layers; ++index)
    reach.push_back(index % period == 0 ? Reach::All : Reach::Near);
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty() && static_cast<int64_t>(types.size()) != layers)
    config.refuse("layer_types", "expects one entry for each of " + std::to_string(layers) +
                                     " layers, but got " + std::to_string(types.size()));
  for (size_t index = 0; index < std::min(types.size(), reach.size()); ++index) {
    if (types[index] != "full_attention" && types[index] != "sliding_attention")
      config.refuse("layer_types",
                    "expects full_attention or sliding_attention, but got '" + types[index] + "'");
    const Reach told = types[index] == "full_attention" ? Reach::All : Reach::Near;
    if (told != reach[index] && config.has("global_attn_every_n_layers"))
      config.refuse("layer_types", "contradicts global_attn_every_n_layers, which is " +
                                       std::to_string(period) + ", in layer " + std::to_string(index));
    reach[index] = told;
  }
  RotaryKeys keys;
  keys.positions = positions;
  keys.theta = "global_rope_theta";
  keys.defaultTheta = 160000;
  keys.partOfParameters = "full_attention";
  rotaries[static_cast<size_t>(Reach::All)] = readRotary(config, size, keys);
  keys.theta = "local_rope_theta";
  keys.defaultTheta = 10000;
  keys.partOfParameters = "sliding_attention";
  rotaries[static_cast<size_t>(Reach::Near)] = readRotary(config, size, keys);
}

ModernBert::ModernBert(const Section &config) {
  readSizes(config);
  constexpr int64_t kPadding = 50283; // of the published vocabulary
  vocabulary.padding = readPadding(config, vocabulary.size,
                                   vocabulary.size > kPadding ? std::optional(kPadding) : std::nullopt);
  heads = config.integer("num_attention_heads", kHeads);
  size = headSize(config, hidden, heads, "hidden_size", "num_attention_heads");
  readReach(config);
  biases.attention = config.flag("attention_bias", false);
  biases.mlp = config.flag("mlp_bias", false);
  biases.classifier = config.flag("classifier_bias", false);
  biases.decoder = config.flag("decoder_bias", true);
  dropouts.embedding = config.number("embedding_dropout", kProbabilities, 0);
  dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  dropouts.mlp = config.number("mlp_dropout", kProbabilities, 0);
  norms.kind = config.flag("norm_bias", false) ? NormKind::Layer : NormKind::LayerNoBias;
  norms.epsilon = config.number("norm_eps", kEpsilons, 1e-5);
  activation = readActivation(config, "hidden_activation", "gelu");
  headActivation = readActivation(config, "classifier_activation", "gelu");
  deviation = config.number("initializer_range", kDeviations, 0.02);
  vocabulary.tied = config.flag("tie_word_embeddings", true);
  refuseTrue(config, "sparse_prediction", "the logits of all positions are made");
  widest = std::max(3 * hidden, 2 * inner);
  weights.areDropped = dropouts.attention > 0;
  basePrefix = "model.";
}

Value ModernBert::attend(Graph &g, Value x, Reach seen, const RotaryTables &tables) const {
  Scope scope(g, "attn");
  llvm::SmallVector<Value> qkv =
      cutColumns(g, linear(g, "Wqkv", x, 3 * hidden, biases.attention, deviation), {hidden, hidden, hidden});
  for (Value &part : qkv)
    part = splitHeads(g, part, size);
  AttentionOptions options;
  options.scale = 1 / std::sqrt(static_cast<double>(size));
  options.causal = false;
  options.window = seen == Reach::Near ? window : 0;
  options.dropout = dropouts.attention;
  Value mixed = attention(g, rotate(g, qkv[0], tables), rotate(g, qkv[1], tables), qkv[2], options);
  Value made = linear(g, "Wo", joinHeads(g, mixed), hidden, biases.attention, deviation);
  return g.dropout(made, dropouts.attention);
}

Value ModernBert::feedForward(Graph &g, Value x) const {
  Scope scope(g, "mlp");
  llvm::SmallVector<Value> halves =
      cutColumns(g, linear(g, "Wi", x, 2 * inner, biases.mlp, deviation), {inner, inner});
  Value gated = g.ops().mul(activate(g, activation, halves[0]), halves[1]);
  return linear(g, "Wo", g.dropout(gated, dropouts.mlp), hidden, biases.mlp, deviation);
}

/// The logits.
Value ModernBert::predict(Graph &g, Value x) const {
  const std::string table = "model.embeddings.tok_embeddings.weight";
  {
    Scope scope(g, "head");
    x = activate(g, headActivation, linear(g, "dense", x, hidden, biases.classifier, deviation));
    x = norm(g, "norm", x, norms);
  }
  Scope scope(g, "decoder");
  Value bias = biases.decoder ? g.parameter("bias", {vocabulary.size}, Init::zeros()) : Value();
  if (!vocabulary.tied)
    return project(g, x, g.parameter("weight", {vocabulary.size, hidden}, Init::normal(deviation)), bias);
  g.tie(table, "decoder.weight");
  return project(g, x, g.existing(table), bias);
}

Value ModernBert::forward(Graph &g, Value ids, Value labels) const {
  Value x;
  {
    Scope scope(g, "model.embeddings");
    x = embedding(g, "tok_embeddings", ids, vocabulary.size, hidden, deviation, vocabulary.padding);
    x = g.dropout(norm(g, "norm", x, norms), dropouts.embedding);
  }
  RotaryTables tables[2];
  for (size_t kind = 0; kind < 2; ++kind) {
    Scope scope(g, "model.rotary_emb");
    tables[kind] = makeTables(g, rotaries[kind], tensorType(ids).getDimSize(1));
  }
  for (int64_t index = 0; index < layers; ++index) {
    Scope scope(g, "model.layers." + std::to_string(index));
    const Reach seen = reach[static_cast<size_t>(index)];
    Value normed = index == 0 ? x : norm(g, "attn_norm", x, norms); // the embedding's norm is the first one's
    x = g.ops().add(x, attend(g, normed, seen, tables[static_cast<size_t>(seen)]));
    x = g.ops().add(x, feedForward(g, norm(g, "mlp_norm", x, norms)));
  }
  return tokenLoss(g, predict(g, norm(g, "model.final_norm", x, norms)), labels);
}

std::unique_ptr<Architecture> hf::readModernBert(const Section &config) {
  return std::make_unique<ModernBert>(config);
}
