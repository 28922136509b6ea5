//===- StableLm.cpp - StableLM ----------------------------------------------===//
//
// Layer norms with biases, a quarter of each head rotated, a gated feed-forward. StableLM 2 12B has both
// halves of a layer side by side, and a norm of its own for each head of queries and keys.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readStableLm(const Section &config) {
  DecoderSpec spec = readDecoder(config);
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, std::nullopt);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", false);
  spec.norm = readNorm(config, NormKind::Layer, "layer_norm_eps", 1e-5);
  spec.activation = readActivation(config, "hidden_act", "silu");
  spec.biases.qkv = config.flag("use_qkv_bias", false);
  spec.parallel = config.flag("use_parallel_residual", false);
  if (spec.parallel)
    spec.aroundMlp.before = "";
  spec.addsHalves = false;
  if (config.flag("qk_layernorm", false))
    spec.headNorm = HeadNorm::OwnHead;
  spec.headNormKind = {NormKind::LayerNoBias, spec.norm.epsilon};
  spec.names.queryNorm = "q_layernorm", spec.names.keyNorm = "k_layernorm";
  spec.names.unused = {"self_attn.rotary_emb.inv_freq"};
  spec.dropouts.mlp = config.number("hidden_dropout", kProbabilities, 0);
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  RotaryKeys rotary;
  rotary.allowsPartial = true;
  rotary.share = "partial_rotary_factor|rope_pct";
  rotary.defaultShare = 0.25;
  readOneRotary(config, spec, rotary);
  return spec;
}
