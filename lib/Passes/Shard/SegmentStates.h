//===- SegmentStates.h - States as arguments and results of a segment -------------===//
#ifndef DS_LIB_PASSES_SHARD_SEGMENTSTATES_H
#define DS_LIB_PASSES_SHARD_SEGMENTSTATES_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Lets a pass exchange the states of a segment without counting arguments. What is dropped stays until
/// `finish`, so that indices and values hold meanwhile; the function's type and attributes change there, once
/// for all states.
class SegmentStates {
public:
  explicit SegmentStates(func::FuncOp func) : func(func) { index(); }

  func::FuncOp getFunction() const { return func; }
  Block &getBody() const { return func.getBody().front(); }
  Operation *getTerminator() const { return getBody().getTerminator(); }
  bool does(Work work) const { return SegmentAttr::of(func).does(work); }

  /// The state that an argument or a returned operand holds; null for inputs.
  StringAttr nameOf(BlockArgument argument) const;
  StringAttr nameOfResult(unsigned index) const { return resultStates[index]; }
  unsigned getNumResults() const { return resultStates.size(); }
  /// The argument that holds the state, or null.
  BlockArgument find(StringAttr state) const;
  /// The value that the state is given, or null.
  Value findResult(StringAttr state) const;

  /// The state's value before the segment; becomes an argument of its local type where it is none.
  Value read(StateOp state);
  /// Gives the state a value, in place of the one it is given so far, if any.
  void write(StateOp state, Value value);
  /// Takes the state out of arguments and results.
  void drop(StringAttr state) { dropped.insert(state); }
  /// Erases what was dropped. No op may read it any more.
  void finish();

private:
  void index();

  mutable func::FuncOp func;                            ///< a handle: asking it changes nothing
  DenseMap<StringAttr, BlockArgument> arguments;        ///< by state
  DenseMap<StringAttr, unsigned> results;               ///< by state
  SmallVector<StringAttr> argumentStates, resultStates; ///< by index
  DenseSet<StringAttr> dropped;
};

/// The first of two ops of one block; a null one is not counted.
Operation *earlierOf(Operation *a, Operation *b);
/// The last of two ops of one block; a null one is not counted.
Operation *laterOf(Operation *a, Operation *b);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_SEGMENTSTATES_H
