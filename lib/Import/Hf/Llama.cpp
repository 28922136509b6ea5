//===- Llama.cpp - Llama, Mistral and Qwen2 -------------------------------------===//
//
// RMS norm before each block, rotary positions, fewer key heads than query heads, a gated feed-forward. The
// three differ in which biases exist, in the defaults of their keys, and in sliding windows.
//
//===---------------------------------------------------------------------------===//

#include "Architecture.h"
#include "Rotary.h"

#include <cmath>

using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

namespace {
class Llama : public Architecture {
public:
  enum class Kind { Llama, Mistral, Qwen2 };
  Llama(const Section &config, Kind kind);
  Value forward(Graph &g, Value ids, Value labels) const override;
  ::ds::Result<::ds::cost::ModelShape> sizes() const override;

private:
  void readHeads(const Section &config, Kind kind);
  void readWindows(const Section &config, Kind kind);
  Value attend(Graph &g, Value x, const RotaryTables &tables, int64_t window) const;
  Value feedForward(Graph &g, Value x) const;

  int64_t groups;
  std::string activation;
  double dropout, epsilon, deviation;
  bool queryBias, outputBias, innerBias;
  Rotary rotary;
  std::vector<int64_t> windows; ///< by layer; 0: none
};
} // namespace

void Llama::readHeads(const Section &config, Kind kind) {
  heads = config.integer("num_attention_heads", kHeads);
  int64_t fallback = kind == Kind::Mistral ? 8 : heads;
  groups = config.integer("num_key_value_heads", kHeads, fallback);
  if (heads % groups != 0)
    config.refuse("num_key_value_heads", "expects a divisor of num_attention_heads, which is " +
                                             std::to_string(heads) + ", but got " + std::to_string(groups));
  std::optional<int64_t> given = config.optional("head_dim", kHeads);
  size = given ? *given : headSize(config, hidden, heads, "hidden_size", "num_attention_heads");
  if (heads * size > kInnerWidths.max)
    config.refuse("head_dim", "expects heads of at most " + std::to_string(kInnerWidths.max) +
                                  " elements together, but got " + std::to_string(heads) + " times " +
                                  std::to_string(size));
}

void Llama::readWindows(const Section &config, Kind kind) {
  windows.assign(layers, 0);
  if (kind == Kind::Llama)
    return;
  bool uses = kind == Kind::Mistral || config.flag("use_sliding_window", false);
  // The class's default, where the key is missing; null means none.
  bool isThere = config.mentions("sliding_window");
  int64_t window = config.integer("sliding_window", kPositions, isThere ? 0 : 4096);
  int64_t first = kind == Kind::Qwen2 ? config.integer("max_window_layers", {0, kLayers.max}, 28) : 0;
  std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty() && static_cast<int64_t>(types.size()) != layers)
    config.refuse("layer_types", "expects one entry for each of " + std::to_string(layers) +
                                     " layers, but got " + std::to_string(types.size()));
  for (int64_t index = 0; index < layers; ++index) {
    bool isSliding = uses && index >= first;
    if (static_cast<size_t>(index) < types.size()) {
      if (types[index] != "sliding_attention" && types[index] != "full_attention")
        config.refuse("layer_types",
                      "expects full_attention or sliding_attention, but got '" + types[index] + "'");
      isSliding = types[index] == "sliding_attention";
    }
    windows[index] = isSliding && uses ? window : 0;
    hasWindows |= windows[index] > 0 && windows[index] < positions;
  }
}

Llama::Llama(const Section &config, Kind kind) {
  readSizes(config);
  readPadding(config, std::nullopt);
  readHeads(config, kind);
  readWindows(config, kind);
  activation = readActivation(config, "hidden_act", "silu");
  dropout = config.number("attention_dropout", kProbabilities, 0);
  epsilon = config.number("rms_norm_eps", kEpsilons, 1e-6);
  deviation = config.number("initializer_range", kDeviations, 0.02);
  vocabulary.tied = config.flag("tie_word_embeddings", false);
  outputBias = kind == Kind::Llama && config.flag("attention_bias", false);
  queryBias = kind == Kind::Qwen2 || outputBias;
  innerBias = kind == Kind::Llama && config.flag("mlp_bias", false);
  RotaryKeys keys;
  keys.positions = positions;
  rotary = readRotary(config, size, keys);
  widest = std::max({inner, heads * size, hidden});
  scoreHeads = dropout > 0 ? heads : 0;
  basePrefix = "model.";
}

