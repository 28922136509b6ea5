//===- Optimizers.cpp - From a gradient to a new parameter ----------------------===//
//
// The formulas of DeepSpeed 0.19.6 and PyTorch, as elementwise ops that fuse into one kernel per parameter.
// Numbers that do not depend on the element are computed once, in double precision, and meet the tensors as
// rank-0 f32.
//
// Lion follows its publication where DeepSpeed's kernel differs: a direction of exactly 0 does not move.
//
//===----------------------------------------------------------------------------===//
#include "Optimizers.h"

using namespace mlir;
using namespace mlir::ds;

using Kind = OptimizerOptions::Kind;

OptimizerBuilder::OptimizerBuilder(ScalarMath &math, const TrainingOptions &training, Scalar finished,
                                   Scalar totalSteps)
    : options(training.optimizer), rates(buildStepRates(math, training, finished, totalSteps)) {
  stepSize = rates.rate;
  oneMinusBeta1 = math.sub(1.0, rates.beta1);
  bool corrects = options.biasCorrection && (options.kind == Kind::Adam || options.kind == Kind::Lamb);
  if (corrects) {
    Scalar count = math.add(finished, 1.0);
    Scalar root = math.sqrt(math.sub(1.0, math.pow(rates.beta2, count)));
    stepSize = math.div(rates.rate, math.sub(1.0, math.pow(rates.beta1, count)));
    if (options.kind == Kind::Lamb)
      stepSize = math.mul(stepSize, root);
    else
      rootCorrection = math.div(1.0, root);
  }
  if (options.kind == Kind::Adagrad && options.rateDecay != 0)
    stepSize = math.div(rates.rate, math.add(math.mul(finished, options.rateDecay), 1.0));
  if (options.weightDecay != 0)
    keptParameter = math.sub(1.0, math.mul(rates.rate, options.weightDecay));
  if (options.kind == Kind::Sgd && options.dampening != 0) // the buffer starts as the first gradient itself
    newMomentum = math.choose(Predicate::GT, finished, 0.0, 1.0 - options.dampening, 1.0);
}

Value OptimizerBuilder::update(Emitter &emit, UpdateSlot &slot) const {
  switch (options.kind) {
  case Kind::Sgd:
    return updateSgd(emit, slot);
  case Kind::Adam:
    return updateAdam(emit, slot);
  case Kind::Adagrad:
    return updateAdagrad(emit, slot);
  case Kind::Lion:
    return updateLion(emit, slot);
  case Kind::Lamb:
    return updateLamb(emit, slot);
  }
  llvm_unreachable("all kinds are handled");
}

/// a * x + b * y, where factors of one say nothing.
static Value combine(Emitter &emit, Scalar a, Value x, Scalar b, Value y) {
  auto scaled = [&](Scalar factor, Value value) { return emit.mul(value, spread(emit, factor, value)); };
  return emit.add(scaled(a, x), scaled(b, y));
}

/// L2 regularisation: g + decay * p.
Value OptimizerBuilder::decayGradient(Emitter &emit, const UpdateSlot &slot) const {
  if (!slot.decays || options.weightDecay == 0)
    return slot.gradient;
  return emit.add(slot.gradient, emit.scale(slot.parameter, options.weightDecay));
}

/// Decoupled decay: p * (1 - rate * decay).
Value OptimizerBuilder::decayParameter(Emitter &emit, const UpdateSlot &slot) const {
  if (!slot.decays || options.weightDecay == 0)
    return slot.parameter;
  return emit.mul(slot.parameter, spread(emit, keptParameter, slot.parameter));
}

Value OptimizerBuilder::updateSgd(Emitter &emit, UpdateSlot &slot) const {
  Value gradient = decayGradient(emit, slot);
  if (options.momentum != 0) {
    Value momentum =
        combine(emit, options.momentum, slot.readMoment("momentum_buffer", 0.0), newMomentum, gradient);
    slot.writeMoment("momentum_buffer", momentum);
    gradient = options.nesterov ? emit.add(gradient, emit.scale(momentum, options.momentum)) : momentum;
  }
  return emit.sub(slot.parameter, emit.mul(gradient, spread(emit, rates.rate, gradient)));
}

