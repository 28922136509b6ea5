//===- Starcoder2.cpp - StarCoder 2 -----------------------------------------===//
//
// Layer norms with biases, rotary positions, a plain feed-forward, biases of all products, a head that is the
// table of tokens.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readStarcoder2(const Section &config) {
  SizeKeys sizes;
  sizes.defaultGroups = 2;
  DecoderSpec spec = readDecoder(config, sizes);
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, std::nullopt);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  spec.norm = readNorm(config, NormKind::Layer, "norm_epsilon", 1e-5);
  spec.activation = readActivation(config, "hidden_act", "gelu_pytorch_tanh");
  spec.gated = false;
  spec.names.up = "c_fc", spec.names.down = "c_proj";
  const bool bias = config.flag("use_bias", true);
  spec.biases = {.qkv = bias, .output = bias, .up = bias, .down = bias, .head = false};
  spec.deviation = config.number("initializer_range", kDeviations, 0.018042);
  spec.dropouts.embedding = config.number("embedding_dropout", kProbabilities, 0);
  spec.dropouts.output = spec.dropouts.mlp = config.number("residual_dropout", kProbabilities, 0);
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  readWindows(config, spec, {});
  readOneRotary(config, spec);
  return spec;
}
