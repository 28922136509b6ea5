//===- Nemotron.cpp - Nemotron ----------------------------------------------===//
//
// Layer norms that multiply by 1 + weight, half of each head rotated, a plain feed-forward with the square of
// ReLU.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readNemotron(const Section &config) {
  DecoderSpec spec = readDecoder(config);
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, std::nullopt);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", false);
  spec.norm = readNorm(config, NormKind::LayerAddOne, "norm_eps", 1e-5);
  spec.activation = readActivation(config, "hidden_act", "relu2");
  spec.gated = false;
  readLlamaBiases(config, spec);
  spec.deviation = config.number("initializer_range", kDeviations, 0.0134);
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  RotaryKeys rotary;
  rotary.allowsPartial = true;
  rotary.share = "partial_rotary_factor|rope_percent";
  rotary.defaultShare = 0.5;
  readOneRotary(config, spec, rotary);
  return spec;
}
