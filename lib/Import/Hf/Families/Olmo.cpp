//===- Olmo.cpp - OLMo and OLMo 2 -------------------------------------------===//
//
// OLMo: as Llama, with layer norms that have no parameters. OLMo 2: RMS norm of what each half of a layer
// gives, not of what it reads, and of all queries and all keys together.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readOlmo(const Section &config) {
  DecoderSpec spec = readLlamaLike(config);
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, 1);
  spec.norm = {NormKind::LayerPlain, 1e-5};
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", false);
  if (config.has("clip_qkv"))
    config.refuse("clip_qkv", "expects null, but got " + config.describe("clip_qkv") +
                                  ": queries, keys and values are not clipped");
  return spec;
}

DecoderSpec hf::readOlmo2(const Section &config) {
  DecoderSpec spec = readLlamaLike(config, {}, {}, /*epsilon=*/1e-5);
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, 1);
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", false);
  spec.aroundAttention = {.before = "", .after = "post_attention_layernorm", .ofSum = ""};
  spec.aroundMlp = {.before = "", .after = "post_feedforward_layernorm", .ofSum = ""};
  spec.headNorm = HeadNorm::Whole;
  return spec;
}
