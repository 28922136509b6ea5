//===- NetworkOps.cpp - Verifiers, costs and library calls of network ops --------===//
#include "OpHelpers.h"

using namespace mlir;
using namespace mlir::ds;

//===----------------------------------------------------------------------===//
// SoftmaxOp
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  int64_t rank = tensorType(getInput()).getRank();
  if (static_cast<int64_t>(getDim()) >= rank) // C1.
    return emitOpError("expects a dimension below the rank ") << rank << ", but got " << getDim();
  return success();
}

int64_t SoftmaxOp::getFlops() { return 5 * tensorType(getResult()).getNumElements(); }

//===----------------------------------------------------------------------===//
// LayerNormOp, RmsNormOp
//===----------------------------------------------------------------------===//

/// Verifies what both norms ask for:
/// - 1 <= num_dims <= rank (C1);
/// - weight and bias have the normalised shape (C2);
/// - the result has the input's type, statistics the leading shape (C3).
static LogicalResult verifyNorm(Operation *op, RankedTensorType input, int64_t numDims, ValueRange affine,
                                Type result, ValueRange statistics) {
  if (numDims > input.getRank()) // C1.
    return op->emitOpError("expects at most ")
           << input.getRank() << " normalised dimensions, but got " << numDims;
  for (Value value : affine) // C2.
    if (value && failed(expectType(op, "weight and bias", input.clone(input.getShape().take_back(numDims)),
                                   value.getType())))
      return failure();
  for (Value value : statistics) // C3.
    if (failed(
            expectType(op, "statistics", input.clone(input.getShape().drop_back(numDims)), value.getType())))
      return failure();
  return expectType(op, "result", input, result);
}

LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, tensorType(getInput()), getNumDims(), {getWeight(), getBias()},
                    getResult().getType(), {getMean(), getRstd()});
}

LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, tensorType(getInput()), getNumDims(), {getWeight()}, getResult().getType(),
                    {getRstd()});
}

int64_t LayerNormOp::getFlops() { return 8 * tensorType(getInput()).getNumElements(); }
int64_t RmsNormOp::getFlops() { return 4 * tensorType(getInput()).getNumElements(); }

//===----------------------------------------------------------------------===//
// EmbeddingOp, EmbeddingGradOp
//===----------------------------------------------------------------------===//

/// `ids`' shape followed by `columns`, of `element` type.
static RankedTensorType rowsType(RankedTensorType ids, int64_t columns, Type element) {
  SmallVector<int64_t> shape(ids.getShape());
  shape.push_back(columns);
  return RankedTensorType::get(shape, element);
}

LogicalResult EmbeddingOp::verify() {
  RankedTensorType table = tensorType(getTable());
  if (table.getRank() != 2) // C1.
    return emitOpError("expects a table of rank 2, but got ") << table;
  if (std::optional<int64_t> padding = getPaddingIndex();
      padding && (*padding < 0 || *padding >= table.getDimSize(0))) // C3.
    return emitOpError("expects padding_index to be in [0, ")
           << table.getDimSize(0) << "), but got " << *padding;
  return expectType(*this, "result",
                    rowsType(tensorType(getIds()), table.getDimSize(1), table.getElementType()),
                    getType()); // C2.
}

LibraryCall EmbeddingOp::getLibraryCall() {
  LibraryCall call;
  call.callee = ::ds::rt::LibraryFn::EmbeddingForward;
  call.order = {0, 1, 2};
  if (getPart())
    call.params = makeParams(getContext(), {1});
  return call;
}

LogicalResult EmbeddingGradOp::verify() {
  RankedTensorType table = tensorType(getResult());
  if (table.getRank() != 2) // C1.
    return emitOpError("expects a result of rank 2, but got ") << table;
  RankedTensorType grad = tensorType(getGrad());
  Type element = table.getElementType().isF32() ? grad.getElementType() : table.getElementType(); // C2.
  RankedTensorType rows = rowsType(tensorType(getIds()), table.getDimSize(1), element);
  if (failed(expectType(*this, "grad", rows, grad)))
    return failure();
  return getAccumulator() ? expectType(*this, "accumulator", table, getAccumulator().getType())
                          : success(); // C2.
}

LibraryCall EmbeddingGradOp::getLibraryCall() {
  LibraryCall call;
  call.callee = ::ds::rt::LibraryFn::EmbeddingBackward;
  call.order = {0, 1, getNumOperands()};
  if (getAccumulator())
    call.inPlace.push_back({0, 2});
  call.params = makeParams(getContext(), {getAccumulator() ? 1 : 0});
  return call;
}

//===----------------------------------------------------------------------===//
// CrossEntropyOp, CrossEntropyGradOp, CrossEntropyWithGradOp
//===----------------------------------------------------------------------===//

/// Verifies logits [N, C], targets [N] (C1) and scalars of f32 (C2).
static LogicalResult verifyCrossEntropy(Operation *op, RankedTensorType logits, RankedTensorType targets,
                                        ArrayRef<Type> scalars) {
  if (logits.getRank() != 2 || targets.getRank() != 1 || logits.getDimSize(0) != targets.getDimSize(0)) // C1.
    return op->emitOpError("expects logits [N, C] and targets [N], but got ") << logits << " and " << targets;
  Type f32 = Float32Type::get(op->getContext());
  for (Type scalar : scalars) // C2.
    if (failed(expectType(op, "loss, count, denominator and grad", RankedTensorType::get({}, f32), scalar)))
      return failure();
  return success();
}

