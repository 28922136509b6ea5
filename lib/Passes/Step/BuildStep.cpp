//===- BuildStep.cpp - A training step from a differentiated forward ------------===//
//
// The step is decided here completely: accumulation, clipping, schedule and optimizer become ops on tensors
// and on rank-0 scalars, so that the runtime only executes and the planner sees all of it. Here are its
// segments; StepUpdate.h is what the last one does with the gradients.
//
//===----------------------------------------------------------------------------===//
#include "StepUpdate.h"
#include "Support/FoldAccumulators.h"
#include "Support/LossScale.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

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
  void writeLoss(StepSegment &segment, bool accumulates);
  void advanceGenerators(StepSegment &segment);
  SmallVector<ParameterUpdate> collectUpdates(StepSegment &segment);
  StateOp gradientState(StateOp parameter);
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
  StepUpdate update(segment, states, options);
  update.apply(collectUpdates(segment));
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
SmallVector<ParameterUpdate> StepBuilder::collectUpdates(StepSegment &segment) {
  SmallVector<ParameterUpdate> updates;
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
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
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
      if (forward.getResultAttr(index, DsDialect::kGradientAttr))
        return success();
    InFlightDiagnostic error =
        forward.emitOpError("expects at least one gradient among its results, but got none");
    error.attachNote() << "--ds-differentiate appends them, for trainable parameters that influence the loss";
    return error;
  }
};
} // namespace
