//===- StepSegment.h - One function of a training step --------------------------===//
//
// A segment starts as a copy of the differentiated forward. Reading a state makes it an argument, writing it
// makes it a result; the pass that builds a step never counts arguments. The function's type follows in the
// end: to change it for each of thousands of states would copy it as often.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STEP_STEPSEGMENT_H
#define DS_LIB_PASSES_STEP_STEPSEGMENT_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::ds {

class StepSegment {
public:
  /// Copies `forward` to the end of its module under `name`. The copy's results are taken off: see getLoss
  /// and getGradients. Results that the forward itself gives to states are kept, but in
  /// evaluation.
  StepSegment(func::FuncOp forward, StringRef name, ArrayRef<Work> works);

  func::FuncOp getFunction() { return func; }
  Block &getBody() { return func.getBody().front(); }
  Operation *getTerminator() { return getBody().getTerminator(); }

  /// Null on a stage of a pipeline that is not the last.
  Value getLoss() const { return loss; }
  /// Gradients of this micro-batch, by parameter name, in argument order.
  const llvm::MapVector<StringAttr, Value> &getGradients() const { return gradients; }

  /// The state's value before the segment.
  Value read(StateOp state);
  /// Gives the state a value after the segment; at most once per state.
  void write(StateOp state, Value value);

  /// The value that `write` has given the state; null without.
  Value getWritten(StateOp state) const { return written.lookup(state.getSymNameAttr()); }

  /// Erases what is backward: messages would keep it.
  void eraseBackward();

  /// Writes the results out, and erases what computes nothing and arguments of states that nothing reads.
  void finish();

private:
  void takeResults();
  void eraseUnused();

  func::FuncOp func;
  DenseMap<StringAttr, BlockArgument> arguments; ///< by state
  SmallVector<StringAttr> added; ///< states of the last arguments, of which the type knows nothing
  Value loss;
  llvm::MapVector<StringAttr, Value> gradients;
  llvm::MapVector<StringAttr, Value> written; ///< by state
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STEP_STEPSEGMENT_H
