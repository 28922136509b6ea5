//===- FuseRegions.cpp - Groups fusable ops into ds.fused regions ----------------===//
//
// The groups are found by FusionClusters; here each becomes one ds.fused with what it reads as operands and
// what others read as results, and the block is put back into topological order. Regions that are there are
// taken apart first and stay together; what is new may join them.
//
//===---------------------------------------------------------------------------===//
#include "FormRegions.h"
#include "FusionClusters.h"
#include "OpenRegions.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {
#define GEN_PASS_DEF_FUSEREGIONS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Fuses what `block` holds; fails where it has a cycle.
static LogicalResult fuseBlock(Block &block) {
  const OpenRegions regions(block);
  SmallVector<FusionCluster> clusters = findFusionClusters(block, regions);
  DenseSet<Operation *> clustered;
  for (const FusionCluster &cluster : clusters)
    clustered.insert(cluster.ops.begin(), cluster.ops.end());
  CopiedOps copied;
  const FreeOps freeOps(block);
  for (Operation &op : block)
    if (freeOps.contains(&op) && !clustered.contains(&op))
      copied.insert(&op);
  for (const FusionCluster &cluster : clusters)
    formRegion(cluster.ops, copied);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (copied.contains(&op) && op.use_empty())
      op.erase();
  return sortStably(block);
}

namespace {
struct FuseRegions : mlir::ds::impl::FuseRegionsBase<FuseRegions> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), {Phase::Fused, Phase::Resident})))
      return signalPassFailure();
    Block &block = getOperation().getBody().front();
    for (HostOp host : block.getOps<HostOp>())
      if (failed(fuseBlock(host.getBody().front())))
        return signalPassFailure();
    if (failed(fuseBlock(block)))
      return signalPassFailure();
  }
};
} // namespace
