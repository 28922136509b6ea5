//===- CutStages.cpp - A model becomes the stages of a pipeline --------------------===//
//
// Problem: layers that do not fit on one device, or not fast enough, are to be spread over several, one
// behind the other. Idea: cut the forward before it is differentiated, and each stage is a model of its own,
// to which all that follows is done as to a whole one. What the next stage reads is sent, what the stage
// before has made is received, and differentiation turns both around: a gradient comes back for what was
// sent, and goes back for what was received (ds.send and ds.recv, `trained`).
//
//   %h = layers 0 to 5                  stage 0   %h = layers 0 to 5; ds.send %h to 1
//   %l = layers 6 to 11 of %h     ->    stage 1   %h = ds.recv from 0; %l = layers 6 to 11 of %h
//
// All stages meet in messages in one order, that of the values in forward, and what they send stands at the
// end of forward, what they receive at its beginning. A parameter that two stages read (a tied embedding) is
// there on both. The price: what skips stages is sent by each of them.
//
//===------------------------------------------------------------------------------===//
#include "StageBorders.h"
#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Stages.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

#include "mlir/IR/IRMapping.h"

namespace mlir::ds {
#define GEN_PASS_DEF_CUTSTAGES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// Makes the stages of one model.
class StageCutter {
public:
  StageCutter(func::FuncOp forward, const StageBorders &borders, AxesAttr axes)
      : module(forward->getParentOfType<ModuleOp>()), forward(forward), borders(borders), axes(axes) {}

  /// Puts a module for each stage in the place of what `module` has. Fails where stages cannot share a state.
  LogicalResult run();

private:
  SmallVector<Operation *> opsOf(unsigned stage);
  SmallVector<unsigned> resultsOf(unsigned stage);
  void makeStage(unsigned stage);
  func::FuncOp makeForward(unsigned stage, OpBuilder &builder);
  void addReceived(unsigned stage, OpBuilder &builder, IRMapping &mapping) const;
  void addSent(unsigned stage, OpBuilder &builder, const IRMapping &mapping) const;
  LogicalResult checkShared();
  unsigned numStages() const { return unsigned(borders.crossing.size()) + 1; }

  ModuleOp module;
  func::FuncOp forward;
  const StageBorders &borders;
  const AxesAttr axes;
  SmallVector<ModuleOp> stages;
  DenseMap<StringAttr, SmallVector<unsigned>> readers; ///< by state: the stages that have it, in order
};
} // namespace

/// What `stage` computes, in order: its own ops, and of those that are no stage's the ones that these read.
SmallVector<Operation *> StageCutter::opsOf(unsigned stage) {
  DenseSet<Operation *> wanted;
  SmallVector<Operation *> ops;
  Block &body = forward.getBody().front();
  for (unsigned index : resultsOf(stage))
    if (Operation *maker = body.getTerminator()->getOperand(index).getDefiningOp())
      wanted.insert(maker);
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    auto own = borders.stageOf.find(&op);
    const bool isOwn = own != borders.stageOf.end() && own->second == stage;
    if (!isOwn && (own != borders.stageOf.end() || !wanted.contains(&op)))
      continue;
    ops.push_back(&op);
    for (Value operand : op.getOperands())
      if (Operation *maker = operand.getDefiningOp())
        wanted.insert(maker);
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

/// Which of the forward's results `stage` gives; what is no stage's the last one does.
SmallVector<unsigned> StageCutter::resultsOf(unsigned stage) {
  SmallVector<unsigned> results;
  for (auto [index, value] : llvm::enumerate(forward.getBody().front().getTerminator()->getOperands())) {
    auto maker = borders.stageOf.find(value.getDefiningOp());
    const unsigned of = index == 0 || maker == borders.stageOf.end() ? numStages() - 1 : maker->second;
    if (of == stage)
      results.push_back(unsigned(index));
  }
  return results;
}

void StageCutter::addReceived(unsigned stage, OpBuilder &builder, IRMapping &mapping) const {
  if (stage == 0)
    return;
  for (Value value : borders.crossing[stage - 1])
    mapping.map(value, builder
                           .create<RecvOp>(value.getLoc(), value.getType(), stage - 1, axes,
                                           Payload::Transfer, borders.trained.contains(value))
                           .getResult());
}

void StageCutter::addSent(unsigned stage, OpBuilder &builder, const IRMapping &mapping) const {
  if (stage + 1 == numStages())
    return;
  for (Value value : borders.crossing[stage])
    builder.create<SendOp>(value.getLoc(), mapping.lookup(value), stage + 1, axes, Payload::Transfer,
                           borders.trained.contains(value));
}

/// The forward of `stage`, at `builder`, and who reads which state.
func::FuncOp StageCutter::makeForward(unsigned stage, OpBuilder &builder) {
  const SmallVector<Operation *> ops = opsOf(stage);
  const SmallVector<unsigned> results = resultsOf(stage);
  Operation *terminator = forward.getBody().front().getTerminator();
  DenseSet<Value> read;
  for (Operation *op : ops)
    read.insert(op->operand_begin(), op->operand_end());
  for (unsigned index : results)
    read.insert(terminator->getOperand(index));
  auto func = func::FuncOp::create(forward.getLoc(), forward.getName(), builder.getFunctionType({}, {}));
  func->setAttr(DsDialect::kSegmentAttr,
                SegmentAttr::get(func.getContext(), stage, /*chunk=*/0, ArrayRef(Work::Forward)));
  builder.insert(func);
  Block *body = func.addEntryBlock();
  IRMapping mapping;
  SmallVector<DictionaryAttr> argumentAttrs, resultAttrs;
  for (BlockArgument argument : forward.getArguments()) {
    if (!read.contains(argument))
      continue;
    mapping.map(argument, body->addArgument(argument.getType(), argument.getLoc()));
    argumentAttrs.push_back(forward.getArgAttrDict(argument.getArgNumber()));
    if (FlatSymbolRefAttr state = getStateOf(forward, argument))
      readers[state.getAttr()].push_back(stage);
  }
  OpBuilder inside = OpBuilder::atBlockEnd(body);
  addReceived(stage, inside, mapping);
  for (Operation *op : ops)
    inside.clone(*op, mapping);
  addSent(stage, inside, mapping);
  SmallVector<Value> returned;
  for (unsigned index : results) {
    returned.push_back(mapping.lookup(terminator->getOperand(index)));
    resultAttrs.push_back(forward.getResultAttrDict(index));
  }
  inside.create<func::ReturnOp>(terminator->getLoc(), returned);
  func.setFunctionType(builder.getFunctionType(body->getArgumentTypes(), TypeRange(ValueRange(returned))));
  func.setAllArgAttrs(argumentAttrs);
  func.setAllResultAttrs(resultAttrs);
  return func;
}

void StageCutter::makeStage(unsigned stage) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto nested = builder.create<ModuleOp>(module.getLoc(), "stage_" + std::to_string(stage));
  nested->setDiscardableAttrs(module->getDiscardableAttrDictionary());
  builder.setInsertionPointToStart(nested.getBody());
  makeForward(stage, builder);
  stages.push_back(nested);
}

