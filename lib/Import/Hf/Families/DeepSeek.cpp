//===- DeepSeek.cpp - DeepSeek V2 and V3 ------------------------------------------===//
//
// Queries, keys and values are made of narrow vectors (latent attention, arXiv 2405.04434, section 2.1);
// behind some layers without them, the feed-forward is one of many experts, chosen for each token, beside
// some that all share. Sizes are read, counted and planned by rules; the program is refused.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

/// Latent attention.
static void readLatent(const Section &config, DecoderSpec &spec, int64_t defaultQueryRank) {
  LatentSpec latent;
  const bool isThere = config.mentions("q_lora_rank");
  latent.queryRank = config.integer("q_lora_rank", kWidths, isThere ? 0 : defaultQueryRank);
  latent.keyRank = config.integer("kv_lora_rank", kWidths, 512);
  latent.rotated = config.integer("qk_rope_head_dim", {2, kHeads.max}, 64);
  latent.plain = config.integer("qk_nope_head_dim", kHeads, 128);
  latent.value = config.integer("v_head_dim", kHeads, 128);
  if (latent.rotated % 2 != 0)
    config.refuse("qk_rope_head_dim",
                  "expects an even number, but got " + config.describe("qk_rope_head_dim"));
  spec.latent = latent;
  spec.sizes.groups = spec.sizes.heads;
}

/// What V2 and V3 have.
static DecoderSpec readDeepSeek(const Section &config, const ExpertKeys &keys) {
  SizeKeys sizes;
  sizes.size = ""; // head_dim is that of what is rotated
  RotaryKeys rotary;
  rotary.interleaved = true;
  rotary.size = config.integer("qk_rope_head_dim", {2, kHeads.max}, 64);
  DecoderSpec spec = readLlamaLike(config, sizes, rotary);
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", false);
  readLatent(config, spec, 1536);
  readExperts(config, spec, keys);
  const int64_t dense = config.integer("first_k_dense_replace", {0, kLayers.max}, 0);
  const int64_t step = config.integer("moe_layer_freq", {1, kLayers.max}, 1);
  for (size_t index = 0; index < spec.layers.size(); ++index) {
    const auto layer = static_cast<int64_t>(index);
    spec.experts.layers[index] = layer >= dense && layer % step == 0;
  }
  spec.experts.shared = spec.experts.inner * config.integer("n_shared_experts", {0, 1024}, 0);
  return spec;
}

DecoderSpec hf::readDeepSeekV2(const Section &config) {
  return readDeepSeek(config, {.count = "n_routed_experts", .inner = "moe_intermediate_size"});
}

DecoderSpec hf::readDeepSeekV3(const Section &config) {
  return readDeepSeek(config,
                      {.count = "n_routed_experts", .inner = "moe_intermediate_size", .defaultPerToken = 8});
}
