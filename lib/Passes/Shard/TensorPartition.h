//===- TensorPartition.h - A segment as one rank runs it ---------------------------===//
//
// Rewrites a segment that is placed: each op becomes what a rank does of it, on values of the rank's sizes,
// and where a value is read in another form than it is held in, ranks exchange it, once for all readers. The
// text is the same on every rank.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SHARD_TENSORPARTITION_H
#define DS_LIB_PASSES_SHARD_TENSORPARTITION_H

#include "TensorPlacement.h"

#include "ds/Dialect/Work.h"

namespace mlir::ds {

class TensorPartition {
public:
  /// `cutOf` tells where a state is cut.
  TensorPartition(SegmentStates &segment, const TensorCuts &cuts, const TensorPlacement &placement,
                  CutRanks ranks, function_ref<std::optional<Cut>(StringAttr)> cutOf)
      : segment(segment), cuts(cuts), placement(placement), ranks(ranks), cutOf(cutOf),
        builder(segment.getFunction().getContext(), &listener) {}

  /// Rewrites the segment.
  void run();

private:
  using Form = ::ds::analysis::Form;
  /// What this rank has of a value.
  struct Local {
    Value value;                    ///< in the form in which it is held
    DenseMap<unsigned, Value> made; ///< in others
  };

  void follow(Operation *op, Value value);
  void retypeArguments();
  void rewrite(Operation *op);
  /// Repeats `op` on what `read` gives for each operand.
  void repeat(Operation *op, function_ref<Value(Value)> read);
  void rewriteUpdate(UpdateOp update);
  Value readAs(Value value, Form form);
  /// A gradient as an update reads it, or a segment leaves it: as its parameter is held, and as addends where
  /// it is made so.
  Value readGradient(Value value, StringAttr parameter);
  Value readPart(Value value, const Cut &cut);
  Value makePart(Value value, const Cut &cut);
  /// The type of the whole of `value`.
  RankedTensorType wholeType(Value value) const;
  Value exchange(Value value, Form held, Form form);
  void setLocal(Value value, Value local) { locals[value].value = local; }
  void rewriteCut(Operation *op, const OpWay &way);

  SegmentStates &segment;
  const TensorCuts &cuts;
  const TensorPlacement &placement;
  CutRanks ranks;
  function_ref<std::optional<Cut>(StringAttr)> cutOf;
  WorkListener listener;
  OpBuilder builder;
  Operation *current = nullptr;                ///< whose work is built
  SmallVector<RankedTensorType> argumentTypes; ///< before they were those of parts
  DenseMap<Value, StringAttr> parameters;      ///< by gradient that updates read
  DenseMap<Value, Local> locals;
  DenseMap<Value, SmallVector<std::pair<Cut, Value>, 2>> parts; ///< of values that each rank has whole
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_TENSORPARTITION_H
