//===- NormalizeLoss.h - What the mean of a loss is over ---------------------------===//
#ifndef DS_LIB_PASSES_MODEL_NORMALIZELOSS_H
#define DS_LIB_PASSES_MODEL_NORMALIZELOSS_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Divides each cross-entropy by the state @mean_targets, as TrainingOptions::meansOverTargets asks. Fails,
/// with a diagnostic, where that cannot be: no cross-entropy, one whose mean is not over its targets, or
/// targets that the host cannot count.
LogicalResult normalizeLoss(ModuleOp module);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_NORMALIZELOSS_H
