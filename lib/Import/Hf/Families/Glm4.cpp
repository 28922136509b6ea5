//===- Glm4.cpp - GLM-4 -----------------------------------------------------===//
//
// As Llama, with one projection for gate and up, norms of what each half of a layer gives as well, half of
// each head rotated by elements that lie side by side, and biases of query, key and value.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readGlm4(const Section &config) {
  SizeKeys sizes;
  sizes.defaultSize = 128;
  sizes.defaultGroups = 2;
  RotaryKeys rotary;
  rotary.allowsPartial = true;
  rotary.interleaved = true;
  rotary.defaultShare = 0.5;
  DecoderSpec spec = readLlamaLike(config, sizes, rotary, /*epsilon=*/1.5625e-7);
  spec.biases.qkv = config.flag("attention_bias", false);
  spec.names.joinedGate = "gate_up_proj";
  spec.aroundAttention.after = "post_self_attn_layernorm";
  spec.aroundMlp.after = "post_mlp_layernorm";
  return spec;
}