/// Verifies that lse is f32 [N] (C2), of logits that are [N, C].
static LogicalResult verifyRowSums(Operation *op, RankedTensorType logits, Type lse) {
  Type f32 = Float32Type::get(op->getContext());
  return expectType(op, "lse", RankedTensorType::get({logits.getDimSize(0)}, f32), lse);
}

void CrossEntropyOp::build(OpBuilder &builder, OperationState &state, Value logits, Value targets,
                           Value denominator, int64_t ignoreIndex) {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  build(builder, state, scalar, scalar.clone({tensorType(targets).getNumElements()}), scalar, logits, targets,
        denominator, builder.getI64IntegerAttr(ignoreIndex), /*cap=*/FloatAttr(),
        /*piece_rows=*/DenseI64ArrayAttr());
}

LogicalResult CrossEntropyOp::verify() {
  SmallVector<Type> scalars = {getLoss().getType(), getCount().getType()};
  if (getDenominator())
    scalars.push_back(getDenominator().getType());
  if (failed(verifyCap(*this))) // C3.
    return failure();
  if (failed(verifyCrossEntropy(*this, tensorType(getLogits()), tensorType(getTargets()), scalars)))
    return failure();
  return verifyRowSums(*this, tensorType(getLogits()), getLse().getType());
}

LogicalResult CrossEntropyGradOp::verify() {
  if (failed(verifyCap(*this)))
    return failure();
  if (failed(verifyCrossEntropy(*this, tensorType(getLogits()), tensorType(getTargets()),
                                {getCount().getType(), getGrad().getType()})))
    return failure();
  return verifyRowSums(*this, tensorType(getLogits()), getLse().getType());
}

void CrossEntropyWithGradOp::build(OpBuilder &builder, OperationState &state, Value logits, Value targets,
                                   Value grad, Value denominator, IntegerAttr ignoreIndex, FloatAttr cap) {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  build(builder, state, scalar, scalar, logits.getType(), logits, targets, grad, denominator, ignoreIndex,
        cap);
}

LogicalResult CrossEntropyWithGradOp::verify() {
  SmallVector<Type> scalars = {getLoss().getType(), getCount().getType(), getGrad().getType()};
  if (getDenominator())
    scalars.push_back(getDenominator().getType());
  if (failed(verifyCap(*this))) // C3.
    return failure();
  return verifyCrossEntropy(*this, tensorType(getLogits()), tensorType(getTargets()), scalars);
}

int64_t CrossEntropyOp::getFlops() { return 4 * tensorType(getLogits()).getNumElements(); }
int64_t CrossEntropyGradOp::getFlops() { return 4 * tensorType(getLogits()).getNumElements(); }
int64_t CrossEntropyWithGradOp::getFlops() { return 8 * tensorType(getLogits()).getNumElements(); }

/// The index that is ignored, and the cap if there is one.
template <typename LossOpT>
static SmallVector<Attribute> lossParams(LossOpT op) {
  SmallVector<Attribute> params = makeParams(op.getContext(), {static_cast<int64_t>(op.getIgnoreIndex())});
  if (op.getCap())
    params.push_back(op.getCapAttr());
  return params;
}

LibraryCall CrossEntropyOp::getLibraryCall() {
  LibraryCall call;
  unsigned numOperands = getNumOperands();
  call.callee = ::ds::rt::LibraryFn::CrossEntropyForward;
  call.order = {0, 1, numOperands, numOperands + 1, numOperands + 2};
  if (getDenominator())
    call.order.push_back(2);
  call.params = lossParams(*this);
  return call;
}

LibraryCall CrossEntropyGradOp::getLibraryCall() {
  LibraryCall call;
  call.callee = ::ds::rt::LibraryFn::CrossEntropyBackward;
  call.order = {0, 1, 2, 3, 4, 5};
  call.mayShare.push_back({0, 0});
  call.params = lossParams(*this);
  return call;
}

LibraryCall CrossEntropyWithGradOp::getLibraryCall() {
  LibraryCall call;
  unsigned numOperands = getNumOperands();
  call.callee = ::ds::rt::LibraryFn::CrossEntropyWithGradient;
  call.order = {0, 1, 2, numOperands, numOperands + 1, numOperands + 2};
  if (getDenominator())
    call.order.push_back(3);
  call.mayShare.push_back({2, 0});
  call.params = lossParams(*this);
  return call;
}

//===----------------------------------------------------------------------===//
// DropoutOp
//===----------------------------------------------------------------------===//

void DropoutOp::removeNoise() {
  getResult().replaceAllUsesWith(getInput());
  erase();
}

LogicalResult DropoutOp::verify() {
  double probability = getProbability().convertToDouble();
  if (!(probability >= 0 && probability < 1)) // C1.
    return emitOpError("expects a probability in [0, 1), but got ") << probability;
  return success();
}
