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
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {
#define GEN_PASS_DEF_FUSEREGIONS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// A constant that several ops read in memory is made for each of them, in the place where it is wanted, and
/// lives no longer: the 4 KiB of zeros that pad two tensors are not made once and copied twice. The first in
/// the block keeps the one that there is; the order in which a value lists its uses is not printed.
static void privatizeConstants(Block &block) {
  for (FusedOp op : llvm::make_early_inc_range(block.getOps<FusedOp>())) {
    if (op.getNumOperands() != 0 || op.getNumResults() != 1)
      continue;
    SmallVector<OpOperand *> uses =
        llvm::map_to_vector(op.getResult(0).getUses(), [](OpOperand &use) { return &use; });
    llvm::sort(uses, [](OpOperand *a, OpOperand *b) {
      Operation *first = a->getOwner(), *second = b->getOwner();
      return first == second ? a->getOperandNumber() < b->getOperandNumber() : first->isBeforeInBlock(second);
    });
    for (OpOperand *use : llvm::drop_begin(uses)) {
      Operation *reader = use->getOwner();
      if (!isa<ConcatOp, LibraryOpInterface>(reader))
        continue;
      auto own = cast<FusedOp>(OpBuilder(reader).clone(*op));
      clearWork(own);
      copyWork(reader, own);
      use->set(own.getResult(0));
    }
  }
}

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
  if (failed(sortStably(block)))
    return failure();
  privatizeConstants(block);
  return success();
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
