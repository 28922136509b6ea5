//===- StepUpdate.cpp - The update at the end of a step -------------------------===//
#include "StepUpdate.h"
#include "Support/LossScale.h"
#include "Support/Schedules.h"
#include "UpdateRegion.h"

#include "llvm/Support/Regex.h"

#include <limits>

using namespace mlir;
using namespace mlir::ds;

bool StepUpdate::isDecayed(StringRef parameter) const {
  return llvm::none_of(options.noDecay,
                       [&](const std::string &pattern) { return llvm::Regex(pattern).match(parameter); });
}

/// Places `builder` after the gradient is complete and the parameter's old value has been read for the last
/// time.
static void setInsertionPointAfterLastUse(OpBuilder &builder, Value gradient, Value parameter) {
  builder.setInsertionPointAfterValue(gradient);
  Operation *last = gradient.getDefiningOp();
  for (Operation *user : parameter.getUsers())
    if (!user->hasTrait<OpTrait::IsTerminator>() && (!last || last->isBeforeInBlock(user)))
      last = user;
  if (last)
    builder.setInsertionPointAfter(last);
}

StepUpdate::StepUpdate(StepSegment &segment, StepStates &states, const TrainingOptions &options)
    : segment(segment), states(states), options(options), optimizer(buildPrologue()) {}

OptimizerBuilder StepUpdate::buildPrologue() {
  OpBuilder builder(segment.getFunction().getContext());
  step = states.scalar("step", builder.getI64Type());
  finished = segment.read(step);
  builder.setInsertionPointToStart(&segment.getBody());
  Emitter emit(builder, segment.getFunction().getLoc());
  ScalarMath math(emit);
  Scalar total = static_cast<double>(options.schedule.totalSteps);
  if (options.schedule.totalSteps == ScheduleOptions::kStepsOfRun)
    total = segment.read(states.scalar(kTotalStepsState, builder.getF64Type()));
  OptimizerBuilder shared(math, options, emit.convert(finished, builder.getF64Type()), total);
  segment.write(states.scalar("lr", builder.getF64Type()),
                math.materialize(shared.getRate(), builder.getF64Type()));
  next = emit.add(finished, emit.splatLike(finished, 1));
  if (!options.lossScale.skips)
    segment.write(step, next);
  return shared;
}

void StepUpdate::apply(ArrayRef<ParameterUpdate> updates) {
  OpBuilder builder(segment.getFunction().getContext());
  SmallVector<Value> gradients, squares;
  bool waits = options.clipping != 0 || options.lossScale.skips; // for what is known of all gradients
  for (const ParameterUpdate &update : updates) {
    gradients.push_back(update.gradient);
    if (waits)
      continue;
    setInsertionPointAfterLastUse(builder, update.gradient, update.value);
    Emitter emit(builder, update.gradient.getLoc());
    squares.push_back(buildSumOfSquares(emit, update.gradient));
    applyUpdate(builder, update, Verdict());
  }
  builder.setInsertionPoint(segment.getTerminator());
  Emitter epilogue(builder, segment.getFunction().getLoc());
  if (waits && !gradients.empty()) { // all of them are there until the updates: one sum, where it is wanted
    Emitter norm(builder, NameLoc::get(builder.getStringAttr("grad_norm"), epilogue.getLoc()));
    squares.push_back(buildSumOfSquares(norm, gradients));
  }
  Verdict verdict = judgeGradients(epilogue, squares);
  if (verdict.isGood)
    segment.write(step, epilogue.select(verdict.isGood, next, finished));
  if (options.offload.speculates && waits)
    presume(epilogue, verdict);
  if (waits)
    for (const ParameterUpdate &update : updates)
      applyUpdate(builder, update, verdict);
}

/// The number that the loss was multiplied by.
Scalar StepUpdate::readLossScale(ScalarMath &math) {
  const LossScaleOptions &scaler = options.lossScale;
  if (!scaler.scales)
    return 1.0;
  if (!scaler.dynamic)
    return scaler.initial;
  return math.widen(segment.read(states.lookup(kLossScaleState)));
}

