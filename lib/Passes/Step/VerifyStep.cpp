//===- VerifyStep.cpp - The border after the step is built ----------------------===//
#include "Support/VerifyPhases.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/StateNames.h"

namespace mlir::ds {
#define GEN_PASS_DEF_VERIFYSTEP
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// True when `segment` may give a state of `role` a new value.
static bool mayWrite(SegmentAttr segment, Role role) {
  if (segment.does(Work::Update))
    return true;
  if (segment.does(Work::Evaluation))
    return role == Role::Scalar;
  return role == Role::Gradient || role == Role::Scalar || role == Role::Buffer;
}

/// Verifies that each result of `func`
/// - is a declared state of its type;
/// - is the only result of that state;
/// - is a state that the segment's work may write.
static LogicalResult verifyResults(func::FuncOp func, SegmentAttr segment, const SymbolTable &symbols) {
  DenseMap<StateOp, unsigned> seen;
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    auto name = func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr);
    if (!name)
      return func.emitOpError("expects result ") << index << " to be a state, but got none";
    StateOp state = lookupState(func, symbols, name, func.getResultTypes()[index], "result " + Twine(index));
    if (!state)
      return failure();
    auto [entry, isNew] = seen.try_emplace(state, index);
    if (!isNew)
      return func.emitOpError("expects one result for state ")
             << name << ", but got results " << entry->second << " and " << index;
    if (mayWrite(segment, state.getRole()))
      continue;
    InFlightDiagnostic error = func.emitOpError("expects no ")
                               << stringifyRole(state.getRole()) << " as result of " << segment
                               << ", but got " << name;
    error.attachNote(state.getLoc()) << "the state is declared here";
    return error;
  }
  return success();
}

namespace {
/// Verifies the segments of a module; see verifySegments.
class SegmentVerifier {
public:
  explicit SegmentVerifier(ModuleOp module) : module(module), symbols(module) {}

  LogicalResult run() {
    if (failed(verifySlots()))
      return failure();
    for (auto func : module.getOps<func::FuncOp>())
      if (failed(verifySegment(func)))
        return failure();
    return verifySchedules();
  }

private:
  LogicalResult verifySegment(func::FuncOp func) {
    SegmentAttr segment = SegmentAttr::of(func);
    if (!segment) {
      InFlightDiagnostic error =
          func.emitOpError("expects a segment in phase step, but got a function without ")
          << DsDialect::kSegmentAttr;
      error.attachNote() << "--ds-build-step makes the segments";
      return error;
    }
    if (segment.does(Work::Evaluation)) {
      const bool isLogits = isLogitsEntry(func);
      auto [entry, isNew] = (isLogits ? logits : evaluations).try_emplace(segment.getStage(), func);
      if (!isNew) {
        InFlightDiagnostic error = func.emitOpError("expects one ")
                                   << (isLogits ? "entry for logits" : "evaluation")
                                   << " of a stage, but got a second";
        error.attachNote(entry->second.getLoc()) << "the first is here";
        return error;
      }
    }
    if (failed(verifyArguments(func, symbols)) || failed(verifyResults(func, segment, symbols)) ||
        failed(verifyWork(func)))
      return failure();
    return verifyTensorPhase(func);
  }

  /// Each stage has one schedule, which runs all its segments but the evaluation.
  LogicalResult verifySchedules() {
    DenseSet<Attribute> run;
    DenseMap<int64_t, ScheduleOp> schedules;
    for (auto schedule : module.getOps<ScheduleOp>()) {
      if (!schedules.try_emplace(schedule.getStage(), schedule).second)
        return schedule.emitOpError("expects one schedule of stage ")
               << schedule.getStage() << ", but got a second";
      for (RunAttr entry : schedule.getRuns().getAsRange<RunAttr>())
        run.insert(entry.getSegment());
    }
    if (schedules.empty())
      return emitError(module.getLoc(), "expects a schedule of its segments, but the module has none");
    for (auto func : module.getOps<func::FuncOp>())
      if (!SegmentAttr::of(func).does(Work::Evaluation) && !run.contains(FlatSymbolRefAttr::get(func)))
        return func.emitOpError("expects a schedule that runs it, but got none");
    return success();
  }

  /// What belongs to an owner or a bucket, it has once.
  LogicalResult verifySlots() {
    DenseMap<std::pair<Attribute, Attribute>, StateOp> slots;
    for (auto state : module.getOps<StateOp>()) {
      if (!state.getSlot())
        continue;
      Attribute owner = state.getBucket() ? state.getBucketAttr() : state.getOwnerAttr();
      auto [entry, isNew] = slots.try_emplace({owner, state.getSlotAttr()}, state);
      if (isNew)
        continue;
      InFlightDiagnostic error = state.emitOpError("expects ")
                                 << owner << " to have one " << state.getSlotAttr() << ", but got a second";
      error.attachNote(entry->second.getLoc()) << "the first is here";
      return error;
    }
    return success();
  }

  ModuleOp module;
  SymbolTable symbols;
  DenseMap<int64_t, func::FuncOp> evaluations, logits; ///< by stage; of losses, and of logits
};

struct VerifyStep : mlir::ds::impl::VerifyStepBase<VerifyStep> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Step)))
      return signalPassFailure();
    if (failed(verifySegments(getOperation())))
      signalPassFailure();
  }
};
} // namespace

LogicalResult mlir::ds::verifySegments(ModuleOp module) { return SegmentVerifier(module).run(); }
