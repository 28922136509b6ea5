//===- RaiseSplits.cpp - Slices that cut a value into pieces become one split -----===//
//
// A fused projection is cut into query, key and value by one op or by a slice for each, whose gradients would
// each pad to the whole and be added up. Neighbours that rotate are every second element each: a split of
// pairs. Both are looked for among all that read a value.
//
//===----------------------------------------------------------------------------===//
#include "Support/StraightLine.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_RAISESPLITS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// A slice that takes all of its input but along one dimension.
struct Cut {
  SliceOp op;
  int64_t dim, offset, size, stride;
};
} // namespace

/// `slice` as a cut; nothing where it is one of several dimensions, or of none.
static std::optional<Cut> asCut(SliceOp slice) {
  std::optional<Cut> cut;
  ArrayRef<int64_t> from = tensorType(slice.getInput()).getShape(),
                    to = tensorType(slice.getResult()).getShape();
  for (auto [dim, size] : llvm::enumerate(to)) {
    if (size == from[dim])
      continue;
    if (cut)
      return std::nullopt;
    // The stride of a single element says nothing.
    const int64_t stride = size == 1 ? 1 : slice.getStrides()[dim];
    cut = Cut{slice, static_cast<int64_t>(dim), slice.getOffsets()[dim], size, stride};
  }
  return cut;
}

/// Whether the cuts, by offset, are consecutive pieces that make up `size` elements.
static bool arePieces(ArrayRef<Cut> cuts, int64_t size) {
  int64_t end = 0;
  for (const Cut &cut : cuts) {
    if (cut.stride != 1 || cut.offset != end)
      return false;
    end += cut.size;
  }
  return end == size;
}

/// Whether the cuts, by offset, take every n-th of `size` elements each, n of them all.
static bool areTeeth(ArrayRef<Cut> cuts, int64_t size) {
  const auto count = static_cast<int64_t>(cuts.size());
  return size % count == 0 && llvm::all_of(llvm::enumerate(cuts), [&](auto entry) {
           const Cut &cut = entry.value();
           return cut.stride == count && cut.offset == static_cast<int64_t>(entry.index()) &&
                  cut.size == size / count;
         });
}

/// A split of `value` into pieces of `sizes` along `dim`.
static SplitOp split(Emitter emit, Value value, int64_t dim, ArrayRef<int64_t> sizes) {
  SmallVector<Type> types;
  for (int64_t size : sizes) {
    SmallVector<int64_t> shape(tensorType(value).getShape());
    shape[dim] = size;
    types.push_back(tensorType(value).clone(shape));
  }
  return emit.getBuilder().create<SplitOp>(emit.getLoc(), types, value,
                                           emit.getBuilder().getI64IntegerAttr(dim));
}

/// Puts a split in place of the cuts of `value` along one dimension, by offset, where they are all of it;
/// true if it did.
static bool raise(Value value, ArrayRef<Cut> cuts) {
  const int64_t dim = cuts.front().dim, size = tensorType(value).getDimSize(dim);
  const bool hasTeeth = areTeeth(cuts, size);
  if (cuts.size() < 2 || (!hasTeeth && !arePieces(cuts, size)))
    return false;
  Operation *first = cuts.front().op;
  for (const Cut &cut : cuts)
    first = cut.op->isBeforeInBlock(first) ? cut.op : first;
  OpBuilder builder(first);
  Emitter emit(builder, first->getLoc());
  SmallVector<int64_t> sizes;
  int64_t along = dim;
  if (hasTeeth) {
    SmallVector<int64_t> shape(tensorType(value).getShape());
    const auto count = static_cast<int64_t>(cuts.size());
    shape[dim] /= count;
    shape.insert(shape.begin() + dim + 1, count);
    value = emit.reshape(value, shape);
    sizes.assign(count, 1), along = dim + 1;
  } else {
    for (const Cut &cut : cuts)
      sizes.push_back(cut.size);
  }
  SplitOp pieces = split(emit, value, along, sizes);
  for (auto [cut, piece] : llvm::zip_equal(cuts, pieces.getPieces())) {
    SliceOp slice = cut.op;
    slice.getResult().replaceAllUsesWith(emit.reshape(piece, tensorType(slice.getResult()).getShape()));
  }
  return true;
}

/// Raises what cuts `value`, dimension by dimension; true where it found something.
static bool raiseCuts(Value value) {
  SmallVector<Cut> cuts;
  for (Operation *user : value.getUsers())
    if (auto slice = dyn_cast<SliceOp>(user); slice && !slice.use_empty())
      if (std::optional<Cut> cut = asCut(slice))
        cuts.push_back(*cut);
  llvm::sort(cuts, [](const Cut &a, const Cut &b) {
    return std::tuple(a.dim, a.offset, a.stride) < std::tuple(b.dim, b.offset, b.stride);
  });
  bool changed = false;
  for (ArrayRef<Cut> left = cuts; !left.empty();) {
    ArrayRef<Cut> same = left.take_while([&](const Cut &cut) { return cut.dim == left.front().dim; });
    left = left.drop_front(same.size());
    changed |= raise(value, same);
  }
  return changed;
}

/// A split along a dimension before the last of what was reshaped cuts the last dimension of another reshape:
/// so heads that were unfolded first are cut as columns. Pieces are reshaped in place of the whole. True if
/// it did.
static bool cutColumns(SplitOp op) {
  auto reshape = op.getInput().getDefiningOp<ReshapeOp>();
  const auto dim = static_cast<int64_t>(op.getDim());
  ArrayRef<int64_t> shape = tensorType(op.getInput()).getShape();
  const auto rank = static_cast<int64_t>(shape.size());
  if (!reshape || dim + 1 == rank)
    return false;
  const int64_t inner = ShapedType::getNumElements(shape.drop_front(dim + 1));
  SmallVector<int64_t> flat(shape.take_front(dim + 1)), sizes;
  flat.back() *= inner;
  OpBuilder builder(op);
  Emitter emit(builder, op.getLoc());
  for (Value piece : op.getPieces())
    sizes.push_back(tensorType(piece).getDimSize(dim) * inner);
  SplitOp columns = split(emit, emit.reshape(reshape.getInput(), flat), dim, sizes);
  for (auto [piece, column] : llvm::zip_equal(op.getPieces(), columns.getPieces()))
    piece.replaceAllUsesWith(emit.reshape(column, tensorType(piece).getShape()));
  op.erase();
  return true;
}

namespace {
struct RaiseSplits : mlir::ds::impl::RaiseSplitsBase<RaiseSplits> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    SmallVector<SliceOp> slices = llvm::to_vector(getOperation().getOps<SliceOp>());
    bool changed = false;
    for (SliceOp slice : slices)
      if (!slice.use_empty())
        changed |= raiseCuts(slice.getInput());
    for (SliceOp slice : llvm::reverse(slices))
      if (slice.use_empty())
        slice.erase();
    for (SplitOp split : llvm::to_vector(getOperation().getOps<SplitOp>()))
      changed |= cutColumns(split);
    if (changed)
      (void)applyPatternsAndFoldGreedily(getOperation(), RewritePatternSet(&getContext()),
                                         straightLineConfig());
  }
};
} // namespace
