//===- BatchNormOps.cpp - Batch norm, its gradient, and values without one -----------===//
//
// A channel's statistics are sums over a micro-batch. Both ops fall apart into them and into elementwise ops
// with [N, C, S] in place of [N, C, L...]: a sum over S, which lies in memory as it is read, and one over N
// of what that leaves. With `sync` each mean becomes one over ranks as well; means of equal numbers of
// samples are the mean of all.
//
//===----------------------------------------------------------------------------===//
#include "OpHelpers.h"
#include "ds/Dialect/DsTraining.h"

using namespace mlir;
using namespace mlir::ds;

/// What a channel has: `input`'s second dimension, of at least single precision.
static RankedTensorType statisticType(RankedTensorType input) {
  Type element = input.getElementType();
  if (element.getIntOrFloatBitWidth() < 32)
    element = Float32Type::get(input.getContext());
  return RankedTensorType::get(input.getDimSize(1), element);
}

/// Verifies that `value` has one element a channel.
static LogicalResult verifyChannels(Operation *op, StringRef what, RankedTensorType input, Value value) {
  Type element = tensorType(value).getElementType();
  return expectType(op, what, RankedTensorType::get(input.getDimSize(1), element), value.getType());
}

//===----------------------------------------------------------------------===//
// BatchNormOp
//===----------------------------------------------------------------------===//

LogicalResult BatchNormOp::verify() {
  RankedTensorType input = tensorType(getInput());
  if (input.getRank() < 2 || input.getNumElements() < 2 * input.getDimSize(1)) // C1.
    return emitOpError("expects an input [N, C, L...] with more than one element a channel, but got ")
           << input;
  for (Value value : {getWeight(), getBias()}) // C2.
    if (value && failed(verifyChannels(*this, "weight and bias", input, value)))
      return failure();
  for (Value value : {getMean(), getRstd()}) // C3.
    if (failed(expectType(*this, "statistics", statisticType(input), value.getType())))
      return failure();
  if (failed(expectType(*this, "result", input, getResult().getType()))) // C3.
    return failure();
  size_t numKept = getRunning().size();
  if (numKept != getNext().size() || (numKept != 0 && numKept != 2)) // C4.
    return emitOpError("expects a running mean and variance or neither, and as many next values, but got ")
           << numKept << " and " << getNext().size();
  for (auto [kept, next] : llvm::zip_equal(getRunning(), getNext())) // C4.
    if (failed(verifyChannels(*this, "running statistics", input, kept)) ||
        failed(expectType(*this, "next statistics", statisticType(input), next.getType())))
      return failure();
  double momentum = getMomentum().convertToDouble();
  if (!(momentum >= 0 && momentum <= 1)) // C5.
    return emitOpError("expects a momentum in [0, 1], but got ") << momentum;
  return success();
}

int64_t BatchNormOp::getFlops() { return 8 * tensorType(getInput()).getNumElements(); }

//===----------------------------------------------------------------------===//
// BatchNormGradOp
//===----------------------------------------------------------------------===//

LogicalResult BatchNormGradOp::verify() {
  RankedTensorType input = tensorType(getInput());
  if (input.getRank() < 2) // C1.
    return emitOpError("expects an input [N, C, L...], but got ") << input;
  for (Value value : {getGrad(), getInputGrad()}) // C1, C2.
    if (failed(expectType(*this, "gradients", input, value.getType())))
      return failure();
  for (Value value : {getMean(), getRstd(), getWeightGrad(), getBiasGrad()}) // C1, C2.
    if (failed(expectType(*this, "statistics", statisticType(input), value.getType())))
      return failure();
  return getWeight() ? verifyChannels(*this, "weight", input, getWeight()) : success(); // C1.
}

int64_t BatchNormGradOp::getFlops() { return 10 * tensorType(getInput()).getNumElements(); }

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

namespace {
/// The formulas of both ops, for an input [N, C, L...].
class ChannelRule {
public:
  ChannelRule(OpBuilder &builder, Operation *op, Value input, bool sync)
      : emit(builder, op->getLoc()), op(op), type(tensorType(input)), sync(sync) {
    int64_t samples = type.getDimSize(0), channels = type.getDimSize(1);
    shape = {samples, channels, type.getNumElements() / (samples * channels)};
  }

  /// The tensor as [N, C, S], in at least single precision.
  Value open(Value x) { return emit.widen(emit.reshape(x, shape)); }
  /// The same as the input's type.
  Value close(Value x) { return emit.convert(emit.reshape(x, type.getShape()), type.getElementType()); }
  /// A value a channel, for each element.
  Value spread(Value channel) { return emit.repeatAlong(emit.widen(channel), {0, 2}, shape); }
  Value sum(Value x) { return emit.sum(emit.sum(x, {2}), {0}); }
  /// The mean that `sum`, which is this rank's, is of.
  Value mean(Value sum) {
    Value mean = emit.scale(sum, 1.0 / static_cast<double>(shape[0] * shape[2]));
    return sync ? emit.getBuilder().create<RankMeanOp>(emit.getLoc(), mean) : mean;
  }
  /// Elements that a mean is of.
  double count() const {
    return static_cast<double>(shape[0] * shape[2] * (sync ? MeshOp::countSampleRanks(op) : 1));
  }
  Value scaled(Value x, Value weight) { return weight ? emit.mul(x, spread(weight)) : x; }

