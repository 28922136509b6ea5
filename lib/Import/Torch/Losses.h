//===- Losses.h - The loss that --loss adds to a model of logits ----------------===//
#ifndef DS_LIB_IMPORT_TORCH_LOSSES_H
#define DS_LIB_IMPORT_TORCH_LOSSES_H

#include "Builder.h"

namespace ds::ts {

/// The mean of the loss `kind` ("cross_entropy" over the last dimension, or "mse") between the model's output
/// and the label.
TensorRef addLoss(Builder &b, const std::string &kind, const TensorRef &output, const TensorRef &label);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_LOSSES_H
