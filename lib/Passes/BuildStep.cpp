//===- BuildStep.cpp - A training step from a differentiated forward ------------===//
//
// The step is decided here completely: accumulation, clipping, schedule and optimizer become ops on tensors
// and on rank-0 scalars, so that the runtime only executes and the planner sees all of it.
//
// Without clipping a parameter is updated as soon as its gradient is final and its old value has had its last
// reader, so that a gradient lives shortly; with clipping all gradients have to wait for their common norm.
//
//===----------------------------------------------------------------------------===//
#include "FoldAccumulators.h"
#include "LossScale.h"
#include "Optimizers.h"
#include "StepSegment.h"
#include "StepStates.h"
#include "UpdateRegion.h"
#include "ds/Passes/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/Regex.h"

namespace mlir::ds {
#define GEN_PASS_DEF_BUILDSTEP
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {

/// Builds the functions of one step.
class StepBuilder {
public:
  StepBuilder(func::FuncOp forward, const TrainingOptions &options)
      : forward(forward), options(options), states(forward->getParentOfType<ModuleOp>()) {}

  /// A micro-step whose gradients are kept: written (first), or added to those kept so far (middle).
  void buildAccumulation(SegmentKind kind, StringRef name);
  /// The last micro-step with the update.
  void buildLast();
  /// The loss alone, without dropout.
  void buildEvaluation();

private:
  struct Update {
    StateOp parameter;
    Value value, gradient;
  };
  /// What is known of a step's gradients when all are complete; rank-0 values.
  struct Verdict {
    Value coefficient; ///< f32: what they are multiplied by; null: nothing
    Value isFinite;    ///< i1: false where the step is to be skipped; null: never
  };

  void writeLoss(StepSegment &segment, bool accumulates);
  void advanceGenerators(StepSegment &segment);
  SmallVector<Update> collectUpdates(StepSegment &segment);
  void buildUpdates(StepSegment &segment);
  void applyUpdate(StepSegment &segment, const OptimizerBuilder &optimizer, OpBuilder &builder,
                   const Update &update, const Verdict &verdict);
  template <class Read, class Write>
  void buildUpdate(const OptimizerBuilder &optimizer, Emitter &emit, const Update &update,
                   const Verdict &verdict, Read read, Write write);
  Verdict judgeGradients(StepSegment &segment, Emitter &emit, ArrayRef<Value> squares);
  Value buildCoefficient(ScalarMath &math, Scalar norm, Scalar scale);
  Scalar readLossScale(StepSegment &segment, ScalarMath &math);
  void writeLossScale(StepSegment &segment, Emitter &emit, Value isFinite);
  StateOp gradientState(StateOp parameter);
  StateOp updatedState(StateOp parameter);
  bool isDecayed(StringRef parameter) const;
  void finish(StepSegment &segment);

  func::FuncOp forward;
  const TrainingOptions &options;
  StepStates states;
};

void StepBuilder::finish(StepSegment &segment) {
  segment.finish();
  RewritePatternSet patterns(forward.getContext());
  populateFoldAccumulatorPatterns(patterns);
  (void)applyPatternsAndFoldGreedily(segment.getFunction(), std::move(patterns));
}

/// @loss is the mean over the step's micro-batches.
void StepBuilder::writeLoss(StepSegment &segment, bool accumulates) {
  OpBuilder builder(segment.getTerminator());
  Emitter emit(builder, segment.getLoss().getLoc());
  StateOp state = states.scalar("loss", builder.getF32Type());
  Value loss = emit.scale(emit.convert(segment.getLoss(), builder.getF32Type()), 1.0 / options.accumulation);
  segment.write(state, accumulates ? emit.add(segment.read(state), loss) : loss);
}

/// The generator state (seed, counter) of each random op moves on by one micro-step.
void StepBuilder::advanceGenerators(StepSegment &segment) {
  llvm::SetVector<Value> generators;
  segment.getFunction().walk([&](Operation *op) {
    if (isa<DropoutOp>(op))
      generators.insert(cast<DropoutOp>(op).getRng());
    else if (isa<RandomUniformOp>(op))
      generators.insert(cast<RandomUniformOp>(op).getRng());
  });
  OpBuilder builder(segment.getTerminator());
  for (Value generator : generators) {
    auto argument = dyn_cast<BlockArgument>(generator);
    auto name = argument ? segment.getFunction().getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(),
                                                                                     DsDialect::kStateAttr)
                         : FlatSymbolRefAttr();
    if (!name)
      continue;
    Emitter emit(builder, segment.getFunction().getLoc());
    Value increment =
        builder.create<IotaOp>(emit.getLoc(), generator.getType(), /*dim=*/0, /*start=*/0, /*step=*/1);
    segment.write(states.lookup(name.getAttr()), emit.add(generator, increment));
  }
}

/// Where the gradients of micro-steps add up.
StateOp StepBuilder::gradientState(StateOp parameter) {
  Type element = parameter.getTensorType().getElementType();
  if (!element.isF64())
    element = toFloatType(forward.getContext(), options.precision.gradient);
  return states.owned(parameter, "grad", Role::Gradient, element);
}

void StepBuilder::buildAccumulation(SegmentKind kind, StringRef name) {
  StepSegment segment(forward, name, kind);
  bool accumulates = kind == SegmentKind::Middle;
  writeLoss(segment, accumulates);
  advanceGenerators(segment);
  OpBuilder builder(segment.getTerminator());
  for (auto [parameter, gradient] : segment.getGradients()) {
    StateOp state = gradientState(states.lookup(parameter));
    Emitter emit(builder, gradient.getLoc());
    Type element = state.getTensorType().getElementType();
    Value kept = accumulates ? segment.read(state) : Value();
    segment.write(state, kept ? addInto(emit, kept, gradient) : makeIn(emit, gradient, element));
  }
  finish(segment);
}

void StepBuilder::buildLast() {
  StepSegment segment(forward, "last", SegmentKind::Last);
  writeLoss(segment, options.accumulation > 1);
  advanceGenerators(segment);
  buildUpdates(segment);
  finish(segment);
}

void StepBuilder::buildEvaluation() {
  StepSegment segment(forward, "evaluate", SegmentKind::Evaluation);
  segment.getFunction().walk([](DropoutOp op) {
    op.replaceAllUsesWith(op.getInput());
    op.erase();
  });
  OpBuilder builder(segment.getTerminator());
  Emitter emit(builder, segment.getLoss().getLoc());
  StateOp state = states.scalar("eval_loss", builder.getF32Type());
  segment.write(state, emit.convert(segment.getLoss(), builder.getF32Type()));
  segment.finish();
}

/// The parameters with the gradient of the whole step: this micro-batch's plus what was accumulated.
SmallVector<StepBuilder::Update> StepBuilder::collectUpdates(StepSegment &segment) {
  SmallVector<Update> updates;
  OpBuilder builder(forward.getContext());
  for (auto [name, gradient] : segment.getGradients()) {
    StateOp parameter = states.lookup(name);
    Value total = gradient;
    if (options.accumulation > 1) {
      Value accumulated = segment.read(gradientState(parameter));
      builder.setInsertionPointAfterValue(gradient);
      Emitter emit(builder, gradient.getLoc());
      total = addInto(emit, accumulated, gradient);
    }
    updates.push_back({parameter, segment.read(parameter), total});
  }
  return updates;
}

bool StepBuilder::isDecayed(StringRef parameter) const {
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

void StepBuilder::buildUpdates(StepSegment &segment) {
  OpBuilder builder(forward.getContext());
  StateOp step = states.scalar("step", builder.getI64Type());
  Value finished = segment.read(step);
  builder.setInsertionPointToStart(&segment.getBody());
  Emitter prologue(builder, segment.getFunction().getLoc());
  ScalarMath math(prologue);
  OptimizerBuilder optimizer(math, options, prologue.convert(finished, builder.getF64Type()));
  segment.write(states.scalar("lr", builder.getF64Type()),
                math.materialize(optimizer.getRate(), builder.getF64Type()));
  Value next = prologue.add(finished, prologue.splatLike(finished, 1));
  if (!options.lossScale.skips)
    segment.write(step, next);

  SmallVector<Update> updates = collectUpdates(segment);
  SmallVector<Value> squares;
  bool waits = options.clipping != 0 || options.lossScale.skips; // for what is known of all gradients
  for (const Update &update : updates) {
    setInsertionPointAfterLastUse(builder, update.gradient, update.value);
    Emitter emit(builder, update.gradient.getLoc());
    squares.push_back(buildSumOfSquares(emit, update.gradient));
    if (!waits)
      applyUpdate(segment, optimizer, builder, update, Verdict());
  }
  builder.setInsertionPoint(segment.getTerminator());
  Emitter epilogue(builder, segment.getFunction().getLoc());
  Verdict verdict = judgeGradients(segment, epilogue, squares);
  if (verdict.isFinite)
    segment.write(step, epilogue.select(verdict.isFinite, next, finished));
  if (waits)
    for (const Update &update : updates)
      applyUpdate(segment, optimizer, builder, update, verdict);
}

/// The number that the loss was multiplied by.
Scalar StepBuilder::readLossScale(StepSegment &segment, ScalarMath &math) {
  const LossScaleOptions &scaler = options.lossScale;
  if (!scaler.scales)
    return 1.0;
  if (!scaler.dynamic)
    return scaler.initial;
  return math.widen(segment.read(states.lookup(kLossScaleState)));
}

/// What unscales and clips gradients whose unscaled norm is `norm`; null for nothing.
Value StepBuilder::buildCoefficient(ScalarMath &math, Scalar norm, Scalar scale) {
  Type f32 = Float32Type::get(forward.getContext());
  if (!options.lossScale.scales && options.clipping == 0)
    return {};
  if (!options.lossScale.scales)
    return math.materialize(math.min(math.div(options.clipping, math.add(norm, 1e-6)), 1.0), f32);
  if (options.clipping == 0)
    return math.materialize(math.div(1.0, scale), f32);
  Scalar excess = math.max(math.div(math.add(norm, 1e-6), options.clipping), 1.0);
  return math.materialize(math.div(1.0, math.mul(excess, scale)), f32);
}

/// The scaler's states, and whether this step is skipped.
void StepBuilder::writeLossScale(StepSegment &segment, Emitter &emit, Value isFinite) {
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
  segment.write(states.scalar("skipped", i64), buildSkipped(emit, scaler, before, isFinite));
}

/// Writes @grad_norm, the global norm before clipping, and what follows from it for all parameters.
StepBuilder::Verdict StepBuilder::judgeGradients(StepSegment &segment, Emitter &emit,
                                                 ArrayRef<Value> squares) {
  ScalarMath math(emit);
  Scalar total = 0.0;
  for (auto [index, square] : llvm::enumerate(squares))
    total = index ? math.add(total, square) : Scalar(square);
  Scalar scale = readLossScale(segment, math);
  Scalar norm = math.sqrt(total);
  if (options.lossScale.scales)
    norm = math.div(norm, scale);
  Builder &builder = emit.getBuilder();
  segment.write(states.scalar("grad_norm", builder.getF32Type()),
                math.materialize(norm, builder.getF32Type()));
  Verdict verdict{buildCoefficient(math, norm, scale), Value()};
  if (options.lossScale.skips) {
    verdict.isFinite = buildIsFinite(emit, math.materialize(total, builder.getF64Type()));
    writeLossScale(segment, emit, verdict.isFinite);
  }
  return verdict;
}

/// The state that the optimizer steps: the parameter itself, or the master that it is rounded from.
StateOp StepBuilder::updatedState(StateOp parameter) {
  Type master = toFloatType(forward.getContext(), options.precision.master);
  Type element = parameter.getTensorType().getElementType();
  if (!options.precision.lowersParameters() || element == master)
    return parameter;
  return states.owned(parameter, "master", Role::Master, master);
}

/// Emits the formula of one parameter. `read` gives the old value of a state, `write` takes the new one.
template <class Read, class Write>
void StepBuilder::buildUpdate(const OptimizerBuilder &optimizer, Emitter &emit, const Update &update,
                              const Verdict &verdict, Read read, Write write) {
  StateOp parameter = update.parameter, updated = updatedState(parameter);
  UpdateSlot slot;
  slot.parameter = emit.widen(read(updated));
  slot.gradient = emit.widen(update.gradient);
  if (verdict.coefficient)
    slot.gradient = emit.mul(slot.gradient, spread(emit, verdict.coefficient, slot.gradient));
  slot.decays = isDecayed(parameter.getSymName());
  auto moment = [&](StringRef name, double start = 0) {
    Type element = tensorType(slot.parameter).getElementType();
    if (options.precision.moment != FloatKind::F32)
      element = toFloatType(forward.getContext(), options.precision.moment);
    return states.owned(parameter, name, Role::Moment, element, start);
  };
  // A skipped step leaves every state as it is.
  auto keep = [&](StateOp state, Value value) {
    value = emit.convert(value, state.getTensorType().getElementType());
    if (verdict.isFinite)
      value = emit.select(emit.repeatScalar(verdict.isFinite, value), value, read(state));
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
void StepBuilder::applyUpdate(StepSegment &segment, const OptimizerBuilder &optimizer, OpBuilder &builder,
                              const Update &update, const Verdict &verdict) {
  if (options.optimizer.kind == OptimizerOptions::Kind::Lamb) {
    Emitter emit(builder, update.gradient.getLoc());
    return buildUpdate(
        optimizer, emit, update, verdict, [&](StateOp state) { return segment.read(state); },
        [&](StateOp state, Value value) { segment.write(state, value); });
  }
  UpdateRegion region(update.parameter, update.gradient);
  SmallVector<StateOp> written;
  buildUpdate(
      optimizer, region.getEmitter(), {update.parameter, update.value, region.getGradient()}, verdict,
      [&](StateOp state) { return region.addState(segment.read(state)); },
      [&](StateOp state, Value value) {
        written.push_back(state);
        region.yield(value);
      });
  UpdateOp op = region.finish(builder);
  for (auto [state, value] : llvm::zip_equal(written, op.getResults()))
    segment.write(state, value);
}

//===----------------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------------===//

/// Fails where a state of the model has a name that the step needs.
static LogicalResult checkNames(ModuleOp module, const LossScaleOptions &scaler) {
  SmallVector<StringRef> names = {"loss", "grad_norm", "lr", "step", "eval_loss"};
  if (scaler.skips)
    names.append({"skipped", "good_steps", "hysteresis"});
  for (StateOp state : module.getOps<StateOp>())
    for (StringRef name : names)
      if (state.getSymName() == name)
        return state.emitOpError("expects a name that the step does not use itself, but got \"")
               << name << '"';
  return success();
}

struct BuildStep : ds::impl::BuildStepBase<BuildStep> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward) {
      emitError(module.getLoc(), "expects a function @forward to build a step from, but the module has none");
      return signalPassFailure();
    }
    FailureOr<TrainingOptions> options = readTrainingAttr(module);
    if (failed(options) || failed(checkNames(module, options->lossScale)) ||
        failed(checkDifferentiated(forward, options->lossScale)))
      return signalPassFailure();
    StepBuilder builder(forward, *options);
    if (options->accumulation > 1)
      builder.buildAccumulation(SegmentKind::First, "first");
    if (options->accumulation > 2)
      builder.buildAccumulation(SegmentKind::Middle, "middle");
    builder.buildLast();
    builder.buildEvaluation();
    forward.erase();
    module->setAttr(DsDialect::kPhaseAttr, StringAttr::get(&getContext(), "step"));
  }

  static LogicalResult checkDifferentiated(func::FuncOp forward, const LossScaleOptions &scaler) {
    if (scaler.dynamic && !SymbolTable::lookupNearestSymbolFrom<StateOp>(
                              forward, StringAttr::get(forward.getContext(), kLossScaleState))) {
      InFlightDiagnostic error = forward.emitOpError("expects a state @loss_scale, but the module has none");
      error.attachNote() << "--ds-differentiate declares it, by the same " << DsDialect::kTrainingAttr;
      return error;
    }
    for (unsigned index = 0; index < forward.getNumResults(); ++index)
      if (forward.getResultAttr(index, DsDialect::kGradientAttr))
        return success();
    InFlightDiagnostic error =
        forward.emitOpError("expects at least one gradient among its results, but got none");
    error.attachNote() << "--ds-differentiate appends them, for trainable parameters that influence the loss";
    return error;
  }
};
} // namespace
