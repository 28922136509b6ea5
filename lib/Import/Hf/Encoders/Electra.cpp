//===- Electra.cpp - The generator of ELECTRA -----------------------------------===//
//
// BERT with tables that may be narrower than the layers, and a head as wide as the tables (arXiv 2003.10555).
// The discriminator, which tells replaced tokens, is another model.
//
//===---------------------------------------------------------------------------===//

#include "Encoder.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

static constexpr EncoderNames kNames = bertNames("electra", {.dense = "generator_predictions.dense",
                                                             .norm = "generator_predictions.LayerNorm",
                                                             .bias = "generator_lm_head.bias",
                                                             .biasAlias = "",
                                                             .decoder = "generator_lm_head"});

namespace {
class Electra : public Encoder {
public:
  explicit Electra(const Section &config) : Encoder(kNames) {
    readKeys(config, /*padding=*/0);
    refuseOtherModels(config);
    keys.embeddingWidth = config.integer("embedding_size", kWidths, 128);
    keys.headActivation = "gelu";
    finish();
  }
};
} // namespace

std::unique_ptr<Architecture> hf::readElectra(const Section &config) {
  return std::make_unique<Electra>(config);
}
