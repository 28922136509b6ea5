//===- Roberta.cpp - RoBERTa, XLM-RoBERTa and CamemBERT -------------------------===//
//
// BERT with positions that start after the padding token's row, and a head of its own (arXiv 1907.11692).
//
//===---------------------------------------------------------------------------===//

#include "Encoder.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

static constexpr EncoderNames kNames = bertNames("roberta", {.dense = "lm_head.dense",
                                                             .norm = "lm_head.layer_norm",
                                                             .bias = "lm_head.bias",
                                                             .biasAlias = "lm_head.decoder.bias",
                                                             .decoder = "lm_head.decoder"});

namespace {
class Roberta : public Encoder {
public:
  explicit Roberta(const Section &config) : Encoder(kNames) {
    readKeys(config, /*padding=*/1);
    refuseOtherModels(config);
    if (!vocabulary.padding)
      config.refuse("pad_token_id", "expects a row of the table, but got null: positions start after it");
    keys.firstPosition = vocabulary.padding.value_or(0) + 1;
    if (positions <= keys.firstPosition)
      config.refuse("max_position_embeddings", "expects more than pad_token_id + 1, which is " +
                                                   std::to_string(keys.firstPosition) + ", but got " +
                                                   std::to_string(positions));
    positions = std::max<int64_t>(1, positions - keys.firstPosition);
    keys.headActivation = "gelu";
    unused = {"roberta.pooler.dense.weight", "roberta.pooler.dense.bias"};
    finish();
  }
};
} // namespace

std::unique_ptr<Architecture> hf::readRoberta(const Section &config) {
  return std::make_unique<Roberta>(config);
}