/// Verifies that each state can be shared by those that have it: a parameter by two, and a buffer that
/// forward changes by nobody.
LogicalResult StageCutter::checkShared() {
  DenseSet<StringAttr> written;
  for (unsigned index = 0; index < forward.getNumResults(); ++index)
    if (auto state = forward.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr))
      written.insert(state.getAttr());
  for (StateOp state : module.getOps<StateOp>()) {
    auto of = readers.find(state.getSymNameAttr());
    if (of == readers.end())
      continue;
    if (state.getTrainable() && of->second.size() > 2)
      return state.emitOpError("expects at most two stages that read a trained parameter, but ")
             << of->second.size() << " do: with fewer stages, or with layers of its own for each, it goes";
    if (written.contains(state.getSymNameAttr()) && of->second.size() > 1)
      return state.emitOpError("expects one stage that reads what forward changes, but stages ")
             << of->second.front() << " and " << of->second.back() << " do";
  }
  return success();
}

LogicalResult StageCutter::run() {
  SmallVector<Operation *> before;
  for (Operation &op : *module.getBody())
    before.push_back(&op);
  for (unsigned stage = 0; stage < numStages(); ++stage)
    makeStage(stage);
  if (failed(checkShared()))
    return failure();
  for (Operation *op : before) {
    if (op == forward)
      continue;
    auto state = dyn_cast<StateOp>(op);
    for (auto [number, stage] : llvm::enumerate(stages)) {
      auto of = state ? readers.find(state.getSymNameAttr()) : readers.end();
      const bool isRead = of != readers.end();
      // What nothing reads is in weights files all the same.
      if (state && (isRead ? !llvm::is_contained(of->second, number) : number != 0))
        continue;
      OpBuilder builder(*stage.getOps<func::FuncOp>().begin());
      Operation *copy = builder.clone(*op);
      if (state && state.getTrainable() && isRead && of->second.size() == 2) {
        const bool isSecond = of->second.back() == number;
        cast<StateOp>(copy).setCopy(isSecond);
        cast<StateOp>(copy).setTied(isSecond ? of->second.front() : of->second.back());
      }
    }
  }
  for (Operation *op : llvm::reverse(before))
    op->erase();
  module->setDiscardableAttrs(DictionaryAttr::get(module.getContext()));
  return success();
}

namespace {
struct CutStages : mlir::ds::impl::CutStagesBase<CutStages> {
  using CutStagesBase::CutStagesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, getArgument(), Phase::Model)))
      return signalPassFailure();
    const MeshShape shape = getMeshShape(module);
    const int64_t count = shape.mesh.size(shape.stages);
    if (count == 1 || hasStages(module))
      return markAllAnalysesPreserved();
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward) {
      emitError(module.getLoc(), "expects a function @forward to cut, but the module has none");
      return signalPassFailure();
    }
    if (failed(cut(forward, shape)))
      signalPassFailure();
  }

  LogicalResult cut(func::FuncOp forward, const MeshShape &shape) {
    FailureOr<::ds::cost::Rates> rates = readRates(forward);
    if (failed(rates))
      return failure();
    StageRequest request;
    request.stages = shape.mesh.size(shape.stages);
    request.partition = partition;
    request.neighbours = rates->group(2, shape.mesh.size() / request.stages);
    FailureOr<StageBorders> borders = findBorders(forward, request, *rates);
    if (failed(borders))
      return failure();
    if (remarks)
      for (auto [stage, first] : llvm::enumerate(borders->firstLayers))
        forward.emitRemark("stage ") << stage << " begins with " << (first.empty() ? "no layer" : first);
    return StageCutter(forward, *borders, nameAxes(&getContext(), shape.mesh, shape.stages)).run();
  }
};
} // namespace
