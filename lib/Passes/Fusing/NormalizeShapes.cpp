//===- NormalizeShapes.cpp - Brings shapes into the forms that fuse --------------===//
//
// Importers and gradients leave reshapes between elementwise ops, keep unit dimensions after reductions, and
// reduce wherever the model says. A kernel has one iteration space, so these patterns move what is in the
// way: reshapes sink, unit dimensions go, reductions become leading or trailing.
//
//===---------------------------------------------------------------------------===//
#include "FusionDomain.h"
#include "Support/StraightLine.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

namespace mlir::ds {
#define GEN_PASS_DEF_NORMALIZESHAPES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// A full reduction of more elements than this is done in two stages, so that its first has rows to share
/// out.
static constexpr int64_t kSerialElements = 16384;

/// True when `value` is one scalar everywhere: a broadcast of a rank-0 tensor or a splat constant.
static bool isScalarRepeated(Value value) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    return tensorType(broadcast.getInput()).getRank() == 0;
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat));
}

/// True when `operand` is available in `shape`: reshaped from there, or one scalar everywhere.
static bool isAvailableIn(Value operand, ArrayRef<int64_t> shape) {
  auto reshape = operand.getDefiningOp<ReshapeOp>();
  return (reshape && tensorType(reshape.getInput()).getShape() == shape) || isScalarRepeated(operand);
}

/// `operand`, which is available in `shape`, in that shape.
static Value inShape(Value operand, ArrayRef<int64_t> shape, PatternRewriter &rewriter) {
  if (auto reshape = operand.getDefiningOp<ReshapeOp>())
    if (tensorType(reshape.getInput()).getShape() == shape)
      return reshape.getInput();
  RankedTensorType type = tensorType(operand).clone(shape);
  if (auto broadcast = operand.getDefiningOp<BroadcastOp>())
    return rewriter.create<BroadcastOp>(operand.getLoc(), type, broadcast.getInput(), ArrayRef<int64_t>{});
  SplatElementsAttr splat;
  matchPattern(operand, m_Constant(&splat));
  return rewriter.create<ConstantOp>(operand.getLoc(), type, splat.resizeSplat(type));
}

/// True when some innermost dimensions of `shape` have `count` elements together.
static bool hasTrailing(ArrayRef<int64_t> shape, int64_t count) {
  int64_t product = 1;
  for (int64_t size : llvm::reverse(shape)) {
    if (product == count)
      return true;
    product *= size;
  }
  return product == count;
}

/// True when `op`, computed in `shape`, adds up other rows than `shape` has: a reshape before it stays, and
/// the reduction is a kernel of its own for which all of its operand must lie in memory.
static bool reducesOtherRows(ReduceOp op, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(op.getInput());
  bool isTrailing = !op.getDims().empty() && op.getDims().back() == type.getRank() - 1;
  int64_t count = 1;
  for (int64_t dim : op.getDims())
    count *= type.getDimSize(dim);
  return isTrailing && !hasTrailing(shape, count);
}

/// True when nothing but reductions over other rows than those of `shape` reads `value`, directly or through
/// elementwise ops: they and `value` are one kernel if it stays in their shape.
static bool isForOtherRows(Value value, ArrayRef<int64_t> shape, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 8;
  return depth < kMaxDepth && !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
           if (auto reduce = dyn_cast<ReduceOp>(user))
             return reducesOtherRows(reduce, shape);
           return isa<ScalarBodyOpInterface>(user) && isForOtherRows(user->getResult(0), shape, depth + 1);
         });
}

namespace {
/// elementwise(reshape(x), reshape(y), scalar) -> reshape(elementwise(x, y, scalar)), unless it is to be
/// summed up in the shape that it has.
struct SinkReshape : OpInterfaceRewritePattern<ScalarBodyOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(ScalarBodyOpInterface op, PatternRewriter &rewriter) const override {
    auto isReshape = [](Value operand) { return operand.getDefiningOp<ReshapeOp>() != nullptr; };
    auto first = llvm::find_if(op->getOperands(), isReshape);
    if (first == op->operand_end())
      return failure();
    ArrayRef<int64_t> shape = tensorType((*first).getDefiningOp<ReshapeOp>().getInput()).getShape();
    if (!llvm::all_of(op->getOperands(), [&](Value operand) { return isAvailableIn(operand, shape); }) ||
        isForOtherRows(op->getResult(0), shape))
      return failure();
    SmallVector<Value> operands = llvm::map_to_vector(
        op->getOperands(), [&](Value operand) { return inShape(operand, shape, rewriter); });
    OperationState state(op->getLoc(), op->getName());
    state.addOperands(operands);
    state.addAttributes(op->getAttrs());
    state.addTypes(tensorType(op->getResult(0)).clone(shape));
    Operation *sunk = rewriter.create(state);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op->getResult(0).getType(), sunk->getResult(0));
    return success();
  }
};

