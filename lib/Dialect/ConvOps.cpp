//===- ConvOps.cpp - Verifiers and costs of convolutions --------------------------===//
//
// A convolution and its two gradients are one relation between input, filters and result, of which each op
// computes another one. So they share a verifier and a cost.
//
//===---------------------------------------------------------------------------===//
#include "OpHelpers.h"
#include "ds/Dialect/DsConv.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
/// What `op` slides: types and windows of the convolution that it is or belongs to.
struct Convolution {
  template <class OpTy>
  Convolution(OpTy op, Value input, Value weight, Value output)
      : op(op.getOperation()), input(tensorType(input)), weight(tensorType(weight)),
        output(tensorType(output)), stride(op.getStride()), padding(op.getPadding()),
        dilation(op.getDilation()), groups(op.getGroups()) {}

  LogicalResult verify();
  LibraryCall call(::ds::rt::LibraryFn callee) const;
  int64_t flops() const {
    return 2 * output.getNumElements() * (weight.getNumElements() / weight.getDimSize(0));
  }

private:
  LogicalResult verifyShapes();
  LogicalResult verifyWindows();
  FailureOr<SmallVector<int64_t>> inferShape();

  Operation *op;
  RankedTensorType input, weight, output;
  ArrayRef<int64_t> stride, padding, dilation;
  int64_t groups;
};
} // namespace

/// Verifies ranks and sizes of input and filters:
/// - equal ranks of 3 to 5, no size 0 (C1);
/// - groups that divide both numbers of channels (C3).
LogicalResult Convolution::verifyShapes() {
  int64_t rank = input.getRank();
  auto isEmpty = [](RankedTensorType type) { return type.getNumElements() == 0; };
  if (rank < 3 || rank > 5 || weight.getRank() != rank || isEmpty(input) || isEmpty(weight)) // C1.
    return op->emitOpError(
               "expects an input [N, I, L...] and a weight [O, I / groups, K...] with one to three "
               "last dimensions and no size 0, but got ")
           << input << " and " << weight;
  int64_t channels = input.getDimSize(1);
  if (groups < 1 || channels % groups != 0 || weight.getDimSize(0) % groups != 0 ||
      weight.getDimSize(1) != channels / groups) // C3.
    return op->emitOpError(
               "expects groups that divide input channels and filters, and a weight for the channels of "
               "one group, but got ")
           << groups << " groups for " << input << " and " << weight;
  return success();
}

LogicalResult Convolution::verifyWindows() {
  size_t numDims = input.getRank() - 2;
  auto isIn = [&](ArrayRef<int64_t> values, int64_t least) {
    return values.size() == numDims &&
           llvm::all_of(values, [&](int64_t value) { return value >= least && value <= INT32_MAX; });
  };
  if (isIn(stride, 1) && isIn(padding, 0) && isIn(dilation, 1)) // C2.
    return success();
  return op->emitOpError("expects ")
         << numDims << " strides and dilations of 1 or more and paddings of 0 or more, but got [" << stride
         << "], [" << dilation << "] and [" << padding << "]";
}

FailureOr<SmallVector<int64_t>> Convolution::inferShape() {
  SmallVector<int64_t> shape = {input.getDimSize(0), weight.getDimSize(0)};
  for (auto [d, step] : llvm::enumerate(stride)) {
    int64_t window = dilation[d] * (weight.getDimSize(d + 2) - 1) + 1;
    int64_t room = input.getDimSize(d + 2) + 2 * padding[d] - window;
    if (room < 0) // C4.
      return op->emitOpError("expects windows that fit the padded input, but got one of ")
             << window << " over " << room + window << " elements";
    shape.push_back(room / step + 1);
  }
  return shape;
}

LogicalResult Convolution::verify() {
  if (failed(verifyShapes()) || failed(verifyWindows()))
    return failure();
  FailureOr<SmallVector<int64_t>> shape = inferShape();
  if (failed(shape) || failed(expectType(op, "weight", weight.clone(input.getElementType()), weight))) // C5.
    return failure();
  return expectType(op, "the convolution's result", input.clone(*shape), output); // C4.
}

/// Operands of the op in order, its result as the third; groups, then a stride, padding and dilation for each
/// dimension.
LibraryCall Convolution::call(::ds::rt::LibraryFn callee) const {
  LibraryCall call;
  unsigned numOperands = op->getNumOperands();
  call.callee = callee;
  call.order = {0, 1, numOperands};
  if (numOperands == 3) // a bias
    call.order.push_back(2);
  SmallVector<int64_t> params = {groups};
  for (auto [step, border, gap] : llvm::zip_equal(stride, padding, dilation))
    params.append({step, border, gap});
  call.params = makeParams(op->getContext(), params);
  return call;
}

//===----------------------------------------------------------------------===//
// ConvOp
//===----------------------------------------------------------------------===//

static Convolution describe(ConvOp op) { return {op, op.getInput(), op.getWeight(), op.getResult()}; }

LogicalResult ConvOp::verify() {
  if (failed(describe(*this).verify()))
    return failure();
  return getBias()
             ? expectType(*this, "bias", getType().clone({getType().getDimSize(1)}), getBias().getType())
             : success(); // C5.
}

int64_t ConvOp::getFlops() { return describe(*this).flops(); }
LibraryCall ConvOp::getLibraryCall() { return describe(*this).call(::ds::rt::LibraryFn::ConvForward); }

//===----------------------------------------------------------------------===//
// ConvGradInputOp, ConvGradWeightOp
//===----------------------------------------------------------------------===//

static Convolution describe(ConvGradInputOp op) { return {op, op.getResult(), op.getWeight(), op.getGrad()}; }
static Convolution describe(ConvGradWeightOp op) { return {op, op.getInput(), op.getResult(), op.getGrad()}; }

LogicalResult ConvGradInputOp::verify() { return describe(*this).verify(); }  // C1.
LogicalResult ConvGradWeightOp::verify() { return describe(*this).verify(); } // C1.
int64_t ConvGradInputOp::getFlops() { return describe(*this).flops(); }
int64_t ConvGradWeightOp::getFlops() { return describe(*this).flops(); }
LibraryCall ConvGradInputOp::getLibraryCall() {
  return describe(*this).call(::ds::rt::LibraryFn::ConvBackwardInput);
}
LibraryCall ConvGradWeightOp::getLibraryCall() {
  return describe(*this).call(::ds::rt::LibraryFn::ConvBackwardWeight);
}

#define GET_OP_CLASSES
#include "ds/Dialect/DsConvOps.cpp.inc"
