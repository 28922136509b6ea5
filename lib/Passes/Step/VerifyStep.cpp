//===- VerifyStep.cpp - The border after the step is built ----------------------===//
#include "Support/VerifyPhases.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_VERIFYSTEP
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// True when a segment of `kind` may give a state of `role` a new value.
static bool mayWrite(SegmentKind kind, Role role) {
  switch (kind) {
  case SegmentKind::First:
  case SegmentKind::Middle:
    return role == Role::Gradient || role == Role::Scalar || role == Role::Buffer;
  case SegmentKind::Evaluation:
    return role == Role::Scalar;
  case SegmentKind::Last:
  case SegmentKind::Update:
    return true;
  }
  llvm_unreachable("all kinds are handled");
}

/// Verifies that each result of `func`
/// - is a declared state of its type;
/// - is the only result of that state;
/// - is a state that this kind of segment may write.
static LogicalResult verifyResults(func::FuncOp func, SegmentKind kind, const SymbolTable &symbols) {
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
    if (mayWrite(kind, state.getRole()))
      continue;
    InFlightDiagnostic error = func.emitOpError("expects no ")
                               << stringifyRole(state.getRole()) << " as result of a "
                               << stringifySegmentKind(kind) << " segment, but got " << name;
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
    if (failed(verifyHomes(module)))
      return failure();
    for (auto func : module.getOps<func::FuncOp>())
      if (failed(verifySegment(func)))
        return failure();
    return verifySequence();
  }

private:
  LogicalResult verifySegment(func::FuncOp func) {
    auto segment = func->getAttrOfType<SegmentKindAttr>(DsDialect::kSegmentAttr);
    if (!segment) {
      InFlightDiagnostic error =
          func.emitOpError("expects a segment in phase step, but got a function without ")
          << DsDialect::kSegmentAttr;
      error.attachNote() << "--ds-build-step makes the segments";
      return error;
    }
    auto [entry, isNew] = segments.try_emplace(static_cast<int>(segment.getValue()), func);
    if (!isNew) {
      InFlightDiagnostic error = func.emitOpError("expects one segment of kind ")
                                 << stringifySegmentKind(segment.getValue()) << ", but got a second";
      error.attachNote(entry->second.getLoc()) << "the first is here";
      return error;
    }
    if (failed(verifyArguments(func, symbols)) || failed(verifyResults(func, segment.getValue(), symbols)))
      return failure();
    return verifyTensorPhase(func);
  }

  /// A step ends with its update; what accumulates has a beginning.
  LogicalResult verifySequence() {
    auto has = [&](SegmentKind kind) { return segments.contains(static_cast<int>(kind)); };
    if (!has(SegmentKind::Last))
      return emitError(module.getLoc(), "expects a segment of kind last, but the module has none");
    if (has(SegmentKind::Middle) && !has(SegmentKind::First))
      return segments[static_cast<int>(SegmentKind::Middle)].emitOpError(
          "expects a segment of kind first before it, but the module has none");
    return success();
  }

  ModuleOp module;
  SymbolTable symbols;
  DenseMap<int, func::FuncOp> segments;
};

struct VerifyStep : ds::impl::VerifyStepBase<VerifyStep> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Step)))
      return signalPassFailure();
    if (failed(verifySegments(getOperation())))
      signalPassFailure();
  }
};
} // namespace

LogicalResult mlir::ds::verifySegments(ModuleOp module) { return SegmentVerifier(module).run(); }