/// broadcast(reshape(x)), where the reshape only adds or drops unit dimensions -> broadcast(x without them).
struct DropUnitDims : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    RankedTensorType type = tensorType(op.getInput());
    SmallVector<int64_t> kept, dims;
    for (auto [size, dim] : llvm::zip_equal(type.getShape(), op.getDims()))
      if (size != 1) {
        kept.push_back(size);
        dims.push_back(dim);
      }
    if (static_cast<int64_t>(kept.size()) == type.getRank())
      return failure();
    Value dropped = rewriter.createOrFold<ReshapeOp>(op.getLoc(), type.clone(kept), op.getInput());
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), dropped, dims);
    return success();
  }
};

/// broadcast(convert(x)) to a wider type -> convert(broadcast(x)): the kernel that reads x widens it, where a
/// conversion of so few elements would be a kernel of its own.
struct BroadcastNarrow : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto convert = op.getInput().getDefiningOp<ConvertOp>();
    if (!convert || !widens(convert))
      return failure();
    RankedTensorType type = tensorType(convert.getInput()).clone(op.getType().getShape());
    Value repeated = rewriter.create<BroadcastOp>(op.getLoc(), type, convert.getInput(), op.getDims());
    rewriter.replaceOpWithNewOp<ConvertOp>(op, op.getType(), repeated);
    return success();
  }
};

/// A reduction over inner dimensions reads a transposed view whose trailing dimensions it removes.
struct MakeReductionTrailing : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op, PatternRewriter &rewriter) const override {
    int64_t rank = tensorType(op.getInput()).getRank(), count = op.getDims().size();
    if (count == 0 || op.getDims().front() == rank - count || op.getDims().back() == count - 1)
      return failure();
    SmallVector<int64_t> perm;
    for (int64_t dim = 0; dim < rank; ++dim)
      if (!llvm::is_contained(op.getDims(), dim))
        perm.push_back(dim);
    llvm::append_range(perm, op.getDims());
    Value transposed = rewriter.create<TransposeOp>(op.getLoc(), op.getInput(), perm);
    SmallVector<int64_t> trailing = llvm::to_vector(llvm::seq<int64_t>(rank - count, rank));
    rewriter.replaceOpWithNewOp<ReduceOp>(op, op.getKind(), transposed, trailing);
    return success();
  }
};

/// A big full reduction is done over the last dimension first.
struct SplitFullReduction : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op, PatternRewriter &rewriter) const override {
    RankedTensorType type = tensorType(op.getInput());
    int64_t rank = type.getRank();
    if (static_cast<int64_t>(op.getDims().size()) != rank || rank < 2 ||
        type.getNumElements() <= kSerialElements)
      return failure();
    Value rows =
        rewriter.create<ReduceOp>(op.getLoc(), op.getKind(), op.getInput(), ArrayRef<int64_t>{rank - 1});
    SmallVector<int64_t> rest = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
    rewriter.replaceOpWithNewOp<ReduceOp>(op, op.getKind(), rows, rest);
    return success();
  }
};

/// reshape(convert(x)) to a wider type -> convert(reshape(x)). Done once no reshape sinks any further: what
/// still stands between the conversion and its reader would make it a kernel of its own, whose result is the
/// wider one.
void widenBehindReshapes(func::FuncOp func) {
  func.walk([](ReshapeOp reshape) {
    auto convert = reshape.getInput().getDefiningOp<ConvertOp>();
    if (!convert || !widens(convert))
      return;
    WorkListener listener(reshape);
    OpBuilder builder(reshape, &listener);
    RankedTensorType type = tensorType(convert.getInput()).clone(reshape.getType().getShape());
    Value narrow = builder.createOrFold<ReshapeOp>(reshape.getLoc(), type, convert.getInput());
    Value wide = builder.create<ConvertOp>(convert.getLoc(), reshape.getType(), narrow);
    reshape.replaceAllUsesWith(wide);
    reshape.erase();
    if (convert.use_empty())
      convert.erase();
  });
}

struct NormalizeShapes : mlir::ds::impl::NormalizeShapesBase<NormalizeShapes> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Fused)))
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    patterns.add<SinkReshape, DropUnitDims, BroadcastNarrow, MakeReductionTrailing, SplitFullReduction>(
        &getContext());
    WorkListener listener;
    GreedyRewriteConfig config = straightLineConfig(&listener);
    config.useTopDownTraversal = true;
    if (failed(applyPatternsAndFoldGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    widenBehindReshapes(getOperation());
  }
};
} // namespace
