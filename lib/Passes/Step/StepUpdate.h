//===- StepUpdate.h - The update at the end of a step ---------------------------===//
//
// Without clipping a parameter is updated as soon as its gradient is final and its old value has had its last
// reader, so that a gradient lives shortly; with clipping all gradients have to wait for their common norm.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STEP_STEPUPDATE_H
#define DS_LIB_PASSES_STEP_STEPUPDATE_H

#include "StepSegment.h"
#include "StepStates.h"
#include "Support/Optimizers.h"

namespace mlir::ds {

/// A parameter to be updated by the gradient of the whole step.
struct ParameterUpdate {
  StateOp parameter;
  Value value, gradient;
};

/// Builds the update in one segment.
class StepUpdate {
public:
  /// Emits, at the start of the segment, the numbers that all parameters share, and counts the step.
  StepUpdate(StepSegment &segment, StepStates &states, const TrainingOptions &options);

  /// Updates the parameters; writes @grad_norm and the states of the loss scaler.
  void apply(ArrayRef<ParameterUpdate> updates);

private:
  /// What is known of a step's gradients when all are complete; rank-0 values.
  struct Verdict {
    Value coefficient; ///< f32: what they are multiplied by; null: nothing
    Value isGood;      ///< i1: false where the step is to be skipped; null: never
  };

  OptimizerBuilder buildPrologue();
  Verdict judgeGradients(Emitter &emit, ArrayRef<Value> squares);
  void presume(Emitter &emit, Verdict &verdict);
  Value buildCoefficient(ScalarMath &math, Scalar norm, Scalar scale);
  Scalar readLossScale(ScalarMath &math);
  void writeLossScale(Emitter &emit, Value isFinite, Value isGood);
  Value buildIsBounded(Emitter &emit, Value isFinite);
  void applyUpdate(OpBuilder &builder, const ParameterUpdate &update, const Verdict &verdict);
  template <class Read, class Write>
  void buildUpdate(Emitter &emit, const ParameterUpdate &update, const Verdict &verdict, Read read,
                   Write write);
  StateOp updatedState(StateOp parameter);
  bool isDecayed(StringRef parameter) const;

  StepSegment &segment;
  StepStates &states;
  const TrainingOptions &options;
  StateOp step;
  Value finished, next; ///< number of finished steps before and after this one
  OptimizerBuilder optimizer;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STEP_STEPUPDATE_H
