//===- Llama.cpp - Llama and Mistral ----------------------------------------===//
//
// RMS norm before each half of a layer, rotary positions, fewer key heads than query heads, a gated
// feed-forward. Mistral has no biases and, in its first version, a sliding window.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readLlamaLike(const Section &config, const SizeKeys &sizes, RotaryKeys rotary,
                              double epsilon) {
  DecoderSpec spec = readDecoder(config, sizes);
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, std::nullopt);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", false);
  spec.norm = readNorm(config, NormKind::Rms, "rms_norm_eps", epsilon);
  spec.activation = readActivation(config, "hidden_act", "silu");
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  spec.names.unused = {"self_attn.rotary_emb.inv_freq"};
  readOneRotary(config, spec, rotary);
  return spec;
}

void hf::readLlamaBiases(const Section &config, DecoderSpec &spec) {
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", false);
  spec.biases.up = spec.biases.down = config.flag("mlp_bias", false);
}

DecoderSpec hf::readLlama(const Section &config) {
  DecoderSpec spec = readLlamaLike(config);
  readLlamaBiases(config, spec);
  return spec;
}

DecoderSpec hf::readMistral(const Section &config) {
  SizeKeys sizes;
  sizes.defaultGroups = 8;
  DecoderSpec spec = readLlamaLike(config, sizes);
  WindowKeys windows;
  windows.fallback = 4096;
  readWindows(config, spec, windows);
  return spec;
}