/// What unscales and clips gradients whose unscaled norm is `norm`; null for nothing.
Value StepUpdate::buildCoefficient(ScalarMath &math, Scalar norm, Scalar scale) {
  Type f32 = Float32Type::get(segment.getFunction().getContext());
  if (!options.lossScale.scales && options.clipping == 0)
    return {};
  if (!options.lossScale.scales)
    return math.materialize(math.min(math.div(options.clipping, math.add(norm, 1e-6)), 1.0), f32);
  if (options.clipping == 0)
    return math.materialize(math.div(1.0, scale), f32);
  Scalar excess = math.max(math.div(math.add(norm, 1e-6), options.clipping), 1.0);
  return math.materialize(math.div(1.0, math.mul(excess, scale)), f32);
}

/// Whether gradients are finite and the loss is none that the host calls a spike: it sets @loss_limit. A NaN
/// is within no limit.
Value StepUpdate::buildIsBounded(Emitter &emit, Value isFinite) {
  Type f32 = emit.getBuilder().getF32Type();
  Value loss = segment.getWritten(states.lookup("loss"));
  Value limit = segment.read(states.scalar(kLossLimitState, f32, std::numeric_limits<float>::max()));
  return emit.binary<AndOp>(isFinite, emit.compare(Predicate::LE, loss, limit));
}

/// The scaler's states, and whether this step is skipped.
void StepUpdate::writeLossScale(Emitter &emit, Value isFinite, Value isGood) {
  const LossScaleOptions &scaler = options.lossScale;
  Type i64 = emit.getBuilder().getI64Type();
  LossScaleState before;
  if (scaler.scales && !scaler.dynamic) // for the log
    states.scalar(kLossScaleState, emit.getBuilder().getF32Type(), scaler.initial);
  if (scaler.dynamic) {
    StateOp scale = states.lookup(kLossScaleState), goodSteps = states.scalar("good_steps", i64);
    StateOp hysteresis = states.scalar("hysteresis", i64, static_cast<double>(scaler.hysteresis));
    before = {segment.read(scale), segment.read(goodSteps), segment.read(hysteresis)};
    LossScaleState after = updateLossScale(emit, scaler, before, isFinite);
    segment.write(scale, after.scale);
    segment.write(goodSteps, after.goodSteps);
    segment.write(hysteresis, after.hysteresis);
  }
  Value skipped = buildSkipped(emit, scaler, before, isFinite);
  if (isGood != isFinite) // 3: the loss alone
    skipped = emit.select(isGood, emit.scalar(i64, 0), emit.select(isFinite, emit.scalar(i64, 3), skipped));
  segment.write(states.scalar("skipped", i64), skipped);
}

/// Says of `verdict` what it is where nothing is clipped and nothing overflows.
void StepUpdate::presume(Emitter &emit, Verdict &verdict) {
  ScalarMath math(emit);
  Type i1 = emit.getBuilder().getI1Type(), f32 = emit.getBuilder().getF32Type();
  Value guess, wrong;
  if (options.clipping != 0) {
    guess =
        math.materialize(options.lossScale.scales ? math.div(1.0, readLossScale(math)) : Scalar(1.0), f32);
    wrong = emit.compare(Predicate::NE, verdict.coefficient, guess); // a NaN differs
  }
  if (verdict.isGood)
    wrong = emit.select(verdict.isGood, wrong ? wrong : emit.scalar(i1, 0), emit.scalar(i1, 1));
  auto claim = [&](Value truth, Value guess) -> Value {
    return emit.getBuilder().create<PresumeOp>(emit.getLoc(), truth, guess, wrong);
  };
  if (guess)
    verdict.coefficient = claim(verdict.coefficient, guess);
  if (verdict.isGood)
    verdict.isGood = claim(verdict.isGood, emit.scalar(i1, 1));
}

