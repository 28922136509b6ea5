//===- Cohere.cpp - Cohere Command R ----------------------------------------===//
//
// Both halves of a layer read one layer norm, which has no bias; rotated elements lie side by side; logits
// have a factor. Command R+ has a norm of each head, with weights of its own.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readCohere(const Section &config) {
  static constexpr Range<double> kFactors{1e-6, 1e6};
  DecoderSpec spec = readDecoder(config);
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, 0);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  spec.norm = readNorm(config, NormKind::LayerNoBias, "layer_norm_eps", 1e-5);
  spec.parallel = true;
  spec.addsHalves = false;
  spec.aroundMlp.before = "";
  spec.headNorm = config.flag("use_qk_norm", false) ? HeadNorm::EachHead : HeadNorm::None;
  spec.activation = readActivation(config, "hidden_act", "silu");
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", false);
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  spec.factors.logits = config.number("logit_scale", kFactors, 0.0625);
  RotaryKeys rotary;
  rotary.interleaved = true;
  readOneRotary(config, spec, rotary);
  return spec;
}
