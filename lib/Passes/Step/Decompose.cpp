//===- Decompose.cpp - Composite layers become primitive ops --------------------===//
//
// Each composite knows its own formula (DecomposableOpInterface); the pass only asks. A formula may hold
// composites in turn, hence the sweep goes on until none is left.
//
//===----------------------------------------------------------------------------===//
#include "Support/FoldAccumulators.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_DECOMPOSE
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
struct Decompose : mlir::ds::impl::DecomposeBase<Decompose> {
  using DecomposeBase::DecomposeBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), {Phase::Model, Phase::Sharded})))
      return signalPassFailure();
    if (!keepUpdates)
      lowerAccumulations(getOperation());
    SmallVector<DecomposableOpInterface> composites;
    do {
      composites.clear();
      getOperation()->walk([&](DecomposableOpInterface op) {
        if (!op.isLibraryCall() && (!keepUpdates || !op.isNeededWhole()))
          composites.push_back(op);
      });
      for (DecomposableOpInterface op : composites) {
        WorkListener listener(op);
        OpBuilder builder(op, &listener);
        op->replaceAllUsesWith(op.decompose(builder));
        op->erase();
      }
    } while (!composites.empty());
  }
};
} // namespace
