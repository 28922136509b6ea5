//===- NetworkOps.cpp - Verifiers, costs and library calls of network ops --------===//
#include "OpHelpers.h"
#include "ds/Dialect/Machine.h"
#include "ds/Runtime/Program/AttentionPieces.h"
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

/// Verifies that the mask of attention, if it has one, broadcasts to its scores.
template <typename AttentionOpT>
static LogicalResult verifyMask(AttentionOpT op, ArrayRef<int64_t> scores) {
  if (!op.getMask())
    return success();
  RankedTensorType mask = tensorType(op.getMask());
  bool fits = mask.getRank() == 4 && mask.getElementType().isF32() &&
              llvm::all_of(llvm::zip_equal(mask.getShape(), scores), [](auto pair) {
                auto [size, wanted] = pair;
                return size == 1 || size == wanted;
              });
  if (!fits)
    return op.emitOpError("expects an f32 mask that broadcasts to [") << scores << "], but got " << mask;
  return success();
}

/// Verifies the cap of scores or logits: in f32, which it is computed in, it is positive and finite.
template <typename OpT>
static LogicalResult verifyCap(OpT op) {
  auto cap = static_cast<float>(op.getCap() ? op.getCap()->convertToDouble() : 1.0);
  if (cap > 0 && std::isfinite(cap))
    return success();
  return op.emitOpError("expects a cap that is positive and finite, but got ")
         << op.getCap()->convertToDouble();
}

/// Verifies query, key, value, the statistics and the mask:
/// - q is [B, T, H, D], k and v are [B, S, G, D], G divides H (C1);
/// - lse is f32 [B, H, T] (C2);
/// - the mask broadcasts to [B, H, T, S] (C3);
/// - D is at most kMaxHeadSize (C4);
/// - the slopes are f32 [H] (C5);
/// - window and cap are positive, the cap finite (C6).
template <typename AttentionOpT>
static LogicalResult verifyAttention(AttentionOpT op) {
  ArrayRef<int64_t> q = tensorType(op.getQuery()).getShape(), k = tensorType(op.getKey()).getShape();
  if (q.size() != 4 || k.size() != 4 || op.getKey().getType() != op.getValue().getType() || q[0] != k[0] ||
      q[3] != k[3] || k[2] == 0 || q[2] % k[2] != 0) // C1.
    return op.emitOpError(
               "expects query [B, T, H, D] and key and value [B, S, G, D] with G dividing H, but got ")
           << op.getQuery().getType() << ", " << op.getKey().getType() << " and " << op.getValue().getType();
  if (q[3] > ::ds::kMaxHeadSize) // C4.
    return op.emitOpError("expects heads of at most ") << ::ds::kMaxHeadSize << ", but got " << q[3];
  Type f32 = Float32Type::get(op.getContext());
  if (failed(expectType(op, "lse", RankedTensorType::get({q[0], q[2], q[1]}, f32),
                        op.getLse().getType()))) // C2.
    return failure();
  if (Value slopes = op.getSlopes()) // C5.
    if (failed(expectType(op, "slopes", RankedTensorType::get({q[2]}, f32), slopes.getType())))
      return failure();
  if (op.getWindow() && static_cast<int64_t>(*op.getWindow()) <= 0) // C6.
    return op.emitOpError("expects a window of at least 1, but got ")
           << static_cast<int64_t>(*op.getWindow());
  if (failed(verifyCap(op)))
    return failure();
  return verifyMask(op, {q[0], q[2], q[1], k[1]});
}

LogicalResult AttentionOp::verify() {
  if (failed(expectType(*this, "result", getQuery().getType(), getResult().getType()))) // C2.
    return failure();
  return verifyAttention(*this);
}

LogicalResult AttentionGradOp::verify() {
  RankedTensorType query = tensorType(getQuery()), key = tensorType(getKey());
  if (failed(expectType(*this, "out", query, getOut().getType())) || // C1.
      failed(expectType(*this, "grad", query, getGrad().getType())) ||
      failed(expectType(*this, "query gradient", query, getQueryGrad().getType())) || // C2.
      failed(expectType(*this, "key gradient", key, getKeyGrad().getType())) ||
      failed(expectType(*this, "value gradient", key, getValueGrad().getType())))
    return failure();
  return verifyAttention(*this);
}

