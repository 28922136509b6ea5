//===- LossScale.h - Scaled losses and skipped steps ----------------------------===//
//
// fp16 gradients underflow, so the loss is multiplied by a scale that follows the overflows. The scaler is
// DeepSpeed's DynamicLossScaler as ops on rank-0 states; its counter of iterations and the iteration of its
// last overflow enter only as the good steps since then, which is what is kept.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_LOSSSCALE_H
#define DS_LIB_PASSES_SUPPORT_LOSSSCALE_H

#include "ScalarMath.h"
#include "ds/Dialect/Training.h"

namespace mlir::ds {

/// The state that holds the scale.
inline constexpr StringLiteral kLossScaleState = "loss_scale";

/// The state that holds the largest loss that is no spike.
inline constexpr StringLiteral kLossLimitState = "loss_limit";

/// Declares the state that holds the scale, after the last one of the module; null, with a diagnostic, where
/// the model has a symbol of that name.
StateOp declareLossScale(ModuleOp module, const LossScaleOptions &options);

/// The scaler's numbers, before or after a step; null without dynamic scaling.
struct LossScaleState {
  Value scale;      ///< f32
  Value goodSteps;  ///< i64: since the last overflow or growth
  Value hysteresis; ///< i64: overflows that are still let pass
};

/// Emits what DeepSpeed's update_scale does after a step whose gradients were finite iff `isFinite`.
LossScaleState updateLossScale(Emitter &emit, const LossScaleOptions &options, const LossScaleState &before,
                               Value isFinite);

/// What @skipped says of the step (i64): 0 for a step that was made, 1 for one that was skipped, 2 for one
/// that was skipped while the scale could not be lowered any more, where DeepSpeed gives up.
Value buildSkipped(Emitter &emit, const LossScaleOptions &options, const LossScaleState &before,
                   Value isFinite);

/// True (i1) when `x`, a rank-0 float, is neither NaN nor infinite. Requires x >= 0 or NaN.
Value buildIsFinite(Emitter &emit, Value x);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_LOSSSCALE_H
