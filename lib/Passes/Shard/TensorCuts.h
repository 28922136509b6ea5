//===- TensorCuts.h - Where the values of a segment could be cut -----------------===//
//
// Every cut of a value that some op could make something of. Cuts begin where they can come from: at the
// dimensions of parameters, which are what tensor parallelism divides, at the key heads of attention, and,
// where rows may be cut, at the sequence. Through the factors of ops they reach all that is made of them,
// forward and backward.
//
//   %w = 64 x 192, %y = %x * %w, split into q, k, v of 64 columns, each seen as 4 heads of 16:
//     the heads of attention are dimension 2 of q, behind none; columns of q, dimension 2, behind none;
//     so columns of %y behind 3 others, and so columns of %w behind 3.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SHARD_TENSORCUTS_H
#define DS_LIB_PASSES_SHARD_TENSORCUTS_H

#include "ds/Dialect/Sharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

class TensorCuts {
public:
  /// Values that are cut alike: an argument that is a parameter, then gradients of it.
  using Alike = SmallVector<Value, 3>;

  /// Looks at `func` for cuts among `ranks`, of rows too where `rows` says so.
  TensorCuts(func::FuncOp func, ArrayRef<Alike> parameters, int64_t ranks, bool rows);

  /// The cuts of `value`, the first ones that were found first.
  ArrayRef<Cut> of(Value value) const;
  /// The rule of `op`, which has none where it runs whole.
  const ShardingRule &ruleOf(Operation *op) const;

private:
  void add(Value value, const Cut &cut);
  void seed(func::FuncOp func, ArrayRef<Alike> parameters, bool rows);
  void spread(Operation *op, const ShardingFactor &factor, const Blocks &blocks);
  void visit(Operation *op, Value from, const Cut &cut);

  int64_t ranks;
  DenseMap<Operation *, ShardingRule> rules;
  DenseMap<Value, SmallVector<Cut, 4>> cuts;
  DenseMap<Value, SmallVector<Value, 3>> alike; ///< by value that is cut as others are
  SmallVector<std::pair<Value, Cut>> open;      ///< found, and not spread yet
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_TENSORCUTS_H
