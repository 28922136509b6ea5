//===- MatchAttention.cpp - Spelled-out attention -------------------------------===//
#include "MatchAttention.h"
#include "FindTrained.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Support/HeadSize.h"

using namespace mlir;
using namespace mlir::ds;

/// From here on a finite number fills the place of minus infinity: exp(-10^4) is 0 in every format. A causal
/// row always sees itself, so that it cannot be filled wholly.
static constexpr double kHiddenScore = -1e4;

Value mlir::ds::stripScale(Value value, double &scale) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<MulOp, DivOp>(op))
      break;
    std::optional<double> right = getSplatValue(op->getOperand(1)), left = getSplatValue(op->getOperand(0));
    if (right && isa<DivOp>(op))
      scale /= *right;
    else if (right)
      scale *= *right;
    else if (left && isa<MulOp>(op))
      scale *= *left;
    else
      break;
    value = op->getOperand(right ? 0 : 1);
  }
  return value;
}

std::optional<Visibility> AttentionMatcher::matchCausalOnce(Value condition) {
  auto [entry, isNew] = causal.try_emplace(condition);
  if (isNew)
    entry->second = matchCausal(condition);
  return entry->second;
}

/// A product without extras, of matrices with leading dimensions of their own.
static bool isPlainBatched(MatmulOp op) {
  return op && !op.getBias() && !op.getAccumulator() && op.getEpilogue() == Epilogue::None &&
         tensorType(op.getRhs()).getRank() >= 3 && tensorType(op.getRhs()).getRank() <= 4;
}

Value mlir::ds::stripLeadingReshape(Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return {};
  ArrayRef<int64_t> from = tensorType(reshape.getInput()).getShape(), to = tensorType(value).getShape();
  bool keepsMatrix = from.size() >= 3 && to.size() >= 3 && from.take_back(2) == to.take_back(2);
  return keepsMatrix ? reshape.getInput() : Value();
}

/// select(condition, scores, fill) or with its branches swapped: causal, or minus infinity as an additive
/// mask.
Value AttentionMatcher::stepThroughSelect(SelectOp op, AttentionMatch &match) {
  std::optional<double> onFalse = getSplatValue(op.getOnFalse()), onTrue = getSplatValue(op.getOnTrue());
  if (onFalse.has_value() == onTrue.has_value())
    return {};
  double fill = onFalse ? *onFalse : *onTrue;
  std::optional<Visibility> visibility = matchCausalOnce(op.getCondition());
  if (!visibility || fill * match.scale > kHiddenScore || match.scale <= 0)
    return {};
  bool hidesFuture = (*visibility == Visibility::Visible) == onFalse.has_value();
  if (!hidesFuture)
    return {};
  match.causal = true;
  return onFalse ? op.getOnTrue() : op.getOnFalse();
}

/// True when `mask` is 0 where visible and hidden elsewhere, by a select over a causal condition.
static bool isCausalAddend(Value mask, double scale,
                           llvm::function_ref<std::optional<Visibility>(Value)> matchCausal) {
  while (auto broadcast = mask.getDefiningOp<BroadcastOp>())
    mask = broadcast.getInput();
  auto select = mask.getDefiningOp<SelectOp>();
  if (!select || scale <= 0)
    return false;
  std::optional<double> onTrue = getSplatValue(select.getOnTrue()),
                        onFalse = getSplatValue(select.getOnFalse());
  std::optional<Visibility> visibility =
      onTrue && onFalse ? matchCausal(select.getCondition()) : std::nullopt;
  if (!visibility)
    return false;
  double visible = *visibility == Visibility::Visible ? *onTrue : *onFalse;
  double hidden = *visibility == Visibility::Visible ? *onFalse : *onTrue;
  return visible == 0 && hidden * scale <= kHiddenScore;
}

/// True for what holds scores: the way up to the first product.
static bool leadsToProduct(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      return isPlainBatched(matmul);
    if (isa<MulOp, DivOp, ReshapeOp, AddOp>(op))
      value = getSplatValue(op->getOperand(0)) ? op->getOperand(1) : op->getOperand(0);
    else if (auto select = dyn_cast<SelectOp>(op))
      value = getSplatValue(select.getOnTrue()) ? select.getOnFalse() : select.getOnTrue();
    else
      return false;
  }
  return false;
}

Value AttentionMatcher::stepThroughAdd(AddOp op, AttentionMatch &match) {
  bool isLeft = leadsToProduct(op.getLhs());
  Value scores = isLeft ? op.getLhs() : op.getRhs(), mask = isLeft ? op.getRhs() : op.getLhs();
  if (isCausalAddend(mask, match.scale, [&](Value condition) { return matchCausalOnce(condition); })) {
    match.causal = true;
    return scores;
  }
  if (match.mask || findTrained(func, symbols, mask))
    return {};
  match.mask = AdditiveMask{mask, match.scale};
  return scores;
}

/// One op further up, or null.
Value AttentionMatcher::stepUp(Value value, AttentionMatch &match) {
  if (Value scaled = stripScale(value, match.scale); scaled != value)
    return scaled;
  if (Value reshaped = stripLeadingReshape(value))
    return reshaped;
  if (auto select = value.getDefiningOp<SelectOp>())
    return stepThroughSelect(select, match);
  if (auto add = value.getDefiningOp<AddOp>())
    return stepThroughAdd(add, match);
  return {};
}

/// True for what ds.attention takes: values as wide as the keys, and heads that its kernels hold.
static bool hasWidthOfKeys(MatmulOp scores, MatmulOp result) {
  ArrayRef<int64_t> query = tensorType(scores.getLhs()).getShape();
  int64_t width = query[query.size() - (scores.getTransposeLhs() ? 2 : 1)];
  return width == tensorType(result.getResult()).getShape().back() && width <= ::ds::kMaxHeadSize;
}

std::optional<AttentionMatch> AttentionMatcher::match(MatmulOp result) {
  AttentionMatch match;
  match.result = result;
  if (!isPlainBatched(result) || result.getTransposeLhs())
    return std::nullopt;
  Value probabilities = result.getLhs();
  if (Value reshaped = stripLeadingReshape(probabilities); reshaped && probabilities.hasOneUse())
    probabilities = reshaped;
  auto softmax = probabilities.getDefiningOp<SoftmaxOp>();
  if (!softmax || softmax.getLog() || !probabilities.hasOneUse() ||
      static_cast<int64_t>(softmax.getDim()) != tensorType(probabilities).getRank() - 1)
    return std::nullopt;
  Value value = softmax.getInput();
  while (value && value.hasOneUse() && !isPlainBatched(value.getDefiningOp<MatmulOp>()))
    value = stepUp(value, match);
  if (!value || !value.hasOneUse())
    return std::nullopt;
  match.scores = value.getDefiningOp<MatmulOp>();
  if (match.scores.getTransposeLhs() || !hasWidthOfKeys(match.scores, result))
    return std::nullopt;
  return match;
}
