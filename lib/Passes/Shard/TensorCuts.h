//===- TensorCuts.h - Where the values of a segment could be cut -----------------===//
//
// Every cut of a value that some op could make something of. Cuts begin where they can come from: at the
// dimensions of parameters, which are what tensor parallelism divides, at the key heads of attention, and,
// where rows may be cut, at the sequence. Through the factors of ops they reach all that is made of them,
// forward and backward. Ranks that share sequences cut those of attention and what has them, and beside that
// the heads of what attention itself reads and makes.
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

/// Where cuts begin.
enum class CutSeeds : uint8_t {
  Layers,        ///< dimensions of parameters, and key heads of attention
  LayersAndRows, ///< these, and the sequences of activations
  Sequences,     ///< the sequences of attention, or of activations where there is none; no parameters
};

class TensorCuts {
public:
  /// Values that are cut alike: an argument that is a parameter, then gradients of it.
  using Alike = SmallVector<Value, 3>;

  /// Looks at `func` for cuts among `ranks` that begin at `seeds`.
  TensorCuts(func::FuncOp func, ArrayRef<Alike> parameters, int64_t ranks, CutSeeds seeds);

  /// The cuts of `value`, the first ones that were found first.
  ArrayRef<Cut> of(Value value) const;
  /// The rule of `op`, which has none where it runs whole.
  const ShardingRule &ruleOf(Operation *op) const;

private:
  void add(Value value, const Cut &cut);
  void seedLayers(func::FuncOp func, ArrayRef<Alike> parameters, bool rows);
  void seedSequences(func::FuncOp func);
  void seedRows(func::FuncOp func);
  void addHeads(func::FuncOp func);
  void spreadAll();
  void spread(Operation *op, const ShardingFactor &factor, const Blocks &blocks);
  void visit(Operation *op, Value from, const Cut &cut);

  int64_t ranks;
  DenseMap<Operation *, ShardingRule> rules;
  DenseMap<Value, SmallVector<Cut, 4>> cuts;
  DenseMap<Value, SmallVector<Value, 3>> alike; ///< by value that is cut as others are
  SmallVector<std::pair<Value, Cut>> open;      ///< found, and not spread yet
};

/// Whether `value` is a forward activation whose dimension 1 can be a sequence: [batch, sequence, width].
bool hasRows(Value value);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_TENSORCUTS_H
