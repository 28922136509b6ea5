//===- Experts.cpp - Mixtral, Qwen's mixtures, gpt-oss and Llama 4 ----------------===//
//
// Decoders whose feed-forward is one of many, chosen for each token. Their sizes are read, counted and
// planned by rules; the program that would choose is refused.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

#include "llvm/ADT/STLExtras.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

void hf::readExperts(const Section &config, DecoderSpec &spec, const ExpertKeys &keys) {
  // How tokens are sent, and what is added to the loss for it, changes no size.
  for (std::string_view key :
       {"norm_topk_prob", "routed_scaling_factor", "n_group", "topk_group", "topk_method", "scoring_func",
        "router_aux_loss_coef", "output_router_logits", "router_jitter_noise", "aux_loss_alpha", "seq_aux",
        "swiglu_limit", "num_nextn_predict_layers"})
    config.has(key);
  ExpertSpec &experts = spec.experts;
  experts.count = config.integer(keys.count, {1, 65536});
  experts.perToken = keys.defaultPerToken == 0
                         ? config.integer("num_experts_per_tok", {1, 65536})
                         : config.integer("num_experts_per_tok", {1, 65536}, keys.defaultPerToken);
  if (experts.perToken > experts.count)
    config.refuse("num_experts_per_tok", "expects at most the " + std::to_string(experts.count) +
                                             " experts of a layer, but got " +
                                             std::to_string(experts.perToken));
  experts.inner = keys.inner.empty() ? spec.sizes.inner : config.integer(keys.inner, kInnerWidths);
  experts.layers.assign(spec.layers.size(), true);
}

DecoderSpec hf::readMixtral(const Section &config) {
  SizeKeys sizes;
  sizes.defaultGroups = 8;
  RotaryKeys rotary;
  rotary.defaultTheta = 1e6;
  DecoderSpec spec = readLlamaLike(config, sizes, rotary, /*epsilon=*/1e-5);
  readWindows(config, spec, {});
  readExperts(config, spec, {.count = "num_local_experts", .defaultPerToken = 2});
  return spec;
}

/// Which layers have experts: every decoder_sparse_step-th that is not in mlp_only_layers.
static void readSparseLayers(const Section &config, DecoderSpec &spec) {
  const int64_t step = config.integer("decoder_sparse_step", {1, kLayers.max}, 1);
  const std::vector<double> dense =
      readNumbers(config, "mlp_only_layers", {0, static_cast<double>(spec.sizes.layers - 1)});
  for (size_t index = 0; index < spec.layers.size(); ++index)
    spec.experts.layers[index] = (static_cast<int64_t>(index) + 1) % step == 0 &&
                                 !llvm::is_contained(dense, static_cast<double>(index));
}

DecoderSpec hf::readQwen2Moe(const Section &config) {
  DecoderSpec spec = readQwen2(config);
  readExperts(
      config, spec,
      {.count = "num_experts|num_local_experts", .inner = "moe_intermediate_size", .defaultPerToken = 4});
  readSparseLayers(config, spec);
  spec.experts.shared = config.integer("shared_expert_intermediate_size", kInnerWidths, 5632);
  spec.experts.hasSharedGate = true;
  return spec;
}

DecoderSpec hf::readQwen3Moe(const Section &config) {
  SizeKeys sizes;
  DecoderSpec spec = readLlamaLike(config, sizes);
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", false);
  spec.headNorm = HeadNorm::Head;
  readLateWindows(config, spec);
  readExperts(
      config, spec,
      {.count = "num_experts|num_local_experts", .inner = "moe_intermediate_size", .defaultPerToken = 8});
  readSparseLayers(config, spec);
  return spec;
}

DecoderSpec hf::readGptOss(const Section &config) {
  SizeKeys sizes;
  sizes.defaultSize = 64;
  sizes.defaultGroups = 8;
  RotaryKeys rotary;
  rotary.defaultTheta = 150000;
  DecoderSpec spec = readLlamaLike(config, sizes, rotary, /*epsilon=*/1e-5);
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", true);
  spec.hasSinks = true;
  WindowKeys windows;
  windows.fallback = 128;
  windows.isSliding = [](int64_t index) { return index % 2 == 0; };
  readWindows(config, spec, windows);
  readExperts(config, spec, {.count = "num_local_experts", .defaultPerToken = 4});
  spec.experts.hasBiases = true;
  return spec;
}

/// The layers of Llama 4 that have experts, by moe_layers or every interleave_moe_layer_step-th.
static void readInterleaved(const Section &config, DecoderSpec &spec) {
  const int64_t step = config.integer("interleave_moe_layer_step", {1, kLayers.max}, 1);
  const std::vector<double> listed =
      readNumbers(config, "moe_layers", {0, static_cast<double>(spec.sizes.layers - 1)});
  for (size_t index = 0; index < spec.layers.size(); ++index)
    spec.experts.layers[index] = config.has("moe_layers")
                                     ? llvm::is_contained(listed, static_cast<double>(index))
                                     : (static_cast<int64_t>(index) + 1) % step == 0;
}

DecoderSpec hf::readLlama4Text(const Section &config) {
  SizeKeys sizes;
  sizes.defaultSize = 128;
  sizes.defaultGroups = 8;
  RotaryKeys rotary;
  rotary.defaultTheta = 500000;
  rotary.interleaved = true;
  DecoderSpec spec = readLlamaLike(config, sizes, rotary, /*epsilon=*/1e-5);
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", false);
  config.flag("use_qk_norm", true); // norms without parameters
  readExperts(config, spec, {.count = "num_local_experts", .defaultPerToken = 1});
  readInterleaved(config, spec);
  spec.experts.shared = spec.experts.inner;
  spec.sizes.inner = config.integer("intermediate_size_mlp", kInnerWidths, 16384);
  // Layers that rotate see their own piece of the sample alone.
  const int64_t piece = config.integer("attention_chunk_size", kPositions, 8192);
  const std::vector<bool> rotating = readRotating(config, spec.layers.size());
  for (size_t index = 0; index < spec.layers.size(); ++index)
    spec.layers[index].window = rotating[index] ? piece : 0;
  return spec;
}

DecoderSpec hf::readLlama4(const Section &config) {
  const Section text = config.section("text_config");
  if (!text)
    config.refuse("text_config", "expects the configuration of the text model, but the key is missing");
  config.section("vision_config"); // what looks at pictures is left out
  return readLlama4Text(text);
}
