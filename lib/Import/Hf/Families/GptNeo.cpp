//===- GptNeo.cpp - GPT-Neo -------------------------------------------------===//
//
// Learned positions, scores that are not scaled, a window in the layers that attention_types calls local.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

/// The kind of each layer, "global" or "local".
static std::vector<std::string> readKinds(const Section &config, size_t layers) {
  const bool isListed = config.has("attention_layers");
  std::vector<std::string> kinds = readRepeatedTexts(config, "attention_types");
  const std::vector<std::string> listed = config.texts("attention_layers");
  if (isListed && !kinds.empty() && kinds != listed)
    config.refuse("attention_layers", "contradicts attention_types", "keep one of them");
  const char *key = isListed ? "attention_layers" : "attention_types";
  kinds = isListed ? listed : kinds;
  if (kinds.size() != layers)
    config.refuse(key, "expects one entry for each of " + std::to_string(layers) + " layers, but got " +
                           std::to_string(kinds.size()));
  for (const std::string &kind : kinds)
    if (kind != "global" && kind != "local")
      config.refuse(key, "expects global or local, but got '" + kind + "'");
  kinds.resize(layers, "global");
  return kinds;
}

DecoderSpec hf::readGptNeo(const Section &config) {
  DecoderSpec spec = readDecoder(config, {.layers = "num_layers|num_hidden_layers",
                                          .heads = "num_heads|num_attention_heads",
                                          .groups = "",
                                          .size = "",
                                          .defaultInner = 4});
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  spec.norm = readNorm(config, NormKind::Layer, "layer_norm_epsilon", 1e-5);
  spec.names.base = "transformer", spec.names.tokens = "wte", spec.names.positions = "wpe";
  spec.names.layers = "h", spec.names.finalNorm = "ln_f";
  spec.names.attention = "attn.attention", spec.names.output = "out_proj";
  spec.names.up = "c_fc", spec.names.down = "c_proj";
  spec.names.unused = {"attn.attention.bias", "attn.attention.masked_bias"};
  spec.aroundAttention.before = "ln_1", spec.aroundMlp.before = "ln_2";
  spec.activation = readActivation(config, "activation_function", "gelu_new");
  spec.gated = false;
  spec.biases = {.qkv = false, .output = true, .up = true, .down = true, .head = false};
  spec.factors.scores = 1;
  spec.dropouts.embedding = config.number("embed_dropout", kProbabilities, 0);
  spec.dropouts.output = spec.dropouts.mlp = config.number("resid_dropout", kProbabilities, 0);
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  const int64_t window = config.integer("window_size", kPositions, 256);
  const std::vector<std::string> kinds = readKinds(config, spec.layers.size());
  for (size_t index = 0; index < spec.layers.size(); ++index)
    spec.layers[index].window = kinds[index] == "local" ? window : 0;
  return spec;
}
