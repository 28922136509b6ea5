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

const std::optional<SeenKeys> &KeysFinder::find(Value condition) {
  auto [entry, isNew] = seen.try_emplace(condition);
  if (isNew)
    entry->second = matchSeenKeys(condition);
  return entry->second;
}

void HiddenKeys::add(bool future, std::optional<int64_t> near) {
  causal |= future;
  if (near)
    window = std::min(window.value_or(*near), *near);
}

/// Adds what `condition` hides to what is hidden, if a true one means `whenTrue`.
bool AttentionMatcher::addMask(Value condition, Visibility whenTrue, AttentionMatch &match) {
  const std::optional<SeenKeys> &keys = finder.find(condition);
  if (!keys || keys->whenTrue != whenTrue)
    return false;
  match.hidden.add(keys->isCausal, keys->window);
  return true;
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

/// select(condition, scores, fill) or with its branches swapped, where the condition hides the future or the
/// distant.
Value AttentionMatcher::stepThroughSelect(SelectOp op, AttentionMatch &match) {
  std::optional<double> onFalse = getSplatValue(op.getOnFalse()), onTrue = getSplatValue(op.getOnTrue());
  if (onFalse.has_value() == onTrue.has_value())
    return {};
  double fill = onFalse ? *onFalse : *onTrue;
  if (fill * match.scale > kHiddenScore || match.scale <= 0 ||
      !addMask(op.getCondition(), onFalse ? Visibility::Visible : Visibility::Hidden, match))
    return {};
  return onFalse ? op.getOnTrue() : op.getOnFalse();
}

/// The condition by which `addend` is 0 where keys are seen and hides them elsewhere, and what a true one
/// means; null where it is nothing of the kind.
static std::pair<Value, Visibility> findCondition(const Addend &addend, double scale) {
  auto select = addend.value.getDefiningOp<SelectOp>();
  const bool isOfKeys =
      addend.dims.size() >= 2 && ArrayRef(addend.dims).take_back(2) == ArrayRef<int64_t>{2, 3};
  if (!select || !isOfKeys || scale <= 0)
    return {};
  std::optional<double> onTrue = getSplatValue(select.getOnTrue()),
                        onFalse = getSplatValue(select.getOnFalse());
  if (!onTrue || !onFalse)
    return {};
  if (*onTrue == 0 && *onFalse * scale <= kHiddenScore)
    return {select.getCondition(), Visibility::Visible};
  if (*onFalse == 0 && *onTrue * scale <= kHiddenScore)
    return {select.getCondition(), Visibility::Hidden};
  return {};
}

std::optional<MaskParts> mlir::ds::matchMask(KeysFinder &finder, Value mask, double scale, bool isCausal) {
  SmallVector<Addend> addends, rest;
  splitAddends(mask, addends);
  MaskParts parts;
  for (const Addend &addend : addends) {
    auto [condition, whenTrue] = findCondition(addend, scale);
    const std::optional<SeenKeys> keys = condition ? finder.find(condition) : std::nullopt;
    if (keys && keys->whenTrue == whenTrue)
      parts.hidden.add(keys->isCausal, keys->window);
    else
      rest.push_back(addend);
  }
  if (addends.empty() || rest.size() > 1)
    return std::nullopt;
  if (rest.empty())
    return parts;
  ArrayRef<int64_t> scores = tensorType(mask).getShape().take_back(2);
  parts.slopes = matchSlopes(rest.front(), scores[0], scores[1], isCausal || parts.hidden.causal);
  return parts.slopes ? std::optional(parts) : std::nullopt;
}

/// True for what holds scores: a way up to the first product, within as many ops as `left` says.
static bool leadsToProduct(Value value, int left = 32) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      return isPlainBatched(matmul);
    if (left-- <= 0)
      return false;
    if (isa<AddOp>(op) && !getSplatValue(op->getOperand(0)) && leadsToProduct(op->getOperand(1), left / 2))
      return true;
    if (isa<MulOp, DivOp, ReshapeOp, AddOp, TanhOp>(op))
      value = op->getNumOperands() > 1 && getSplatValue(op->getOperand(0)) ? op->getOperand(1)
                                                                           : op->getOperand(0);
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
  if (findTrained(func, symbols, mask))
    return {};
  std::optional<MaskParts> parts = matchMask(finder, mask, match.scale, match.hidden.causal);
  if (parts && !(parts->slopes && match.slopes)) {
    match.hidden.add(parts->hidden.causal, parts->hidden.window);
    if (parts->slopes) {
      match.slopes = HeadSlopes{parts->slopes->slopes, parts->slopes->factor * match.scale};
      match.spelled = AdditiveMask{mask, match.scale};
    }
    return scores;
  }
  if (match.mask)
    return {};
  match.mask = AdditiveMask{mask, match.scale};
  return scores;
}

/// s * tanh(x): the cap of s, which is all that the scores have been multiplied by behind it.
static Value stepThroughTanh(TanhOp op, AttentionMatch &match) {
  if (match.cap || match.scale == 0)
    return {};
  match.cap = std::abs(match.scale);
  return op.getInput();
}

/// One op further up, or null. Above a cap there is nothing but factors: masks are added behind it.
Value AttentionMatcher::stepUp(Value value, AttentionMatch &match) {
  if (Value scaled = stripScale(value, match.scale); scaled != value)
    return scaled;
  if (Value reshaped = stripLeadingReshape(value))
    return reshaped;
  if (auto tanh = value.getDefiningOp<TanhOp>())
    return stepThroughTanh(tanh, match);
  if (match.cap)
    return {};
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
  // A reshape changes no element's number, and so not what is drawn for it.
  if (auto dropout = probabilities.getDefiningOp<DropoutOp>(); dropout && probabilities.hasOneUse()) {
    match.dropout = dropout;
    probabilities = dropout.getInput();
    if (Value reshaped = stripLeadingReshape(probabilities); reshaped && probabilities.hasOneUse())
      probabilities = reshaped;
  }
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
