//===- GeluOps.cpp - Verifiers, costs and calls of products that apply GELU ------===//
#include "OpHelpers.h"
#include "ds/Dialect/DsGelu.h"
#include "ds/Runtime/Library.h"

using namespace mlir;
using namespace mlir::ds;
using ::ds::rt::Activation;

/// The sums, without GELU's few operations on each.
static int64_t productFlops(Value rhs, bool transposeRhs, Value result) {
  RankedTensorType type = tensorType(rhs);
  return 2 * tensorType(result).getNumElements() * type.getDimSize(type.getRank() - (transposeRhs ? 1 : 2));
}

/// A call of "matmul" with the op's first two operands, its first result and `others`.
template <class OpTy>
static LibraryCall productCall(OpTy op, ArrayRef<unsigned> others, Activation activation) {
  LibraryCall call;
  call.callee = "matmul";
  call.order = {0, 1, op->getNumOperands()};
  llvm::append_range(call.order, others);
  call.params = makeParams(op.getContext(), {op.getTransposeLhs(), op.getTransposeRhs(), /*accumulate=*/0,
                                             static_cast<int64_t>(activation)});
  return call;
}

//===----------------------------------------------------------------------===//
// MatmulGeluOp
//===----------------------------------------------------------------------===//

LogicalResult MatmulGeluOp::verify() {
  Type type = getResult().getType();
  if (failed(verifyProduct(*this, {getLhs(), getRhs(), getBias(), getTransposeLhs(), getTransposeRhs()},
                           type))) // C1.
    return failure();
  return getInput() ? expectType(*this, "GELU's input", type, getInput().getType()) : success(); // C2.
}

int64_t MatmulGeluOp::getFlops() { return productFlops(getRhs(), getTransposeRhs(), getResult()); }

LibraryCall MatmulGeluOp::getLibraryCall() {
  SmallVector<unsigned> others;
  if (getBias())
    others.push_back(2);
  if (getInput())
    others.push_back(getNumOperands() + 1);
  return productCall(*this, others, Activation::Gelu);
}

//===----------------------------------------------------------------------===//
// MatmulGeluGradOp
//===----------------------------------------------------------------------===//

LogicalResult MatmulGeluGradOp::verify() {
  if (failed(verifyProduct(*this, {getLhs(), getRhs(), Value(), getTransposeLhs(), getTransposeRhs()},
                           getType()))) // C1.
    return failure();
  return expectType(*this, "GELU's input", getType(), getInput().getType()); // C2.
}

int64_t MatmulGeluGradOp::getFlops() { return productFlops(getRhs(), getTransposeRhs(), getResult()); }

LibraryCall MatmulGeluGradOp::getLibraryCall() { return productCall(*this, {2}, Activation::GeluGradient); }

#define GET_OP_CLASSES
#include "ds/Dialect/DsGeluOps.cpp.inc"
