//===- VerifyAttention.cpp - Operands and params of attention against Library.h ===//
#include "OperandChecker.h"

#include "ds/Runtime/Program/AttentionPieces.h"
#include "ds/Support/HeadSize.h"

namespace ds::rt {

/// The probability and the number of a draw, and of how many heads it is.
static Status verifyDropout(const OperandChecker &c, unsigned first) {
  const double probability = std::bit_cast<double>(c.param(first));
  if (!(probability >= 0 && probability < 1))
    return refuse("{} has a dropout of {}, expected at least 0 and below 1", c.where(), probability);
  if (c.param(first + 1) < 0)
    return refuse("{} draws its dropout by the number {}", c.where(), c.param(first + 1));
  return c.param(first + 2) > 0 && c.param(first + 2) <= INT32_MAX
             ? Status()
             : refuse("{} draws the dropout of {} heads", c.where(), c.param(first + 2));
}

/// Causality and scale; of a form with a window, a cap or dropout the first two of these, and dropout where
/// there is one; the size of blocks of a gradient and of dropout, or that a gradient is fast.
static Status verifyParams(const OperandChecker &c, unsigned least, unsigned most) {
  const bool isGradient = static_cast<LibraryFn>(c.command.callee) == LibraryFn::AttentionBackward;
  const bool hasBlock = hasAttentionBlock(c.numParams());
  const unsigned others = c.numParams() - (hasBlock ? kAttentionBlockParams : 0);
  const bool hasDropout = others == kAttentionParams + kAttentionFormParams + kAttentionDropoutParams;
  const bool hasForm = hasDropout || others == kAttentionParams + kAttentionFormParams;
  const bool isKnown =
      isGradient ? hasForm || (hasBlock && others == kAttentionParams) : hasDropout || (hasForm && !hasBlock);
  DS_CHECK(c.counts(least, most, isKnown ? c.numParams() : kAttentionParams));
  DS_CHECK(c.flag(0));
  if (!std::isfinite(std::bit_cast<double>(c.param(1))))
    return refuse("{} has a scale that is not finite", c.where());
  const int64_t leastBlock = isGradient ? kFastGradient : 1;
  if (hasBlock && (c.param(others) < leastBlock || c.param(others) % kAttentionBlockUnit != 0))
    return refuse("{} has blocks of {} rows, expected a multiple of {}", c.where(), c.param(others),
                  kAttentionBlockUnit);
  if (!hasForm)
    return {};
  if (c.param(2) < 0)
    return refuse("{} has a window of {} positions", c.where(), c.param(2));
  DS_CHECK(c.cap(3));
  return hasDropout ? verifyDropout(c, kAttentionParams + kAttentionFormParams) : Status();
}

/// Mask, slopes, generator and first head from operand `first` on: at most one of each, each of the shape of
/// what it is added to. There is a generator where there is dropout, and a first head there alone.
static Status verifyExtras(const OperandChecker &c, unsigned first) {
  for (unsigned k = first; k < c.numOperands(); ++k) {
    if (c.operand(k).shape.empty()) {
      DS_CHECK(c.dtype(k, {DType::I64}));
    } else if (c.operand(k).shape.size() == 1) {
      DS_CHECK(c.dtype(k, {DType::F32, DType::I64}));
    } else {
      DS_CHECK(c.dtype(k, {DType::F32}));
      DS_CHECK(c.rank(k, 4));
    }
    if (!c.operand(k).shape.empty())
      DS_CHECK(c.unitInnermost(k));
  }
  const AttentionExtras extras = attentionExtras(static_cast<LibraryFn>(c.command.callee), c.operands());
  if (extras.count() + first != c.numOperands())
    return refuse("{} has two operands of one kind after its results", c.where());
  const bool draws = c.numParams() >= kAttentionParams + kAttentionFormParams + kAttentionDropoutParams;
  if (draws != (extras.generator != nullptr))
    return refuse("{} has {} without {}", c.where(), draws ? "dropout" : "a generator",
                  draws ? "a generator" : "dropout");
  if (extras.generator && extras.generator->shape[0] != 2)
    return refuse("{} has a generator of {} numbers, expected 2", c.where(), extras.generator->shape[0]);
  const std::vector<int64_t> q = c.operand(0).shape, kv = c.operand(1).shape;
  if (extras.firstHead && !draws)
    return refuse("{} has a first head without dropout", c.where());
  constexpr unsigned kHeadsParam = kAttentionParams + kAttentionFormParams + kAttentionDropoutParams - 1;
  if (draws && (extras.firstHead ? c.param(kHeadsParam) < q[2] : c.param(kHeadsParam) != q[2]))
    return refuse("{} draws the dropout of {} heads, of which it has {}", c.where(), c.param(kHeadsParam),
                  q[2]);
  if (extras.slopes && extras.slopes->shape[0] != q[2])
    return refuse("{} has {} slopes for {} heads", c.where(), extras.slopes->shape[0], q[2]);
  if (!extras.mask)
    return {};
  const std::vector<int64_t> &m = extras.mask->shape;
  if ((m[0] != 1 && m[0] != q[0]) || (m[1] != 1 && m[1] != q[2]) || (m[2] != 1 && m[2] != q[1]) ||
      m[3] != kv[1])
    return refuse("{} has mask [{}], expected [{}|1, {}|1, {}|1, {}]", c.where(), fmt::join(m, "x"), q[0],
                  q[2], q[1], kv[1]);
  return {};
}

/// Shapes of q, k, v, out and lse, which forward and backward share, and what comes from operand `first` on.
static Status verifyShapes(const OperandChecker &c, unsigned first) {
  DS_CHECK(c.isFloat(0));
  for (unsigned k = 0; k < first; ++k) {
    DS_CHECK(k == 4 ? c.dtype(k, {DType::F32}) : c.sameType(k, 0));
    DS_CHECK(c.rank(k, k == 4 ? 3 : 4));
    DS_CHECK(c.unitInnermost(k));
  }
  const std::vector<int64_t> q = c.operand(0).shape, kv = c.operand(1).shape;
  if (q[0] != kv[0] || q[3] != kv[3] || q[3] < 1 || q[3] > kMaxHeadSize)
    return refuse("{} has queries [{}] and keys [{}]; batch and head size must agree, head size at most {}",
                  c.where(), fmt::join(q, "x"), fmt::join(kv, "x"), kMaxHeadSize);
  if (kv[2] < 1 || q[2] % kv[2] != 0)
    return refuse("{} has {} query heads, not a multiple of {} key heads", c.where(), q[2], kv[2]);
  DS_CHECK(c.shape(2, kv));
  DS_CHECK(c.shape(3, q));
  DS_CHECK(c.shape(4, {q[0], q[2], q[1]}));
  return verifyExtras(c, first);
}

Status verifyAttentionForward(const OperandChecker &c) {
  DS_CHECK(verifyParams(c, 5, 9));
  DS_CHECK(verifyShapes(c, 5));
  DS_CHECK(c.written(3, {0, 1, 2, 4, 5, 6, 7, 8}));
  return c.written(4, {0, 1, 2, 5, 6, 7, 8});
}

Status verifyAttentionBackward(const OperandChecker &c) {
  DS_CHECK(verifyParams(c, 9, 13));
  DS_CHECK(verifyShapes(c, 9));
  DS_CHECK(c.shape(5, c.operand(0).shape));
  DS_CHECK(c.shape(6, c.operand(0).shape));
  DS_CHECK(c.shape(7, c.operand(1).shape));
  DS_CHECK(c.shape(8, c.operand(1).shape));
  DS_CHECK(c.written(6, {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12}));
  DS_CHECK(c.written(7, {0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12}));
  DS_CHECK(c.written(8, {0, 1, 2, 3, 4, 5, 9, 10, 11, 12}));
  return verifyWorkspace(c);
}

} // namespace ds::rt
