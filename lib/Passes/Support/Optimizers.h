//===- Optimizers.h - From a gradient to a new parameter ------------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_OPTIMIZERS_H
#define DS_LIB_PASSES_SUPPORT_OPTIMIZERS_H

#include "Schedules.h"

#include <functional>

namespace mlir::ds {

/// One parameter in one step. Tensors are in at least single precision.
struct UpdateSlot {
  Value parameter, gradient;                          ///< of one type; the gradient is averaged and clipped
  bool decays = true;                                 ///< false: exempt from weight decay
  std::function<Value(StringRef, double)> readMoment; ///< the moment of that name; starts as the number
  std::function<void(StringRef, Value)> writeMoment;  ///< its value after the step
};

/// Builds the updates of one step: the numbers that all parameters share once, then one formula per
/// parameter.
class OptimizerBuilder {
public:
  /// Emits the shared numbers with `math`, for the step that follows `finished` finished steps.
  OptimizerBuilder(ScalarMath &math, const TrainingOptions &options, Scalar finished, Scalar totalSteps);

  /// The learning rate of this step.
  Scalar getRate() const { return rates.rate; }

  /// Emits the update and returns the new parameter.
  Value update(Emitter &emit, UpdateSlot &slot) const;

private:
  Value updateSgd(Emitter &emit, UpdateSlot &slot) const;
  Value updateAdam(Emitter &emit, UpdateSlot &slot) const;
  Value updateAdagrad(Emitter &emit, UpdateSlot &slot) const;
  Value updateLion(Emitter &emit, UpdateSlot &slot) const;
  Value updateLamb(Emitter &emit, UpdateSlot &slot) const;
  Value decayGradient(Emitter &emit, const UpdateSlot &slot) const;
  Value decayParameter(Emitter &emit, const UpdateSlot &slot) const;
  std::pair<Value, Value> updateAdamMoments(Emitter &emit, UpdateSlot &slot, Value gradient) const;

  OptimizerOptions options;
  StepRates rates;
  Scalar stepSize = 0.0;       ///< rate / (1 - beta1^n), for Lamb also * sqrt(1 - beta2^n)
  Scalar rootCorrection = 1.0; ///< 1 / sqrt(1 - beta2^n)
  Scalar oneMinusBeta1 = 0.0;
  Scalar keptParameter = 1.0; ///< 1 - rate * weight decay
  Scalar newMomentum = 1.0;   ///< weight of the gradient in SGD's momentum
};

/// Sum of the squares of the elements of all `xs` as a rank-0 f64.
Value buildSumOfSquares(Emitter &emit, ValueRange xs);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_OPTIMIZERS_H
