//===- VerifyResident.cpp - The border after what is kept is decided --------------===//
#include "SegmentMemory.h"
#include "Support/VerifyPhases.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_VERIFYRESIDENT
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Verifies that what `func` computes again may be computed again.
static LogicalResult verifyRecomputed(func::FuncOp func) {
  WalkResult result = func.walk([](Operation *op) -> WalkResult {
    bool isRecomputable = isa<LoadOp, RecomputeOp>(op) || formOf(op) == OpForm::View ||
                          (isa<FusableOpInterface>(op) && isPure(op));
    if (getWork(op) != Work::Recompute || isRecomputable)
      return WalkResult::advance();
    return op->emitOpError("is recomputed, but neither may a fused region hold it nor does a ds.recompute");
  });
  return failure(result.wasInterrupted());
}

namespace {
struct VerifyResident : mlir::ds::impl::VerifyResidentBase<VerifyResident> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, getArgument(), Phase::Resident)) || failed(verifySegments(module)))
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>())
      if (failed(verifyRecomputed(func)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
