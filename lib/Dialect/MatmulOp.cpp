//===- MatmulOp.cpp - Verifier, cost, call and folds of ds.matmul -----------------===//
#include "OpHelpers.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::ds;

/// Sizes (rows, columns) of `type`'s matrices after an optional transposition.
static std::pair<int64_t, int64_t> matrixSizes(RankedTensorType type, bool transposed) {
  int64_t rows = type.getDimSize(type.getRank() - 2), columns = type.getDimSize(type.getRank() - 1);
  return transposed ? std::pair(columns, rows) : std::pair(rows, columns);
}

/// Result type of lhs * rhs.
static RankedTensorType matmulType(RankedTensorType lhs, RankedTensorType rhs, bool transposeLhs,
                                   bool transposeRhs) {
  SmallVector<int64_t> shape(lhs.getShape());
  shape[shape.size() - 2] = matrixSizes(lhs, transposeLhs).first;
  shape.back() = matrixSizes(rhs, transposeRhs).second;
  return lhs.clone(shape);
}

void MatmulOp::build(OpBuilder &builder, OperationState &state, Value lhs, Value rhs, bool transposeLhs,
                     bool transposeRhs) {
  RankedTensorType type = matmulType(tensorType(lhs), tensorType(rhs), transposeLhs, transposeRhs);
  build(builder, state, type, lhs, rhs, Value(), Value(), transposeLhs, transposeRhs, /*relu=*/false);
}

LogicalResult mlir::ds::verifyProduct(Operation *op, const Product &product, Type result) {
  RankedTensorType lhs = tensorType(product.lhs), rhs = tensorType(product.rhs);
  bool isBatched = rhs.getRank() > 2;
  if (lhs.getRank() < 2 || rhs.getRank() < 2 ||
      (isBatched && lhs.getShape().drop_back(2) != rhs.getShape().drop_back(2))) // C1.
    return op->emitOpError("expects matrices, or equal leading dimensions, but got ")
           << lhs << " and " << rhs;
  if (product.transposeLhs && !isBatched && lhs.getRank() != 2) // C6.
    return op->emitOpError("expects a rank-2 lhs to transpose against a rank-2 rhs, but got ") << lhs;
  int64_t left = matrixSizes(lhs, product.transposeLhs).second,
          right = matrixSizes(rhs, product.transposeRhs).first;
  if (left != right) // C2.
    return op->emitOpError("expects equal contracted sizes, but got ") << left << " and " << right;
  RankedTensorType expected = matmulType(lhs, rhs, product.transposeLhs, product.transposeRhs);
  if (failed(expectType(op, "rhs", rhs.clone(lhs.getElementType()), rhs))) // C3.
    return failure();
  Type f32 = Float32Type::get(op->getContext());
  if (result == expected.clone(f32) && lhs.getElementTypeBitWidth() == 16)
    expected = expected.clone(f32);                       // The sums as they are.
  if (failed(expectType(op, "result", expected, result))) // C4.
    return failure();
  if (!product.bias)
    return success();
  return expectType(op, "bias", lhs.clone({expected.getShape().back()}), product.bias.getType()); // C5.
}

LogicalResult MatmulOp::verify() {
  if (failed(verifyProduct(*this, {getLhs(), getRhs(), getBias(), getTransposeLhs(), getTransposeRhs()},
                           getType())))
    return failure();
  return getAccumulator() ? expectType(*this, "accumulator", getType(), getAccumulator().getType())
                          : success(); // C5.
}

int64_t MatmulOp::getFlops() {
  int64_t contracted = matrixSizes(tensorType(getRhs()), getTransposeRhs()).first;
  return 2 * tensorType(getResult()).getNumElements() * contracted;
}

LibraryCall MatmulOp::getLibraryCall() {
  LibraryCall call;
  unsigned numOperands = getNumOperands();
  call.callee = "matmul";
  call.takesStrides = true;
  call.order = {0, 1, numOperands};
  if (getBias())
    call.order.push_back(2);
  if (getAccumulator())
    call.inPlace.push_back({0, numOperands - 1});
  call.params =
      makeParams(getContext(), {getTransposeLhs(), getTransposeRhs(), getAccumulator() ? 1 : 0, getRelu()});
  return call;
}

