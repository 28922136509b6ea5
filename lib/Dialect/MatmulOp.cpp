//===- MatmulOp.cpp - Verifier, cost, call and folds of ds.matmul -----------------===//
#include "OpHelpers.h"

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
  build(builder, state, type, lhs, rhs, /*bias=*/Value(), transposeLhs, transposeRhs);
}

void MatmulOp::build(OpBuilder &builder, OperationState &state, Type type, Value lhs, Value rhs, Value bias,
                     bool transposeLhs, bool transposeRhs) {
  build(builder, state, type, /*kept=*/Type(), lhs, rhs, bias, /*accumulator=*/Value(), /*input=*/Value(),
        transposeLhs, transposeRhs, Epilogue::None);
}

void MatmulOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (!getKept())
    return;
  setName(getResult(), "result");
  setName(getKept(), "kept");
}

/// Verifies that the factors can be multiplied: constraints (C1), (C2) and (C6).
static LogicalResult verifyFactors(MatmulOp op) {
  RankedTensorType lhs = tensorType(op.getLhs()), rhs = tensorType(op.getRhs());
  bool isBatched = rhs.getRank() > 2;
  if (lhs.getRank() < 2 || rhs.getRank() < 2 ||
      (isBatched && lhs.getShape().drop_back(2) != rhs.getShape().drop_back(2))) // C1.
    return op.emitOpError("expects matrices, or equal leading dimensions, but got ") << lhs << " and " << rhs;
  if (op.getTransposeLhs() && !isBatched && lhs.getRank() != 2) // C6.
    return op.emitOpError("expects a rank-2 lhs to transpose against a rank-2 rhs, but got ") << lhs;
  int64_t left = matrixSizes(lhs, op.getTransposeLhs()).second,
          right = matrixSizes(rhs, op.getTransposeRhs()).first;
  if (left != right) // C2.
    return op.emitOpError("expects equal contracted sizes, but got ") << left << " and " << right;
  return success();
}

LogicalResult MatmulOp::verify() {
  if (failed(verifyFactors(*this)))
    return failure();
  RankedTensorType lhs = tensorType(getLhs()), rhs = tensorType(getRhs());
  RankedTensorType expected = matmulType(lhs, rhs, getTransposeLhs(), getTransposeRhs());
  if (failed(expectType(*this, "rhs", rhs.clone(lhs.getElementType()), rhs))) // C3.
    return failure();
  Type f32 = Float32Type::get(getContext()), type = getResult().getType();
  if (type == expected.clone(f32) && lhs.getElementTypeBitWidth() == 16)
    expected = expected.clone(f32);                        // The sums as they are.
  if (failed(expectType(*this, "result", expected, type))) // C4.
    return failure();
  if (getBias() && failed(expectType(*this, "bias", lhs.clone({expected.getShape().back()}),
                                     getBias().getType()))) // C5.
    return failure();
  if (getAccumulator() && failed(expectType(*this, "accumulator", type, getAccumulator().getType()))) // C5.
    return failure();
  return verifyEpilogue(*this);
}

int64_t MatmulOp::getFlops() {
  int64_t contracted = matrixSizes(tensorType(getRhs()), getTransposeRhs()).first;
  return 2 * tensorType(getResult()).getNumElements() * contracted;
}

LibraryCall MatmulOp::getLibraryCall() {
  LibraryCall call;
  auto operand = [&](OpOperand &use) { return use.getOperandNumber(); };
  call.callee = ::ds::rt::LibraryFn::Matmul;
  call.takesStrides = mayStride(getEpilogue());
  call.order = {0, 1, getNumOperands()};
  if (getBias())
    call.order.push_back(operand(*getBiasMutable().begin()));
  if (getInput())
    call.order.push_back(operand(*getInputMutable().begin()));
  if (getKept())
    call.order.push_back(getNumOperands() + 1);
  if (getAccumulator())
    call.inPlace.push_back({0, operand(*getAccumulatorMutable().begin())});
  call.params = makeParams(getContext(), {getTransposeLhs(), getTransposeRhs(), getAccumulator() ? 1 : 0,
                                          static_cast<int64_t>(getEpilogue())});
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
          matmul.getEpilogue() != Epilogue::None)
        continue;
      int64_t rank = tensorType(op.getResult()).getRank();
      if (bias.getDims() != ArrayRef<int64_t>{rank - 1} ||
          tensorType(bias.getInput()).getDimSize(0) != tensorType(op.getResult()).getDimSize(rank - 1))
        continue;
      rewriter.replaceOpWithNewOp<MatmulOp>(op, op.getType(), matmul.getLhs(), matmul.getRhs(),
                                            bias.getInput(), matmul.getTransposeLhs(),
                                            matmul.getTransposeRhs());
      return success();
    }
    return failure();
  }
};
} // namespace

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldTransposeIntoMatmul, FoldBiasIntoMatmul>(context);
  populateFoldEpiloguePatterns(patterns);
}
