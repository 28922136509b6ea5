//===- ShardingExchanges.cpp - From one way of having a value to another ---------===//
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Sharding.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
/// A value as [before, ranks, block]: what is outside of the cut factor, its parts, and what is inside.
struct CutShape {
  CutShape(RankedTensorType type, Cut cut, int64_t ranks) : ranks(ranks) {
    before = cut.outer;
    for (int64_t dim = 0; dim < cut.dim; ++dim)
      before *= type.getDimSize(dim);
    block = type.getNumElements() / (before * ranks);
  }
  int64_t before = 1, ranks, block = 1;
};
} // namespace

/// Brings the ranks' parts of `whole` side by side: [ranks, before, block].
static Value partsFirst(OpEmitter &emit, Value whole, const CutShape &shape) {
  if (shape.before == 1)
    return emit.reshape(whole, {shape.ranks, 1, shape.block});
  Value apart = emit.reshape(whole, {shape.before, shape.ranks, shape.block});
  return emit.getBuilder().create<TransposeOp>(emit.getLoc(), apart, ArrayRef<int64_t>{1, 0, 2});
}

Value mlir::ds::takePart(OpBuilder &builder, Location loc, Value whole, Cut cut, CutRanks ranks) {
  OpEmitter emit(builder, loc);
  const RankedTensorType type = tensorType(whole), local = localType(type, cut, ranks.count);
  const CutShape shape(type, cut, ranks.count);
  auto one = RankedTensorType::get({1, shape.before, shape.block}, type.getElementType());
  Value parts = partsFirst(emit, whole, shape);
  return emit.reshape(builder.create<LocalShardOp>(loc, one, parts, ranks.axes), local.getShape());
}

Value mlir::ds::gatherParts(OpBuilder &builder, Location loc, Value part, RankedTensorType type, Cut cut,
                            CutRanks ranks) {
  OpEmitter emit(builder, loc);
  const CutShape shape(type, cut, ranks.count);
  auto all = RankedTensorType::get({shape.ranks, shape.before, shape.block}, type.getElementType());
  Value parts =
      builder.create<AllGatherOp>(loc, all, emit.reshape(part, {1, shape.before, shape.block}), ranks.axes);
  if (shape.before != 1)
    parts = builder.create<TransposeOp>(loc, parts, ArrayRef<int64_t>{1, 0, 2});
  return emit.reshape(parts, type.getShape());
}

Value mlir::ds::scatterSum(OpBuilder &builder, Location loc, Value addend, Cut cut, CutRanks ranks) {
  OpEmitter emit(builder, loc);
  const RankedTensorType type = tensorType(addend), local = localType(type, cut, ranks.count);
  const CutShape shape(type, cut, ranks.count);
  auto one = RankedTensorType::get({1, shape.before, shape.block}, type.getElementType());
  Value parts = partsFirst(emit, addend, shape);
  Value sum = builder.create<ReduceScatterOp>(loc, one, ReduceKind::Sum, parts, ranks.axes);
  return emit.reshape(sum, local.getShape());
}

Value mlir::ds::combineAll(OpBuilder &builder, Location loc, ReduceKind kind, Value value, CutRanks ranks) {
  return builder.create<AllReduceOp>(loc, value.getType(), kind, value, ranks.axes);
}
