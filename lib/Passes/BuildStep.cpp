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
#include "Optimizers.h"
#include "StepSegment.h"
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

/// The states a step adds to those of the model.
class StepStates {
public:
  explicit StepStates(ModuleOp module) : symbols(module), builder(module.getContext()) {}

  StateOp lookup(StringAttr name) { return symbols.lookup<StateOp>(name); }
  /// The state of that name, declared after the last one where it is not there yet; starts as `start`.
  StateOp declare(const Twine &name, Role role, StateOp owner, RankedTensorType type, double start = 0);
  StateOp scalar(StringRef name, Type element) {
    return declare(name, Role::Scalar, StateOp(), RankedTensorType::get({}, element));
  }
  StateOp gradient(StateOp parameter) {
    return declare(parameter.getSymName() + ".grad", Role::Gradient, parameter, parameter.getTensorType());
  }

private:
  SymbolTable symbols;
  OpBuilder builder;
};

StateOp StepStates::declare(const Twine &name, Role role, StateOp owner, RankedTensorType type,
                            double start) {
  std::string spelling = name.str();
  if (auto state = symbols.lookup<StateOp>(spelling)) {
    assert(state.getRole() == role && state.getTensorType() == type && "checked before building");
    return state;
  }
  Block &body = symbols.getOp()->getRegion(0).front();
  StateOp last;
  for (StateOp state : body.getOps<StateOp>())
    last = state;
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(&body);
  auto init =
      InitAttr::get(builder.getContext(), start == 0 ? InitKind::Zero : InitKind::Constant, start, 0.0);
  Location loc = owner ? owner.getLoc() : symbols.getOp()->getLoc();
  auto state = builder.create<StateOp>(loc, spelling, role, /*trainable=*/false, /*aliases=*/ArrayAttr(),
                                       owner ? FlatSymbolRefAttr::get(owner) : FlatSymbolRefAttr(), init,
                                       Space::Device, type);
  symbols.insert(state);
  return state;
}

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

  void writeLoss(StepSegment &segment, bool accumulates);
  void advanceGenerators(StepSegment &segment);
  SmallVector<Update> collectUpdates(StepSegment &segment);
  void buildUpdates(StepSegment &segment);
  void applyUpdate(StepSegment &segment, const OptimizerBuilder &optimizer, Emitter &emit,
                   const Update &update);
  Value writeNorm(StepSegment &segment, Emitter &emit, ArrayRef<Value> squares);
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

void StepBuilder::buildAccumulation(SegmentKind kind, StringRef name) {
  StepSegment segment(forward, name, kind);
  bool accumulates = kind == SegmentKind::Middle;
  writeLoss(segment, accumulates);
  advanceGenerators(segment);
  OpBuilder builder(segment.getTerminator());
  for (auto [parameter, gradient] : segment.getGradients()) {
    StateOp state = states.gradient(states.lookup(parameter));
    Emitter emit(builder, gradient.getLoc());
    segment.write(state, accumulates ? emit.add(segment.read(state), gradient) : gradient);
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
      Value accumulated = segment.read(states.gradient(parameter));
      builder.setInsertionPointAfterValue(gradient);
      total = Emitter(builder, gradient.getLoc()).add(accumulated, gradient);
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
  segment.write(step, prologue.add(finished, prologue.splatLike(finished, 1)));

  SmallVector<Update> updates = collectUpdates(segment);
  SmallVector<Value> squares;
  for (const Update &update : updates) {
    setInsertionPointAfterLastUse(builder, update.gradient, update.value);
    Emitter emit(builder, update.gradient.getLoc());
    squares.push_back(buildSumOfSquares(emit, update.gradient));
    if (options.clipping == 0)
      applyUpdate(segment, optimizer, emit, update);
  }
  builder.setInsertionPoint(segment.getTerminator());
  Emitter epilogue(builder, segment.getFunction().getLoc());
  Value coefficient = writeNorm(segment, epilogue, squares);
  if (options.clipping == 0)
    return;
  for (Update &update : updates) {
    Emitter emit(builder, update.gradient.getLoc());
    Value gradient = emit.widen(update.gradient);
    update.gradient = emit.mul(gradient, spread(emit, coefficient, gradient));
    applyUpdate(segment, optimizer, emit, update);
  }
}

/// Writes @grad_norm, the global norm before clipping, and returns what gradients are to be multiplied by.
Value StepBuilder::writeNorm(StepSegment &segment, Emitter &emit, ArrayRef<Value> squares) {
  ScalarMath math(emit);
  Scalar total = 0.0;
  for (auto [index, square] : llvm::enumerate(squares))
    total = index ? math.add(total, square) : Scalar(square);
  Scalar norm = math.sqrt(total);
  Type f32 = emit.getBuilder().getF32Type();
  segment.write(states.scalar("grad_norm", f32), math.materialize(norm, f32));
  Scalar coefficient = math.min(math.div(options.clipping, math.add(norm, 1e-6)), 1.0);
  return options.clipping == 0 ? Value() : math.materialize(coefficient, f32);
}

void StepBuilder::applyUpdate(StepSegment &segment, const OptimizerBuilder &optimizer, Emitter &emit,
                              const Update &update) {
  StateOp parameter = update.parameter;
  UpdateSlot slot;
  slot.parameter = emit.widen(update.value);
  slot.gradient = emit.widen(update.gradient);
  slot.decays = isDecayed(parameter.getSymName());
  auto moment = [&](StringRef name, double start = 0) {
    return states.declare(parameter.getSymName() + "." + name, Role::Moment, parameter,
                          tensorType(slot.parameter), start);
  };
  slot.readMoment = [&](StringRef name, double start) { return segment.read(moment(name, start)); };
  slot.writeMoment = [&](StringRef name, Value value) { segment.write(moment(name), value); };
  Value result = optimizer.update(emit, slot);
  segment.write(parameter, emit.convert(result, parameter.getTensorType().getElementType()));
}

//===----------------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------------===//

/// Fails where a state of the model has a name that the step needs.
static LogicalResult checkNames(ModuleOp module) {
  for (StateOp state : module.getOps<StateOp>())
    for (StringRef name : {"loss", "grad_norm", "lr", "step", "eval_loss"})
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
    if (failed(options) || failed(checkNames(module)) || failed(checkDifferentiated(forward)))
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

  static LogicalResult checkDifferentiated(func::FuncOp forward) {
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
