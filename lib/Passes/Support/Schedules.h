//===- Schedules.h - The learning rate of a step --------------------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_SCHEDULES_H
#define DS_LIB_PASSES_SUPPORT_SCHEDULES_H

#include "ScalarMath.h"
#include "ds/Dialect/Training.h"

namespace mlir::ds {

/// What a schedule sets for one step.
struct StepRates {
  Scalar rate = 0.0;  ///< learning rate
  Scalar beta1 = 0.0; ///< of the optimizers that have betas
  double beta2 = 0.0;
};

/// The f64 state that holds the length of a schedule where the run says it.
inline constexpr StringLiteral kTotalStepsState = "total_steps";

/// The rates of the step that follows `finished` (a rank-0 f64: 0, 1, ...) finished steps, of a
/// schedule of `total` steps where it has an end.
StepRates buildStepRates(ScalarMath &math, const TrainingOptions &options, Scalar finished, Scalar total);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_SCHEDULES_H