/// The input of a transposition that swaps exactly the last two dimensions of `value`; null otherwise.
static Value lookThroughMatrixTranspose(Value value) {
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (!transpose)
    return {};
  SmallVector<int64_t> swapped = llvm::to_vector(llvm::seq<int64_t>(0, transpose.getPerm().size()));
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  return transpose.getPerm() == ArrayRef(swapped) ? transpose.getInput() : Value();
}

namespace {
/// matmul(transpose(a), b) -> matmul(a, b) with the flag flipped, for either side.
struct FoldTransposeIntoMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    Value lhs = lookThroughMatrixTranspose(op.getLhs()), rhs = lookThroughMatrixTranspose(op.getRhs());
    // A rank-2 rhs sees a deeper lhs as rows: there is no matrix of its own to transpose.
    if (lhs && tensorType(lhs).getRank() != tensorType(op.getRhs()).getRank())
      lhs = {};
    if (!lhs && !rhs)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      if (lhs) {
        op.getLhsMutable().assign(lhs);
        op.setTransposeLhs(!op.getTransposeLhs());
      }
      if (rhs) {
        op.getRhsMutable().assign(rhs);
        op.setTransposeRhs(!op.getTransposeRhs());
      }
    });
    return success();
  }
};

/// add(matmul(a, b), broadcast(c along the last dimension)) -> matmul(a, b) bias(c).
struct FoldBiasIntoMatmul : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    for (bool swapped : {false, true}) {
      auto matmul = (swapped ? op.getRhs() : op.getLhs()).getDefiningOp<MatmulOp>();
      auto bias = (swapped ? op.getLhs() : op.getRhs()).getDefiningOp<BroadcastOp>();
      if (!matmul || !bias || !matmul->hasOneUse() || matmul.getBias() || matmul.getAccumulator() ||
          matmul.getRelu())
        continue;
      int64_t rank = tensorType(op.getResult()).getRank();
      if (bias.getDims() != ArrayRef<int64_t>{rank - 1} ||
          tensorType(bias.getInput()).getDimSize(0) != tensorType(op.getResult()).getDimSize(rank - 1))
        continue;
      rewriter.replaceOpWithNewOp<MatmulOp>(op, op.getType(), matmul.getLhs(), matmul.getRhs(),
                                            bias.getInput(), Value(), matmul.getTransposeLhs(),
                                            matmul.getTransposeRhs(), false);
      return success();
    }
    return failure();
  }
};
/// True when every element of `value` is a constant zero.
static bool isZero(Value value) {
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat)) && isa<FloatType>(splat.getElementType()) &&
         splat.getSplatValue<APFloat>().isZero();
}

/// select(m <= 0, 0, m) of a product m that nothing else reads -> the product with relu. Not so
/// select(m > 0, m, 0), which makes 0 of NaN.
struct FoldReluIntoMatmul : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op, PatternRewriter &rewriter) const override {
    auto matmul = op.getOnFalse().getDefiningOp<MatmulOp>();
    auto compare = op.getCondition().getDefiningOp<CompareOp>();
    if (!matmul || !compare || matmul.getRelu() || matmul.getAccumulator() || !isZero(op.getOnTrue()) ||
        compare.getPredicate() != Predicate::LE || compare.getLhs() != matmul.getResult() ||
        !isZero(compare.getRhs()) || !compare->hasOneUse())
      return failure();
    if (!llvm::all_of(matmul->getUsers(), [&](Operation *user) { return user == op || user == compare; }))
      return failure();
    rewriter.replaceOpWithNewOp<MatmulOp>(op, op.getType(), matmul.getLhs(), matmul.getRhs(),
                                          matmul.getBias(), Value(), matmul.getTransposeLhs(),
                                          matmul.getTransposeRhs(), /*relu=*/true);
    return success();
  }
};
} // namespace

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldTransposeIntoMatmul, FoldBiasIntoMatmul, FoldReluIntoMatmul>(context);
}
