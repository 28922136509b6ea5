//===- Inputs.h - Shapes of the forward's arguments -----------------------------===//
#ifndef DS_LIB_IMPORT_HF_INPUTS_H
#define DS_LIB_IMPORT_HF_INPUTS_H

#include "Architecture.h"

namespace ds::hf {

/// Shape of `input_ids` and `labels`, and of what else is asked for.
struct TokenShape {
  int64_t batch = 1, length = 1;
  bool positions = false, documents = false; ///< --input gives position_ids, document_ids
  std::optional<int64_t> decoderLength; ///< of `decoder_input_ids` and `labels`, where there is a decoder
};

/// What --input says, each as NAME=BxTxi64, or of pictures as pixel_values=BxCxHxWxf32 and labels=Bxi64, or
/// of speech input_features=BxMxFxf32; without any, `microBatch` samples of the model's positions.
Result<TokenShape> readInputs(const std::vector<std::string> &inputs, int64_t microBatch,
                              const Architecture &model, const std::string &file);

/// Refuses what would make a tensor of more than kMaxElements.
Status checkTensors(const TokenShape &shape, const Architecture &model, const std::string &file);

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_INPUTS_H
