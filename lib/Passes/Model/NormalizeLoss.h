//===- NormalizeLoss.h - What the mean of a loss is over ---------------------------===//
#ifndef DS_LIB_PASSES_MODEL_NORMALIZELOSS_H
#define DS_LIB_PASSES_MODEL_NORMALIZELOSS_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Where `loss_normalization` of `ds.training` is "tokens", divides each cross-entropy by the state
/// @mean_targets. Fails, with a diagnostic, where that cannot be: no cross-entropy, one whose mean is not over
/// its targets, targets that the host cannot count, or a key that has another value than the known ones.
LogicalResult normalizeLoss(ModuleOp module);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_NORMALIZELOSS_H