/// Writes @grad_norm, the global norm before clipping, and what follows from it for all parameters.
StepUpdate::Verdict StepUpdate::judgeGradients(Emitter &emit, ArrayRef<Value> squares) {
  ScalarMath math(emit);
  Scalar total = 0.0;
  for (auto [index, square] : llvm::enumerate(squares))
    total = index ? math.add(total, square) : Scalar(square);
  Scalar scale = readLossScale(math);
  Scalar norm = math.sqrt(total);
  if (options.lossScale.scales)
    norm = math.div(norm, scale);
  Builder &builder = emit.getBuilder();
  segment.write(states.scalar("grad_norm", builder.getF32Type()),
                math.materialize(norm, builder.getF32Type()));
  Verdict verdict{buildCoefficient(math, norm, scale), Value()};
  if (options.lossScale.skips) {
    Value isFinite = buildIsFinite(emit, math.materialize(total, builder.getF64Type()));
    verdict.isGood = options.boundsLoss ? buildIsBounded(emit, isFinite) : isFinite;
    writeLossScale(emit, isFinite, verdict.isGood);
  }
  return verdict;
}

/// The state that the optimizer steps: the parameter itself, or the master that it is rounded from.
StateOp StepUpdate::updatedState(StateOp parameter) {
  Type master = toFloatType(segment.getFunction().getContext(), options.precision.master);
  Type element = parameter.getTensorType().getElementType();
  if (!options.precision.lowersParameters() || element == master)
    return parameter;
  return states.owned(parameter, "master", Role::Master, master);
}

/// Emits the formula of one parameter. `read` gives the old value of a state, `write` takes the new one.
template <class Read, class Write>
void StepUpdate::buildUpdate(Emitter &emit, const ParameterUpdate &update, const Verdict &verdict, Read read,
                             Write write) {
  StateOp parameter = update.parameter, updated = updatedState(parameter);
  UpdateSlot slot;
  slot.parameter = emit.widen(read(updated));
  slot.gradient = emit.widen(update.gradient);
  if (verdict.coefficient)
    slot.gradient = emit.mul(slot.gradient, spread(emit, verdict.coefficient, slot.gradient));
  else if (verdict.isGood) // else all that the verdict only chooses from would be made, and kept, before it
    slot.gradient = emit.select(emit.repeatScalar(verdict.isGood, slot.gradient), slot.gradient,
                                emit.splatLike(slot.gradient, 0.0));
  slot.decays = isDecayed(parameter.getSymName());
  auto moment = [&](StringRef name, double start = 0) {
    Type element = tensorType(slot.parameter).getElementType();
    if (options.precision.moment != FloatKind::F32)
      element = toFloatType(segment.getFunction().getContext(), options.precision.moment);
    return states.owned(parameter, name, Role::Moment, element, start);
  };
  // A skipped step leaves every state as it is.
  auto keep = [&](StateOp state, Value value) {
    value = emit.convert(value, state.getTensorType().getElementType());
    if (verdict.isGood)
      value = emit.select(emit.repeatScalar(verdict.isGood, value), value, read(state));
    write(state, value);
    return value;
  };
  slot.readMoment = [&](StringRef name, double start) { return emit.widen(read(moment(name, start))); };
  slot.writeMoment = [&](StringRef name, Value value) { keep(moment(name), value); };
  Value result = keep(updated, optimizer.update(emit, slot));
  if (updated != parameter) // a master that stays rounds to the same parameter again
    write(parameter, emit.convert(result, parameter.getTensorType().getElementType()));
}

/// Updates one parameter: by a ds.update, but for Lamb, which looks at the parameter as a whole.
void StepUpdate::applyUpdate(OpBuilder &builder, const ParameterUpdate &update, const Verdict &verdict) {
  if (options.optimizer.kind == OptimizerOptions::Kind::Lamb) {
    Emitter emit(builder, update.gradient.getLoc());
    return buildUpdate(
        emit, update, verdict, [&](StateOp state) { return segment.read(state); },
        [&](StateOp state, Value value) { segment.write(state, value); });
  }
  UpdateRegion region(update.parameter, update.gradient);
  SmallVector<StateOp> written;
  buildUpdate(
      region.getEmitter(), {update.parameter, update.value, region.getGradient()}, verdict,
      [&](StateOp state) { return region.addState(segment.read(state)); },
      [&](StateOp state, Value value) {
        written.push_back(state);
        region.yield(value);
      });
  UpdateOp op = region.finish(builder);
  for (auto [state, value] : llvm::zip_equal(written, op.getResults()))
    segment.write(state, value);
}
