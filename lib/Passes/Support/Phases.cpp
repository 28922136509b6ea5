//===- Phases.cpp - In which phase a module is, and what a pass asks of it ------===//
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ds;

/// "model", or "step to resident".
static std::string spell(PhaseRange range) {
  std::string first = stringifyPhase(range.first).str();
  return range.first == range.last ? first : first + " to " + stringifyPhase(range.last).str();
}

/// What `op`, or the module around it, says of its phase; null where it says nothing.
static PhaseAttr getStamp(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  return module ? module->getAttrOfType<PhaseAttr>(DsDialect::kPhaseAttr) : PhaseAttr();
}

namespace {
/// Narrows down the phases that a module can be in.
class PhaseFinder {
public:
  explicit PhaseFinder(PhaseAttr stamp) : isStamped(static_cast<bool>(stamp)) {
    if (stamp)
      range = {stamp.getValue(), stamp.getValue()};
  }

  LogicalResult visitModule(ModuleOp module);
  LogicalResult visitFunction(func::FuncOp func);
  PhaseRange getRange() const { return range; }

private:
  /// Only the phases of `op`'s kind are left. They are asked for once of each kind: of ops that are in all
  /// phases the answer is slow.
  LogicalResult narrowTo(Operation &op) {
    auto [known, isNew] = legal.try_emplace(op.getName());
    if (isNew)
      known->second = getLegalPhases(&op);
    return narrow(&op, known->second, "");
  }
  /// Only `phases` are left; `what` of `op` says so.
  LogicalResult narrow(Operation *op, PhaseRange phases, const Twine &what);

  PhaseRange range;
  bool isStamped;
  DenseMap<OperationName, PhaseRange> legal;
};
} // namespace

LogicalResult PhaseFinder::narrow(Operation *op, PhaseRange phases, const Twine &what) {
  PhaseRange left = range & phases;
  if (left.isEmpty())
    return op->emitOpError() << what << "belongs to phase " << spell(phases)
                             << (isStamped ? ", but the module says that it is in phase "
                                           : ", but what stands before it to phase ")
                             << spell(range);
  range = left;
  return success();
}

/// Whether `func` is the forward of a stage of a pipeline, before the stage has segments.
static bool isForwardOfStage(func::FuncOp func) {
  SegmentAttr segment = SegmentAttr::of(func);
  return segment && func.getSymName() == "forward" && segment.getWorks() == ArrayRef(Work::Forward);
}

/// Arguments are buffers once there are buffers, and a segment is a part of a step.
LogicalResult PhaseFinder::visitFunction(func::FuncOp func) {
  if (func->hasAttr(DsDialect::kSegmentAttr) && !isForwardOfStage(func) &&
      failed(narrow(func, {Phase::Step, Phase::Planned}, "with a segment ")))
    return failure();
  for (Type type : func.getArgumentTypes()) {
    if (isa<BufferType>(type) && failed(narrow(func, {Phase::Scheduled, Phase::Planned}, "on buffers ")))
      return failure();
    if (isa<TensorType, StoredType>(type) &&
        failed(narrow(func, {Phase::Model, Phase::Resident}, "on tensors ")))
      return failure();
  }
  for (Block &block : func.getBody())
    for (Operation &op : block)
      if (failed(narrowTo(op)))
        return failure();
  return success();
}

LogicalResult PhaseFinder::visitModule(ModuleOp module) {
  for (Operation &op : *module.getBody()) {
    if (failed(narrowTo(op)))
      return failure();
    auto func = dyn_cast<func::FuncOp>(op);
    if (func && failed(visitFunction(func)))
      return failure();
  }
  return success();
}

FailureOr<PhaseRange> mlir::ds::findPhases(Operation *op) {
  PhaseFinder finder(getStamp(op));
  auto func = dyn_cast<func::FuncOp>(op);
  auto module = dyn_cast<ModuleOp>(op);
  if ((func && failed(finder.visitFunction(func))) || (module && failed(finder.visitModule(module))))
    return failure();
  return finder.getRange();
}

FailureOr<Phase> mlir::ds::phaseOf(ModuleOp module) {
  FailureOr<PhaseRange> range = findPhases(module);
  if (failed(range))
    return failure();
  return range->first;
}

/// The pipelines that bring a module from one phase to a later one.
static std::string pipelinesBetween(Phase from, Phase to) {
  constexpr StringLiteral kPipelines[] = {"--ds-step-pipeline",     "--ds-shard-pipeline",
                                          "--ds-fuse-pipeline",     "--ds-resident-pipeline",
                                          "--ds-schedule-pipeline", "--ds-plan-pipeline"};
  return llvm::join(ArrayRef(kPipelines).slice(unsigned(from), unsigned(to) - unsigned(from)), " ");
}

/// Whether a module's other functions say what `op` would say of it.
static bool isSaidElsewhere(Operation *op) {
  auto module = dyn_cast_or_null<ModuleOp>(op->getParentOp());
  return module && isa<func::FuncOp>(op) && getStamp(op) && *module.getOps<func::FuncOp>().begin() != op;
}

LogicalResult mlir::ds::requirePhase(Operation *op, StringRef pass, PhaseRange wanted) {
  PhaseAttr stamp = getStamp(op);
  if (stamp && !wanted.contains(stamp.getValue()) && isSaidElsewhere(op))
    return failure();
  FailureOr<PhaseRange> range = stamp && !wanted.contains(stamp.getValue())
                                    ? FailureOr<PhaseRange>(PhaseRange{stamp.getValue(), stamp.getValue()})
                                    : findPhases(op);
  if (failed(range))
    return failure();
  if (!(*range & wanted).isEmpty())
    return success();
  InFlightDiagnostic error = emitError(op->getLoc())
                             << "--" << pass << " expects phase " << spell(wanted) << ", but got "
                             << (stamp ? "a module in phase " : "what belongs to phase ") << spell(*range);
  if (range->last < wanted.first)
    error.attachNote() << "run " << pipelinesBetween(range->last, wanted.first) << " first";
  else
    error.attachNote() << "that phase comes later, and nothing leads back";
  return error;
}

void mlir::ds::setPhase(ModuleOp module, Phase phase) {
  module->setAttr(DsDialect::kPhaseAttr, PhaseAttr::get(module.getContext(), phase));
}