/// What attention or its gradient computes.
template <typename AttentionOpT>
static ::ds::rt::AttentionWork attentionWork(AttentionOpT op, bool isGradient) {
  RankedTensorType query = tensorType(op.getQuery());
  ::ds::rt::AttentionWork work;
  work.heads = static_cast<double>(query.getDimSize(0) * query.getDimSize(2));
  work.queries = static_cast<double>(query.getDimSize(1));
  work.keys = static_cast<double>(tensorType(op.getKey()).getDimSize(1));
  work.width = static_cast<double>(query.getDimSize(3));
  work.window = static_cast<double>(op.getWindow().value_or(0));
  work.isCausal = op.getCausal(), work.isGradient = isGradient;
  return work;
}

int64_t AttentionOp::getFlops() {
  return static_cast<int64_t>(::ds::rt::attentionFlops(attentionWork(*this, /*isGradient=*/false)));
}

int64_t AttentionGradOp::getFlops() {
  return static_cast<int64_t>(::ds::rt::attentionFlops(attentionWork(*this, /*isGradient=*/true)));
}

/// Attention as a call: results behind the first `numFixed` operands, then what not all have. A window and a
/// cap are in the parameters where there is one of them, 0 for the other.
template <typename AttentionOpT>
static LibraryCall attentionCall(AttentionOpT op, ::ds::rt::LibraryFn callee, unsigned numFixed) {
  LibraryCall call;
  call.callee = callee;
  call.takesStrides = true;
  llvm::append_range(call.order, llvm::seq(0u, numFixed));
  llvm::append_range(call.order, llvm::seq(op->getNumOperands(), op->getNumOperands() + op->getNumResults()));
  llvm::append_range(call.order, llvm::seq(numFixed, op->getNumOperands()));
  Builder builder(op.getContext());
  call.params = makeParams(op.getContext(), {op.getCausal()});
  call.params.push_back(op.getScaleAttr());
  if (op.getWindow() || op.getCap()) {
    call.params.push_back(builder.getI64IntegerAttr(op.getWindow().value_or(0)));
    call.params.push_back(op.getCap() ? op.getCapAttr() : builder.getF64FloatAttr(0));
  }
  return call;
}

LibraryCall AttentionOp::getLibraryCall() {
  return attentionCall(*this, ::ds::rt::LibraryFn::AttentionForward, /*numFixed=*/3);
}

/// How large the blocks are in which a GPU computes a long gradient, or that it is fast (AttentionPieces.h).
static std::optional<int64_t> blockSize(AttentionGradOp op) {
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey());
  auto module = op->getParentOfType<ModuleOp>();
  if (!isForCuda(module) || query.getElementTypeBitWidth() != 16 || !query.hasStaticShape() ||
      !key.hasStaticShape())
    return std::nullopt;
  if (getMachine(module).hasFastAttention)
    return ::ds::rt::kFastGradient;
  auto size = [](RankedTensorType type, unsigned dim) { return static_cast<uint64_t>(type.getDimSize(dim)); };
  return ::ds::rt::attentionBlockSize(
      {size(query, 0), size(query, 1), size(key, 1), size(query, 2), size(key, 2), size(query, 3)});
}

LibraryCall AttentionGradOp::getLibraryCall() {
  LibraryCall call = attentionCall(*this, ::ds::rt::LibraryFn::AttentionBackward, /*numFixed=*/6);
  const bool hasForm = call.params.size() > ::ds::rt::kAttentionParams;
  if (std::optional<int64_t> block = blockSize(*this);
      block && (!hasForm || *block == ::ds::rt::kFastGradient))
    llvm::append_range(call.params, makeParams(getContext(), {*block}));
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

Value DropoutOp::getWithoutNoise() { return getInput(); }

LogicalResult DropoutOp::verify() {
  double probability = getProbability().convertToDouble();
  if (!(probability >= 0 && probability < 1)) // C1.
    return emitOpError("expects a probability in [0, 1), but got ") << probability;
  return success();
}