/// m' = b1 m + (1 - b1) g and v' = b2 v + (1 - b2) g^2.
std::pair<Value, Value> OptimizerBuilder::updateAdamMoments(Emitter &emit, UpdateSlot &slot,
                                                            Value gradient) const {
  Value mean = combine(emit, rates.beta1, slot.readMoment("exp_avg", 0.0), oneMinusBeta1, gradient);
  Value square = combine(emit, rates.beta2, slot.readMoment("exp_avg_sq", 0.0), 1.0 - rates.beta2,
                         emit.square(gradient));
  slot.writeMoment("exp_avg", mean);
  slot.writeMoment("exp_avg_sq", square);
  return {mean, square};
}

Value OptimizerBuilder::updateAdam(Emitter &emit, UpdateSlot &slot) const {
  bool decoupled = options.decoupledDecay;
  auto [mean, square] = updateAdamMoments(emit, slot, decoupled ? slot.gradient : decayGradient(emit, slot));
  Value root = emit.unary<SqrtOp>(square);
  Value denominator = emit.shift(emit.mul(root, spread(emit, rootCorrection, root)), options.epsilon);
  Value step = emit.mul(emit.div(mean, denominator), spread(emit, stepSize, mean));
  return emit.sub(decoupled ? decayParameter(emit, slot) : slot.parameter, step);
}

Value OptimizerBuilder::updateAdagrad(Emitter &emit, UpdateSlot &slot) const {
  Value gradient = decayGradient(emit, slot);
  Value sum = emit.add(slot.readMoment("sum", options.startAccumulator), emit.square(gradient));
  slot.writeMoment("sum", sum);
  Value denominator = emit.shift(emit.unary<SqrtOp>(sum), options.epsilon);
  return emit.sub(slot.parameter,
                  emit.mul(emit.div(gradient, denominator), spread(emit, stepSize, gradient)));
}

Value OptimizerBuilder::updateLion(Emitter &emit, UpdateSlot &slot) const {
  Value momentum = slot.readMoment("exp_avg", 0.0);
  Value direction = emit.unary<SignOp>(combine(emit, rates.beta1, momentum, oneMinusBeta1, slot.gradient));
  slot.writeMoment("exp_avg", combine(emit, rates.beta2, momentum, 1.0 - rates.beta2, slot.gradient));
  return emit.sub(decayParameter(emit, slot), emit.mul(direction, spread(emit, rates.rate, direction)));
}

/// The step is scaled to the parameter's own norm; 1 where a norm is 0.
Value OptimizerBuilder::updateLamb(Emitter &emit, UpdateSlot &slot) const {
  auto [mean, square] = updateAdamMoments(emit, slot, slot.gradient);
  Value denominator = options.epsilonInsideRoot ? emit.unary<SqrtOp>(emit.shift(square, options.epsilon))
                                                : emit.shift(emit.unary<SqrtOp>(square), options.epsilon);
  Value update = emit.div(mean, denominator);
  if (slot.decays && options.weightDecay != 0)
    update = emit.add(update, emit.scale(slot.parameter, options.weightDecay));

  ScalarMath math(emit);
  Scalar norm = math.sqrt(buildSumOfSquares(emit, slot.parameter));
  Scalar updateNorm = math.sqrt(buildSumOfSquares(emit, update));
  Scalar bounded = math.min(math.max(math.div(norm, updateNorm), options.minTrust), options.maxTrust);
  Scalar trust = math.choose(Predicate::GT, math.mul(norm, updateNorm), 0.0, bounded, 1.0);
  return emit.sub(slot.parameter, emit.mul(update, spread(emit, math.mul(trust, stepSize), update)));
}

Value mlir::ds::buildSumOfSquares(Emitter &emit, ValueRange xs) {
  auto type = RankedTensorType::get({}, emit.getBuilder().getF64Type());
  return emit.getBuilder().create<SumOfSquaresOp>(emit.getLoc(), type, xs);
}
