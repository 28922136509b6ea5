//===- BuildStep.cpp - A training step from a differentiated forward ------------===//
//
// The step is decided here completely: accumulation, clipping, schedule and optimizer become ops on tensors
// and on rank-0 scalars, so that the runtime only executes and the planner sees all of it. Here are its
// segments; StepUpdate.h is what the last one does with the gradients.
//
//===----------------------------------------------------------------------------===//
#include "LogitsEntry.h"
#include "StepUpdate.h"
#include "Support/FoldAccumulators.h"
#include "Support/LossScale.h"
#include "Support/StraightLine.h"
#include "ds/Dialect/DsTraining.h"
#include "ds/Dialect/Stages.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/StateNames.h"

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
      : forward(forward), options(options), states(forward->getParentOfType<ModuleOp>()),
        stage(findStageNumber(forward->getParentOfType<ModuleOp>()).value_or(0)) {}

  /// A micro-step whose gradients are kept: set, or added to those kept so far.
  void buildAccumulation(StringRef name, bool adds);
  /// The last micro-step with the update.
  void buildLast();
  /// The loss alone, without dropout, by the statistics that training has kept.
  void buildEvaluation();
  /// The logits of chosen positions, likewise. Fails where there are none.
  LogicalResult buildLogitsEntry();
  /// What runs when, of the segments that were built.
  void buildSchedule();

private:
  void writeLoss(StepSegment &segment, bool adds, bool isComplete);
  void advanceGenerators(StepSegment &segment);
  SmallVector<ParameterUpdate> collectUpdates(StepSegment &segment);
  StateOp gradientState(StateOp parameter);
  void finish(StepSegment &segment);

  func::FuncOp forward;
  const TrainingOptions &options;
  StepStates states;
  const int64_t stage; ///< of a pipeline
};

void StepBuilder::finish(StepSegment &segment) {
  segment.finish();
  RewritePatternSet patterns(forward.getContext());
  populateFoldAccumulatorPatterns(patterns);
  (void)applyPatternsAndFoldGreedily(segment.getFunction(), std::move(patterns), straightLineConfig());
}

/// @loss is the mean over the step's micro-batches, and in the end over the ranks'.
void StepBuilder::writeLoss(StepSegment &segment, bool adds, bool isComplete) {
  if (!segment.getLoss())
    return;
  OpBuilder builder(segment.getTerminator());
  Emitter emit(builder, segment.getLoss().getLoc());
  StateOp state = states.scalar("loss", builder.getF32Type());
  Value loss = emit.scale(emit.convert(segment.getLoss(), builder.getF32Type()), 1.0 / options.accumulation);
  Value sum = adds ? emit.add(segment.read(state), loss) : loss;
  segment.write(state, isComplete ? builder.create<RankMeanOp>(emit.getLoc(), sum) : sum);
  markWork(segment.getBody(), Work::Forward);
}

/// The generator state (seed, counter) of each random op moves on by one micro-step.
void StepBuilder::advanceGenerators(StepSegment &segment) {
  llvm::SetVector<Value> generators;
  segment.getFunction().walk([&](RandomOpInterface op) {
    if (Value generator = op.getGenerator())
      generators.insert(generator);
  });
  OpBuilder builder(segment.getTerminator());
  for (Value generator : generators) {
    auto argument = dyn_cast<BlockArgument>(generator);
    auto name = argument ? segment.getFunction().getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(),
                                                                                     DsDialect::kStateAttr)
                         : FlatSymbolRefAttr();
    if (!name)
      continue;
    segment.write(states.lookup(name.getAttr()),
                  builder.create<AdvanceOp>(segment.getFunction().getLoc(), generator, /*by=*/1));
  }
  markWork(segment.getBody(), Work::Forward);
}

/// Where the gradients of micro-steps add up.
StateOp StepBuilder::gradientState(StateOp parameter) {
  Type element = parameter.getTensorType().getElementType();
  if (!element.isF64())
    element = toFloatType(forward.getContext(), options.precision.gradient);
  return states.owned(parameter, "grad", Role::Gradient, element);
}

void StepBuilder::buildAccumulation(StringRef name, bool adds) {
  StepSegment segment(forward, name, {Work::Forward, Work::Backward});
  writeLoss(segment, adds, /*isComplete=*/false);
  advanceGenerators(segment);
  OpBuilder builder(segment.getTerminator());
  for (auto [parameter, gradient] : segment.getGradients()) {
    StateOp state = gradientState(states.lookup(parameter));
    Value kept = adds ? segment.read(state) : Value();
    segment.write(state,
                  builder.create<AccumulateOp>(gradient.getLoc(), state.getTensorType(), gradient, kept));
  }
  markWork(segment.getBody(), Work::Backward);
  finish(segment);
}

void StepBuilder::buildLast() {
  StepSegment segment(forward, "last", {Work::Forward, Work::Backward, Work::Update});
  writeLoss(segment, options.accumulation > 1, /*isComplete=*/true);
  advanceGenerators(segment);
  StepUpdate update(segment, states, options);
  markWork(segment.getBody(), Work::Update);
  update.apply(collectUpdates(segment));
  markWork(segment.getBody(), Work::Update);
  finish(segment);
}

/// Leaves out what is random, and takes statistics that were kept in place of a batch's, as evaluation does.
static void prepareEvaluation(StepSegment &segment) {
  segment.getFunction().walk([](RandomOpInterface op) { op.removeNoise(); });
  segment.getFunction().walk([](EvaluatedOpInterface op) { op.evaluate(); });
}

