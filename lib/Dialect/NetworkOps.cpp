//===- NetworkOps.cpp - Verifiers, costs and library calls of network ops --------===//
#include "OpHelpers.h"
#include "ds/Runtime/Program/AttentionWork.h"
#include "ds/Support/HeadSize.h"

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
// AttentionOp, AttentionGradOp
//===----------------------------------------------------------------------===//

/// Verifies query, key, value, the statistics and the mask:
/// - q is [B, T, H, D], k and v are [B, S, G, D], G divides H (C1);
/// - lse is f32 [B, H, T] (C2);
/// - the mask broadcasts to [B, H, T, S] (C3);
/// - D is at most kMaxHeadSize (C4).
static LogicalResult verifyAttention(Operation *op, RankedTensorType query, RankedTensorType key,
                                     RankedTensorType value, RankedTensorType lse, Value mask) {
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape();
  if (q.size() != 4 || k.size() != 4 || key != value || q[0] != k[0] || q[3] != k[3] || k[2] == 0 ||
      q[2] % k[2] != 0) // C1.
    return op->emitOpError(
               "expects query [B, T, H, D] and key and value [B, S, G, D] with G dividing H, but got ")
           << query << ", " << key << " and " << value;
  if (q[3] > ::ds::kMaxHeadSize) // C4.
    return op->emitOpError("expects heads of at most ") << ::ds::kMaxHeadSize << ", but got " << q[3];
  RankedTensorType expected = RankedTensorType::get({q[0], q[2], q[1]}, Float32Type::get(op->getContext()));
  if (failed(expectType(op, "lse", expected, lse))) // C2.
    return failure();
  if (!mask)
    return success();
  SmallVector<int64_t> scores = {q[0], q[2], q[1], k[1]};
  ArrayRef<int64_t> sizes = tensorType(mask).getShape();
  bool fits = sizes.size() == 4 && tensorType(mask).getElementType().isF32() &&
              llvm::all_of(llvm::zip_equal(sizes, scores), [](auto pair) {
                auto [size, wanted] = pair;
                return size == 1 || size == wanted;
              });
  if (!fits) // C3.
    return op->emitOpError("expects an f32 mask that broadcasts to [")
           << scores << "], but got " << mask.getType();
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(expectType(*this, "result", getQuery().getType(), getResult().getType()))) // C2.
    return failure();
  return verifyAttention(*this, tensorType(getQuery()), tensorType(getKey()), tensorType(getValue()),
                         tensorType(getLse()), getMask());
}

LogicalResult AttentionGradOp::verify() {
  RankedTensorType query = tensorType(getQuery()), key = tensorType(getKey());
  if (failed(expectType(*this, "out", query, getOut().getType())) || // C1.
      failed(expectType(*this, "grad", query, getGrad().getType())) ||
      failed(expectType(*this, "query gradient", query, getQueryGrad().getType())) || // C2.
      failed(expectType(*this, "key gradient", key, getKeyGrad().getType())) ||
      failed(expectType(*this, "value gradient", key, getValueGrad().getType())))
    return failure();
  return verifyAttention(*this, query, key, tensorType(getValue()), tensorType(getLse()), getMask());
}

/// Operations of attention over operands [B, S, H, D].
static int64_t attentionFlops(RankedTensorType query, RankedTensorType key, bool isCausal, bool isGradient) {
  ::ds::rt::AttentionWork work;
  work.heads = static_cast<double>(query.getDimSize(0) * query.getDimSize(2));
  work.queries = static_cast<double>(query.getDimSize(1));
  work.keys = static_cast<double>(key.getDimSize(1));
  work.width = static_cast<double>(query.getDimSize(3));
  work.isCausal = isCausal, work.isGradient = isGradient;
  return static_cast<int64_t>(::ds::rt::attentionFlops(work));
}

int64_t AttentionOp::getFlops() {
  return attentionFlops(tensorType(getQuery()), tensorType(getKey()), getCausal(), /*isGradient=*/false);
}

int64_t AttentionGradOp::getFlops() {
  return attentionFlops(tensorType(getQuery()), tensorType(getKey()), getCausal(), /*isGradient=*/true);
}

/// Parameters of both attention calls: causal, scale.
static SmallVector<Attribute> attentionParams(MLIRContext *context, bool causal, FloatAttr scale) {
  SmallVector<Attribute> params = makeParams(context, {causal});
  params.push_back(scale);
  return params;
}

