//===- Bert.cpp - BERT as a masked language model -------------------------------===//

#include "Encoder.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

static constexpr EncoderNames kNames = bertNames("bert", {.dense = "cls.predictions.transform.dense",
                                                          .norm = "cls.predictions.transform.LayerNorm",
                                                          .bias = "cls.predictions.bias",
                                                          .biasAlias = "cls.predictions.decoder.bias",
                                                          .decoder = "cls.predictions.decoder"});

namespace {
class Bert : public Encoder {
public:
  explicit Bert(const Section &config) : Encoder(kNames) {
    readKeys(config, /*padding=*/0);
    refuseOtherModels(config);
    hasOldNorms = true;
    unused = {"bert.pooler.dense.weight", "bert.pooler.dense.bias", "cls.seq_relationship.weight",
              "cls.seq_relationship.bias"}; // of the pretraining model
    finish();
  }
};
} // namespace

std::unique_ptr<Architecture> hf::readBert(const Section &config) { return std::make_unique<Bert>(config); }