void StepBuilder::buildEvaluation() {
  StepSegment segment(forward, "evaluate", Work::Evaluation);
  segment.eraseBackward();
  prepareEvaluation(segment);
  if (segment.getLoss()) {
    OpBuilder builder(segment.getTerminator());
    Emitter emit(builder, segment.getLoss().getLoc());
    StateOp state = states.scalar("eval_loss", builder.getF32Type());
    Value loss = emit.convert(segment.getLoss(), builder.getF32Type());
    segment.write(state, builder.create<RankMeanOp>(emit.getLoc(), loss));
  }
  markWork(segment.getBody(), Work::Forward);
  segment.finish();
}

LogicalResult StepBuilder::buildLogitsEntry() {
  StepSegment segment(forward, "logits", Work::Evaluation);
  prepareEvaluation(segment);
  if (failed(buildLogits(segment, states)))
    return failure();
  markWork(segment.getBody(), Work::Forward);
  segment.finish();
  return success();
}

void StepBuilder::buildSchedule() {
  MLIRContext *context = forward.getContext();
  SmallVector<Attribute> runs;
  int64_t accumulation = options.accumulation;
  auto run = [&](StringRef name, int64_t first, int64_t count) {
    Gradients gradients = runs.empty() ? Gradients::Set : Gradients::Add;
    runs.push_back(RunAttr::get(context, FlatSymbolRefAttr::get(context, name), first, count, gradients,
                                /*reduced=*/first + count == accumulation, /*after=*/{}));
  };
  if (accumulation > 1)
    run("first", 0, 1);
  if (accumulation > 2)
    run("middle", 1, accumulation - 2);
  run("last", accumulation - 1, 1);
  OpBuilder builder(forward);
  builder.create<ScheduleOp>(forward->getParentOp()->getLoc(), stage, builder.getArrayAttr(runs));
}

/// The parameters with the gradient of the whole step: this micro-batch's plus what was accumulated.
SmallVector<ParameterUpdate> StepBuilder::collectUpdates(StepSegment &segment) {
  SmallVector<ParameterUpdate> updates;
  OpBuilder builder(forward.getContext());
  for (auto [name, gradient] : segment.getGradients()) {
    StateOp parameter = states.lookup(name);
    Value total = gradient;
    if (options.accumulation > 1) {
      Value accumulated = segment.read(gradientState(parameter));
      builder.setInsertionPointAfterValue(gradient);
      total = builder.create<AccumulateOp>(gradient.getLoc(), accumulated.getType(), gradient, accumulated);
    }
    updates.push_back({parameter, segment.read(parameter), total});
  }
  markWork(segment.getBody(), Work::Backward);
  return updates;
}

//===----------------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------------===//

/// Fails where a state of the model has a name that the step needs.
static LogicalResult checkNames(ModuleOp module, const TrainingOptions &options) {
  SmallVector<StringRef> names = {"loss", "grad_norm", "lr", "step", "eval_loss"};
  if (options.lossScale.skips)
    names.append({"skipped", "good_steps", "hysteresis"});
  if (options.boundsLoss)
    names.push_back(kLossLimitState);
  if (options.schedule.totalSteps == ScheduleOptions::kStepsOfRun)
    names.push_back(kTotalStepsState);
  if (options.givesLogits)
    names.append({kLogitsRowsState, kLogitsState});
  for (StateOp state : module.getOps<StateOp>())
    for (StringRef name : names)
      if (state.getSymName() == name)
        return state.emitOpError("expects a name that the step does not use itself, but got \"")
               << name << '"';
  return success();
}

struct BuildStep : mlir::ds::impl::BuildStepBase<BuildStep> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward) {
      emitError(module.getLoc(), "expects a function @forward to build a step from, but the module has none");
      return signalPassFailure();
    }
    const TrainingOptions options = getTraining(module);
    if (failed(checkNames(module, options)) || failed(checkDifferentiated(forward, options.lossScale)))
      return signalPassFailure();
    if (options.syncsBatchNorm)
      forward.walk([](EvaluatedOpInterface op) { op.synchronize(); });
    StepBuilder builder(forward, options);
    if (options.accumulation > 1)
      builder.buildAccumulation("first", /*adds=*/false);
    if (options.accumulation > 2)
      builder.buildAccumulation("middle", /*adds=*/true);
    builder.buildLast();
    builder.buildEvaluation();
    if (options.givesLogits && failed(builder.buildLogitsEntry()))
      return signalPassFailure();
    builder.buildSchedule();
    forward.erase();
    setPhase(module, Phase::Step);
  }

  static LogicalResult checkDifferentiated(func::FuncOp forward, const LossScaleOptions &scaler) {
    if (scaler.dynamic && !SymbolTable::lookupNearestSymbolFrom<StateOp>(
                              forward, StringAttr::get(forward.getContext(), kLossScaleState))) {
      InFlightDiagnostic error = forward.emitOpError("expects a state @loss_scale, but the module has none");
      error.attachNote() << "--ds-differentiate declares it, by the same " << DsDialect::kTrainingAttr;
      return error;
    }
    for (unsigned index = 0; index < forward.getNumResults(); ++index)
      if (GradientAttr::stateOf(forward, index))
        return success();
    InFlightDiagnostic error =
        forward.emitOpError("expects at least one gradient among its results, but got none");
    error.attachNote() << "--ds-differentiate appends them, for trainable parameters that influence the loss";
    return error;
  }
};
} // namespace
