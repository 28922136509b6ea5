//===- VerifyFused.cpp - The border after kernels and their order are decided ------===//
#include "FusionDomain.h"
#include "Support/VerifyPhases.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_VERIFYFUSED
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Verifies that the ops of `func` are commands, or views, of a first computation.
static LogicalResult verifyCommands(func::FuncOp func) {
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (isFusionCandidate(&op)) {
      InFlightDiagnostic error =
          op.emitOpError("stands outside of regions, but one kernel could have it with others");
      error.attachNote() << "--ds-fuse-regions puts it into one";
      return error;
    }
    if (getWork(&op) == Work::Recompute)
      return op.emitOpError("is recomputed, but what is kept is not decided yet");
  }
  return success();
}

namespace {
struct VerifyFused : mlir::ds::impl::VerifyFusedBase<VerifyFused> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, getArgument(), Phase::Fused)) || failed(verifySegments(module)))
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>())
      if (!func.isExternal() && failed(verifyCommands(func)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