  Emitter emit;

private:
  Operation *op;
  RankedTensorType type;
  bool sync;
  SmallVector<int64_t> shape;
};
} // namespace

SmallVector<Value> BatchNormOp::decompose(OpBuilder &builder) {
  ChannelRule rule(builder, *this, getInput(), getSync());
  Emitter &emit = rule.emit;
  Value input = rule.open(getInput());
  Value mean = rule.mean(rule.sum(input));
  Value centered = emit.sub(input, rule.spread(mean));
  Value variance = rule.mean(rule.sum(emit.square(centered)));
  Value rstd = emit.unary<RsqrtOp>(emit.shift(variance, getEpsilon().convertToDouble()));
  Value result = rule.scaled(emit.mul(centered, rule.spread(rstd)), getWeight());
  if (getBias())
    result = emit.add(result, rule.spread(getBias()));
  SmallVector<Value> results = {rule.close(result), mean, rstd};
  if (getRunning().empty())
    return results;
  double momentum = getMomentum().convertToDouble();
  auto follow = [&](Value kept, Value now, double factor) {
    results.push_back(emit.add(emit.scale(emit.convert(kept, tensorType(now).getElementType()), 1 - momentum),
                               emit.scale(now, momentum * factor)));
  };
  follow(getRunning()[0], mean, 1);
  follow(getRunning()[1], variance, rule.count() / (rule.count() - 1)); // with Bessel's correction
  return results;
}

/// The affine map that the statistics kept make of each channel.
void BatchNormOp::evaluate() {
  if (getRunning().empty())
    return;
  OpBuilder builder(*this);
  ChannelRule rule(builder, *this, getInput(), /*sync=*/false);
  Emitter &emit = rule.emit;
  Value mean = emit.widen(getRunning()[0]), variance = emit.widen(getRunning()[1]);
  Value rstd = emit.unary<RsqrtOp>(emit.shift(variance, getEpsilon().convertToDouble()));
  Value result = emit.mul(emit.sub(rule.open(getInput()), rule.spread(mean)), rule.spread(rstd));
  result = rule.scaled(result, getWeight());
  if (getBias())
    result = emit.add(result, rule.spread(getBias()));
  Type element = tensorType(getMean()).getElementType();
  auto as = [&](Value value) { return emit.convert(value, element); };
  replaceAllUsesWith(ValueRange{rule.close(result), as(mean), as(rstd), as(mean), as(variance)});
  erase();
}

void BatchNormOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                 SmallVectorImpl<Value> &grads) {
  grads.append(getNumOperands(), Value());
  if (!resultGrads[0]) // ds-verify-model refuses other uses of what training makes of a micro-batch
    return;
  RankedTensorType statistic = tensorType(getMean());
  auto op = builder.create<BatchNormGradOp>(getLoc(), getInput().getType(), statistic, statistic, getInput(),
                                            getMean(), getRstd(), resultGrads[0], getWeight());
  Emitter emit(builder, getLoc());
  unsigned next = 0;
  auto set = [&](Value of, Value grad) {
    if (of && needed[next])
      grads[next] = emit.convert(grad, tensorType(of).getElementType());
    next += of ? 1 : 0;
  };
  set(getInput(), op.getInputGrad());
  set(getWeight(), op.getWeightGrad());
  set(getBias(), op.getBiasGrad());
}

SmallVector<Value> BatchNormGradOp::decompose(OpBuilder &builder) {
  ChannelRule rule(builder, *this, getInput(), getSync());
  Emitter &emit = rule.emit;
  Value grad = rule.open(getGrad());
  Value centered = emit.sub(rule.open(getInput()), rule.spread(getMean()));
  Value normalized = emit.mul(centered, rule.spread(getRstd()));
  Value byWeight = rule.sum(emit.mul(grad, normalized)), byBias = rule.sum(grad);
  // The weight is one factor of all that a channel's gradient has: it is multiplied in at last.
  Value drift = emit.mul(normalized, rule.spread(rule.mean(byWeight)));
  Value inner = emit.sub(emit.sub(grad, rule.spread(rule.mean(byBias))), drift);
  Value factor = emit.widen(getRstd());
  if (getWeight())
    factor = emit.mul(factor, emit.widen(getWeight()));
  return {rule.close(emit.mul(inner, rule.spread(factor))), byWeight, byBias};
}

SmallVector<Value> DetachOp::decompose(OpBuilder &) { return {getInput()}; }

#define GET_OP_CLASSES
#include "ds/Dialect/DsTrainingOps.cpp.inc"