LibraryCall AttentionOp::getLibraryCall() {
  LibraryCall call;
  unsigned numOperands = getNumOperands();
  call.callee = ::ds::rt::LibraryFn::AttentionForward;
  call.takesStrides = true;
  call.order = {0, 1, 2, numOperands, numOperands + 1};
  if (getMask())
    call.order.push_back(3);
  call.params = attentionParams(getContext(), getCausal(), getScaleAttr());
  return call;
}

LibraryCall AttentionGradOp::getLibraryCall() {
  LibraryCall call;
  unsigned numOperands = getNumOperands();
  call.callee = ::ds::rt::LibraryFn::AttentionBackward;
  call.takesStrides = true;
  call.order = {0, 1, 2, 3, 4, 5, numOperands, numOperands + 1, numOperands + 2};
  if (getMask())
    call.order.push_back(6);
  call.params = attentionParams(getContext(), getCausal(), getScaleAttr());
  return call;
}

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
// CrossEntropyOp, CrossEntropyGradOp
//===----------------------------------------------------------------------===//

/// Verifies logits [N, C], targets [N] (C1) and lse f32 [N] (C2); rank-0 operands are checked by their own
/// types.
static LogicalResult verifyCrossEntropy(Operation *op, RankedTensorType logits, RankedTensorType targets,
                                        Type lse, ArrayRef<Type> scalars) {
  if (logits.getRank() != 2 || targets.getRank() != 1 || logits.getDimSize(0) != targets.getDimSize(0)) // C1.
    return op->emitOpError("expects logits [N, C] and targets [N], but got ") << logits << " and " << targets;
  Type f32 = Float32Type::get(op->getContext());
  for (Type scalar : scalars) // C2.
    if (failed(expectType(op, "loss, count, denominator and grad", RankedTensorType::get({}, f32), scalar)))
      return failure();
  return expectType(op, "lse", RankedTensorType::get({logits.getDimSize(0)}, f32), lse);
}

void CrossEntropyOp::build(OpBuilder &builder, OperationState &state, Value logits, Value targets,
                           Value denominator, int64_t ignoreIndex) {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  build(builder, state, scalar, scalar.clone({tensorType(targets).getNumElements()}), scalar, logits, targets,
        denominator, builder.getI64IntegerAttr(ignoreIndex), /*piece_rows=*/DenseI64ArrayAttr());
}

LogicalResult CrossEntropyOp::verify() {
  SmallVector<Type> scalars = {getLoss().getType(), getCount().getType()};
  if (getDenominator())
    scalars.push_back(getDenominator().getType());
  return verifyCrossEntropy(*this, tensorType(getLogits()), tensorType(getTargets()), getLse().getType(),
                            scalars);
}

LogicalResult CrossEntropyGradOp::verify() {
  return verifyCrossEntropy(*this, tensorType(getLogits()), tensorType(getTargets()), getLse().getType(),
                            {getCount().getType(), getGrad().getType()});
}

int64_t CrossEntropyOp::getFlops() { return 4 * tensorType(getLogits()).getNumElements(); }
int64_t CrossEntropyGradOp::getFlops() { return 4 * tensorType(getLogits()).getNumElements(); }

LibraryCall CrossEntropyOp::getLibraryCall() {
  LibraryCall call;
  unsigned numOperands = getNumOperands();
  call.callee = ::ds::rt::LibraryFn::CrossEntropyForward;
  call.order = {0, 1, numOperands, numOperands + 1, numOperands + 2};
  if (getDenominator())
    call.order.push_back(2);
  call.params = makeParams(getContext(), {static_cast<int64_t>(getIgnoreIndex())});
  return call;
}

LibraryCall CrossEntropyGradOp::getLibraryCall() {
  LibraryCall call;
  call.callee = ::ds::rt::LibraryFn::CrossEntropyBackward;
  call.order = {0, 1, 2, 3, 4, 5};
  call.mayShare.push_back({0, 0});
  call.params = makeParams(getContext(), {static_cast<int64_t>(getIgnoreIndex())});
  return call;
}

//===----------------------------------------------------------------------===//
// DropoutOp
//===----------------------------------------------------------------------===//

Value DropoutOp::getWithoutNoise() { return getInput(); }

LogicalResult DropoutOp::verify() {
  double probability = getProbability().convertToDouble();
  if (!(probability >= 0 && probability < 1)) // C1.
    return emitOpError("expects a probability in [0, 1), but got ") << probability;
  return success();
}