Value Llama::attend(Graph &g, Value x, const RotaryTables &tables, int64_t window) const {
  Scope scope(g, "self_attn");
  {
    Scope rotaryScope(g, "rotary_emb");
    g.ignoreWeight("inv_freq");
  }
  Value q = splitHeads(g, linear(g, "q_proj", x, heads * size, queryBias, deviation), size);
  Value k = splitHeads(g, linear(g, "k_proj", x, groups * size, queryBias, deviation), size);
  Value v = splitHeads(g, linear(g, "v_proj", x, groups * size, queryBias, deviation), size);
  AttentionOptions options;
  options.scale = 1 / std::sqrt(static_cast<double>(size));
  options.window = window;
  options.dropout = dropout;
  Value mixed = attention(g, rotate(g, q, tables), rotate(g, k, tables), v, options);
  return linear(g, "o_proj", joinHeads(g, mixed), hidden, outputBias, deviation);
}

Value Llama::feedForward(Graph &g, Value x) const {
  Scope scope(g, "mlp");
  Value gate = activate(g, activation, linear(g, "gate_proj", x, inner, innerBias, deviation));
  Value up = linear(g, "up_proj", x, inner, innerBias, deviation);
  return linear(g, "down_proj", g.ops().mul(gate, up), hidden, innerBias, deviation);
}

Value Llama::forward(Graph &g, Value ids, Value labels) const {
  Value x = embedding(g, "model.embed_tokens", ids, vocabulary.size, hidden, deviation, vocabulary.padding);
  RotaryTables tables;
  {
    Scope scope(g, "model.rotary_emb");
    tables = makeTables(g, rotary, tensorType(ids).getDimSize(1));
  }
  for (int64_t index = 0; index < layers; ++index) {
    Scope scope(g, "model.layers." + std::to_string(index));
    Value attended = attend(g, rmsNorm(g, "input_layernorm", x, epsilon), tables, windows[index]);
    x = g.ops().add(x, attended);
    Value fed = feedForward(g, rmsNorm(g, "post_attention_layernorm", x, epsilon));
    x = g.ops().add(x, fed);
  }
  x = rmsNorm(g, "model.norm", x, epsilon);
  return languageLoss(g, {"lm_head", "model.embed_tokens", vocabulary.tied}, x, labels, vocabulary.size,
                      deviation);
}

::ds::Result<::ds::cost::ModelShape> Llama::sizes() const {
  if (heads * size != hidden)
    return ::ds::Error{::ds::ExitCode::Invalid,
                       "head_dim: plans by rules expect hidden_size / num_attention_heads, which is " +
                           std::to_string(hidden) + " / " + std::to_string(heads) + ", but got " +
                           std::to_string(size),
                       "leave --cluster out to plan the program itself"};
  ::ds::cost::ModelShape shape = commonShape();
  shape.kvHeads = groups;
  shape.gated = shape.rmsNorm = true;
  shape.biases = shape.learnedPositions = false;
  shape.moreLayerParameters = (queryBias ? (heads + 2 * groups) * size : 0) + (outputBias ? hidden : 0) +
                              (innerBias ? 2 * inner + hidden : 0);
  shape.dropout = dropout > 0;
  for (int64_t window : windows)
    if (window > 0)
      shape.window = window, ++shape.windowLayers;
  return shape;
}

std::unique_ptr<Architecture> hf::readLlama(const Section &config) {
  return std::make_unique<Llama>(config, Llama::Kind::Llama);
}
std::unique_ptr<Architecture> hf::readMistral(const Section &config) {
  return std::make_unique<Llama>(config, Llama::Kind::Mistral);
}
std::unique_ptr<Architecture> hf::readQwen2(const Section &config) {
  return std::make_unique<Llama>(config, Llama::Kind::Qwen2);
}
