//===- ShardingExchanges.cpp - From one way of having a value to another ---------===//
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Sharding.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ds;

namespace {
/// A value as [before, ranks, block]: what is outside of the cut factor, its parts, and what is inside; where
/// pieces of different sizes are cut, several of these one behind the other.
struct CutShape {
  CutShape(RankedTensorType type, const Cut &cut, int64_t ranks)
      : ranks(ranks), blocks(cut.blocks.sizes(type.getDimSize(cut.dim))) {
    before = cut.blocks.outer;
    for (int64_t dim = 0; dim < cut.dim; ++dim)
      before *= type.getDimSize(dim);
    int64_t inside = 1;
    for (int64_t dim = cut.dim + 1; dim < type.getRank(); ++dim)
      inside *= type.getDimSize(dim);
    for (int64_t &block : blocks)
      block = block / ranks * inside;
    part = std::accumulate(blocks.begin(), blocks.end(), int64_t(0));
  }

  int64_t before = 1, ranks;
  SmallVector<int64_t> blocks; ///< elements of a rank's part of each
  int64_t part = 0;            ///< of all
};
} // namespace

/// Exchanges the first two of three dimensions.
static Value swapFirst(OpEmitter &emit, Value value) {
  const ArrayRef<int64_t> shape = tensorType(value).getShape();
  if (shape[0] == 1 || shape[1] == 1)
    return emit.reshape(value, {shape[1], shape[0], shape[2]});
  return emit.getBuilder().create<TransposeOp>(emit.getLoc(), value, ArrayRef<int64_t>{1, 0, 2});
}

/// `value` cut along `dim` into one for each of the blocks, `times` as large.
static ValueRange splitBlocks(OpEmitter &emit, Value value, int64_t dim, const CutShape &shape,
                              int64_t times) {
  SmallVector<Type> types;
  for (int64_t block : shape.blocks) {
    SmallVector<int64_t> sizes(tensorType(value).getShape());
    sizes[dim] = block * times;
    types.push_back(tensorType(value).clone(sizes));
  }
  return emit.getBuilder().create<SplitOp>(emit.getLoc(), types, value, dim).getPieces();
}

/// `pieces` one behind the other along `dim`, in a value of `sizes`.
static Value join(OpEmitter &emit, ValueRange pieces, int64_t dim, ArrayRef<int64_t> sizes) {
  return emit.getBuilder().create<ConcatOp>(emit.getLoc(), tensorType(pieces.front()).clone(sizes), pieces,
                                            dim);
}

/// Brings the ranks' parts of `whole` side by side: [ranks, before, part].
static Value partsFirst(OpEmitter &emit, Value whole, const CutShape &shape) {
  if (shape.blocks.size() == 1 && shape.before == 1)
    return emit.reshape(whole, {shape.ranks, 1, shape.part});
  if (shape.blocks.size() == 1)
    return swapFirst(emit, emit.reshape(whole, {shape.before, shape.ranks, shape.part}));
  Value apart = emit.reshape(whole, {shape.before, shape.ranks * shape.part});
  SmallVector<Value> pieces;
  for (auto [piece, block] : llvm::zip_equal(splitBlocks(emit, apart, 1, shape, shape.ranks), shape.blocks))
    pieces.push_back(swapFirst(emit, emit.reshape(piece, {shape.before, shape.ranks, block})));
  return join(emit, pieces, 2, {shape.ranks, shape.before, shape.part});
}

/// The inverse, in the shape of `type`.
static Value fromParts(OpEmitter &emit, Value parts, RankedTensorType type, const CutShape &shape) {
  if (shape.blocks.size() == 1)
    return emit.reshape(shape.before == 1 ? parts : swapFirst(emit, parts), type.getShape());
  SmallVector<Value> pieces;
  for (auto [piece, block] : llvm::zip_equal(splitBlocks(emit, parts, 2, shape, 1), shape.blocks))
    pieces.push_back(emit.reshape(swapFirst(emit, piece), {shape.before, shape.ranks * block}));
  return emit.reshape(join(emit, pieces, 1, {shape.before, shape.ranks * shape.part}), type.getShape());
}

Value mlir::ds::takePart(OpBuilder &builder, Location loc, Value whole, const Cut &cut, CutRanks ranks) {
  OpEmitter emit(builder, loc);
  const RankedTensorType type = tensorType(whole), local = localType(type, cut, ranks.count);
  const CutShape shape(type, cut, ranks.count);
  auto one = RankedTensorType::get({1, shape.before, shape.part}, type.getElementType());
  Value parts = partsFirst(emit, whole, shape);
  return emit.reshape(builder.create<LocalShardOp>(loc, one, parts, ranks.axes), local.getShape());
}

Value mlir::ds::gatherParts(OpBuilder &builder, Location loc, Value part, RankedTensorType type,
                            const Cut &cut, CutRanks ranks) {
  OpEmitter emit(builder, loc);
  const CutShape shape(type, cut, ranks.count);
  auto all = RankedTensorType::get({shape.ranks, shape.before, shape.part}, type.getElementType());
  Value parts =
      builder.create<AllGatherOp>(loc, all, emit.reshape(part, {1, shape.before, shape.part}), ranks.axes);
  return fromParts(emit, parts, type, shape);
}

Value mlir::ds::exchangeParts(OpBuilder &builder, Location loc, Value part, RankedTensorType type,
                              const Cut &from, const Cut &to, CutRanks ranks) {
  OpEmitter emit(builder, loc);
  // What a rank has of a value that is cut both ways is what it sends to one, and gets from one.
  const RankedTensorType wanted = localType(type, to, ranks.count);
  const CutShape sent(tensorType(part), to, ranks.count), received(wanted, from, ranks.count);
  Value parts = partsFirst(emit, part, sent);
  parts = builder.create<AllToAllOp>(loc, parts.getType(), parts, ranks.axes);
  return fromParts(emit, emit.reshape(parts, {received.ranks, received.before, received.part}), wanted,
                   received);
}

Value mlir::ds::scatterSum(OpBuilder &builder, Location loc, Value addend, const Cut &cut, CutRanks ranks) {
  OpEmitter emit(builder, loc);
  const RankedTensorType type = tensorType(addend), local = localType(type, cut, ranks.count);
  const CutShape shape(type, cut, ranks.count);
  auto one = RankedTensorType::get({1, shape.before, shape.part}, type.getElementType());
  Value parts = partsFirst(emit, addend, shape);
  Value sum = builder.create<ReduceScatterOp>(loc, one, ReduceKind::Sum, parts, ranks.axes);
  return emit.reshape(sum, local.getShape());
}

Value mlir::ds::combineAll(OpBuilder &builder, Location loc, ReduceKind kind, Value value, CutRanks ranks) {
  return builder.create<AllReduceOp>(loc, value.getType(), kind, value, ranks.axes);
}
