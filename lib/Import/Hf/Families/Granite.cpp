//===- Granite.cpp - Granite and MiniCPM ------------------------------------===//
//
// As Llama, with factors at the embedding, at what is added to the residual stream, and at the logits, which
// keep one learning rate for all widths.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

#include <cmath>

static constexpr Range<double> kFactors{1e-6, 1e6};

DecoderSpec hf::readGranite(const Section &config) {
  DecoderSpec spec = readLlamaLike(config);
  readLlamaBiases(config, spec);
  spec.factors.embedding = config.number("embedding_multiplier", kFactors, 1);
  spec.factors.residual = config.number("residual_multiplier", kFactors, 1);
  spec.factors.scores = config.number("attention_multiplier", kFactors, 1);
  spec.factors.logits = 1 / config.number("logits_scaling", kFactors, 1);
  return spec;
}

DecoderSpec hf::readMiniCpm(const Section &config) {
  DecoderSpec spec = readLlamaLike(config);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", false);
  spec.factors.embedding = config.number("scale_emb", kFactors, 1);
  spec.factors.residual =
      config.number("scale_depth", kFactors, 1) / std::sqrt(static_cast<double>(spec.sizes.layers));
  spec.factors.logits = config.number("dim_model_base", kFactors, 1) / static_cast<double>(spec.sizes.hidden);
  return spec;
}
