//===- AttentionOps.cpp - Verifiers, costs and library calls of attention -------===//
#include "OpHelpers.h"
#include "ds/Dialect/Machine.h"
#include "ds/Runtime/Program/AttentionPieces.h"
#include "ds/Runtime/Program/AttentionWork.h"
#include "ds/Support/HeadSize.h"

using namespace mlir;
using namespace mlir::ds;

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

/// Verifies that dropout, its id and the generator are all there or none is (C7), and which heads these are
/// (C8).
template <typename AttentionOpT>
static LogicalResult verifyDropout(AttentionOpT op) {
  const bool isDrawn = bool(op.getRng());
  if (bool(op.getFirstHead()) != op.getHeads().has_value() || (op.getFirstHead() && !isDrawn)) // C8.
    return op.emitOpError("expects a first head and heads together, and only with dropout");
  if (isDrawn != op.getDropout().has_value() || isDrawn != op.getDropoutId().has_value())
    return op.emitOpError("expects dropout, its id and its generator together, but got some of them");
  if (!isDrawn)
    return success();
  const double probability = op.getDropout()->convertToDouble();
  if (!(probability >= 0 && probability < 1))
    return op.emitOpError("expects a dropout of at least 0 and below 1, but got ") << probability;
  Type i64 = IntegerType::get(op.getContext(), 64);
  const int64_t own = tensorType(op.getQuery()).getDimSize(2);
  if (op.getHeads() && static_cast<int64_t>(*op.getHeads()) < own) // C8.
    return op.emitOpError("expects to be some of at least ")
           << own << " heads, but got " << static_cast<int64_t>(*op.getHeads());
  if (op.getFirstHead() && failed(expectType(op, "first head", RankedTensorType::get({}, i64),
                                             op.getFirstHead().getType()))) // C8.
    return failure();
  return expectType(op, "generator", RankedTensorType::get({2}, i64), op.getRng().getType());
}

/// Verifies query, key, value, the statistics and the mask:
/// - q is [B, T, H, D], k and v are [B, S, G, D], G divides H (C1);
/// - lse is f32 [B, H, T] (C2);
/// - the mask broadcasts to [B, H, T, S] (C3);
/// - D is at most kMaxHeadSize (C4);
/// - the slopes are f32 [H] (C5);
/// - window and cap are positive, the cap finite (C6);
/// - dropout, its id and the generator come together, and make sense (C7), as does what says which heads
/// these
///   are (C8).
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
  if (failed(verifyCap(op)) || failed(verifyDropout(op)))
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
/// cap are in the parameters where there is one of them or dropout, 0 for what is not there.
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
  if (op.getWindow() || op.getCap() || op.getDropout()) {
    call.params.push_back(builder.getI64IntegerAttr(op.getWindow().value_or(0)));
    call.params.push_back(op.getCap() ? op.getCapAttr() : builder.getF64FloatAttr(0));
  }
  if (op.getDropout()) {
    call.params.push_back(op.getDropoutAttr());
    call.params.push_back(op.getDropoutIdAttr());
    const int64_t own = tensorType(op.getQuery()).getDimSize(2);
    call.params.push_back(builder.getI64IntegerAttr(op.getHeads().value_or(own)));
  }
  return call;
}

void AttentionOp::removeNoise() {
  getRngMutable().clear();
  getFirstHeadMutable().clear();
  removeHeadsAttr();
  removeDropoutAttr();
  removeDropoutIdAttr();
}

/// How large the blocks are in which a GPU computes a long attention, or that a gradient is fast
/// (AttentionPieces.h).
template <typename AttentionOpT>
static std::optional<int64_t> blockSize(AttentionOpT op, bool isGradient) {
  RankedTensorType query = tensorType(op.getQuery()), key = tensorType(op.getKey());
  auto module = op->template getParentOfType<ModuleOp>();
  if (!isForCuda(module) || query.getElementTypeBitWidth() != 16 || !query.hasStaticShape() ||
      !key.hasStaticShape())
    return std::nullopt;
  const bool isFast = isGradient && getMachine(module).hasFastAttention;
  auto size = [](RankedTensorType type, unsigned dim) { return static_cast<uint64_t>(type.getDimSize(dim)); };
  std::optional<int64_t> block = ::ds::rt::attentionBlockSize(
      {size(query, 0), size(query, 1), size(key, 1), size(query, 2), size(key, 2), size(query, 3)},
      {.isGradient = isGradient,
       .isCausal = op.getCausal(),
       .isFast = isFast,
       .window = op.getWindow(),
       .drops = op.getDropout().has_value()});
  return !block && isFast ? std::optional(::ds::rt::kFastGradient) : block;
}

LibraryCall AttentionOp::getLibraryCall() {
  LibraryCall call = attentionCall(*this, ::ds::rt::LibraryFn::AttentionForward, /*numFixed=*/3);
  if (std::optional<int64_t> block = blockSize(*this, /*isGradient=*/false))
    llvm::append_range(call.params, makeParams(getContext(), {*block}));
  return call;
}

LibraryCall AttentionGradOp::getLibraryCall() {
  LibraryCall call = attentionCall(*this, ::ds::rt::LibraryFn::AttentionBackward, /*numFixed=*/6);
  if (std::optional<int64_t> block = blockSize(*this, /*isGradient=*/true))
    llvm::append_range(call.params, makeParams(getContext(), {*block}));
  return call;
}
