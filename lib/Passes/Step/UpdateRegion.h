//===- UpdateRegion.h - Writes the body of a ds.update ---------------------------===//
//
// A formula of an optimizer names numbers that hold for the whole step, such as the learning rate, as if it
// stood among them. What it names from outside becomes a scalar operand when the body is complete.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STEP_UPDATEREGION_H
#define DS_LIB_PASSES_STEP_UPDATEREGION_H

#include "ds/Dialect/Emitter.h"

namespace mlir::ds {

class UpdateRegion {
public:
  /// A body that updates `parameter` with `gradient`, in no function yet.
  UpdateRegion(StateOp parameter, Value gradient);

  /// Emits into the body. Ops may name rank-0 values of the step.
  Emitter &getEmitter() { return emit; }
  /// The gradient as the body sees it.
  Value getGradient() const { return gradient; }
  /// The old value of a state as the body sees it; the same for the same `outside`.
  Value addState(Value outside);
  /// Appends a result; returns its number.
  unsigned yield(Value value);

  /// Puts the op at `builder`'s insertion point. The region is done with.
  UpdateOp finish(OpBuilder &builder);

private:
  void captureScalars(SmallVectorImpl<Value> &scalars);

  StateOp parameter;
  Value outsideGradient, gradient;
  Region region;
  Block &block;
  OpBuilder bodyBuilder;
  Emitter emit;
  SmallVector<Value> states, results;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STEP_UPDATEREGION_H
