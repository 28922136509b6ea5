//===- Opt.cpp - OPT --------------------------------------------------------===//
//
// Learned positions behind two rows that nothing reads, ReLU, biases. The 350M model has its norms behind
// each half of a layer and narrower tokens than layers.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readOpt(const Section &config) {
  DecoderSpec spec = readDecoder(config, {.inner = "ffn_dim", .groups = "", .size = ""});
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, 1);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  const bool isBefore = config.flag("do_layer_norm_before", true);
  const bool hasWeights = config.flag("layer_norm_elementwise_affine", true);
  spec.norm = {hasWeights ? NormKind::Layer : NormKind::LayerPlain, 1e-5};
  spec.names.base = "model.decoder", spec.names.positions = "embed_positions";
  spec.names.output = "out_proj", spec.names.mlp = "", spec.names.up = "fc1", spec.names.down = "fc2";
  spec.names.finalNorm =
      isBefore && !config.flag("_remove_final_layer_norm", false) ? "final_layer_norm" : "";
  const std::string first = "self_attn_layer_norm", second = "final_layer_norm";
  spec.aroundAttention = isBefore ? NormPlaces{first, "", ""} : NormPlaces{"", "", first};
  spec.aroundMlp = isBefore ? NormPlaces{second, "", ""} : NormPlaces{"", "", second};
  spec.firstPosition = 2;
  spec.activation = readActivation(config, "activation_function", "relu");
  spec.gated = false;
  const bool bias = config.flag("enable_bias", true);
  spec.biases = {.qkv = bias, .output = bias, .up = bias, .down = bias, .head = false};
  spec.deviation = config.number("init_std", kDeviations, 0.02);
  spec.dropouts.output = spec.dropouts.mlp = config.number("dropout", kProbabilities, 0.1);
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  refuseNumber(config, "layerdrop", 0, "all layers take part in every step");
  const int64_t width = config.integer("word_embed_proj_dim", kWidths, spec.sizes.hidden);
  if (width != spec.sizes.hidden) {
    spec.sizes.tokenWidth = width;
    spec.names.projectIn = "project_in", spec.names.projectOut = "project_out";
  }
  return spec;
}
