//===- FuseRegions.cpp - Groups fusable ops into ds.fused regions ----------------===//
//
// The groups are found by FusionClusters; here each becomes one ds.fused with what it reads as operands and what
// others read as results, and the block is put back into topological order.
//
//===---------------------------------------------------------------------------===//
#include "FusionClusters.h"
#include "ds/Passes/Passes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_FUSEREGIONS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// True when an op outside `members` reads `value`, directly or through ops that it will copy.
static bool isReadOutside(Value value, const DenseSet<Operation *> &members, const DenseSet<Operation *> &clustered) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (members.contains(user))
      return false;
    if (isFreeToRepeat(user) && !clustered.contains(user))
      return isReadOutside(user->getResult(0), members, clustered);
    return true;
  });
}

namespace {
/// Copies a cluster into the body of its region.
struct BodyBuilder {
  OpBuilder builder;
  IRMapping mapping;
  llvm::SmallSetVector<Value, 8> inputs;
  const DenseSet<Operation *> &members;

  /// Makes `value` available: as a copy of the free op that gives it, or as a region argument.
  void import(Value value, Block *body) {
    if (mapping.contains(value))
      return;
    Operation *producer = value.getDefiningOp();
    if (producer && isFreeToRepeat(producer) && !members.contains(producer)) {
      for (Value operand : producer->getOperands())
        import(operand, body);
      builder.clone(*producer, mapping);
      return;
    }
    inputs.insert(value);
    mapping.map(value, body->addArgument(value.getType(), value.getLoc()));
  }
};
} // namespace

/// Removes `op` and the free ops that only it still fed.
static void eraseWithFreeUsers(Operation *op) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    if (isFreeToRepeat(user))
      eraseWithFreeUsers(user);
  assert(op->use_empty() && "a member's value is still read");
  op->erase();
}

/// Replaces the ops of `cluster` by one ds.fused at the place of the last.
static void fuse(const FusionCluster &cluster, DenseSet<Operation *> &clustered) {
  DenseSet<Operation *> members(cluster.ops.begin(), cluster.ops.end());
  Operation *last = cluster.ops.back();
  SmallVector<Value> outputs;
  for (Operation *op : cluster.ops)
    if (isReadOutside(op->getResult(0), members, clustered))
      outputs.push_back(op->getResult(0));

  auto region = std::make_unique<Region>();
  Block *body = &region->emplaceBlock();
  BodyBuilder build{OpBuilder(last->getContext()), {}, {}, members}; // the region has no parent to ask yet
  build.builder.setInsertionPointToEnd(body);
  for (Operation *op : cluster.ops) {
    for (Value operand : op->getOperands())
      build.import(operand, body);
    build.builder.clone(*op, build.mapping);
  }
  SmallVector<Value> yielded = llvm::map_to_vector(outputs, [&](Value value) { return build.mapping.lookup(value); });
  build.builder.create<YieldOp>(last->getLoc(), yielded);

  OpBuilder builder(last);
  SmallVector<Type> types = llvm::map_to_vector(outputs, [](Value value) { return value.getType(); });
  auto fused = builder.create<FusedOp>(last->getLoc(), types, build.inputs.getArrayRef());
  fused.getBody().takeBody(*region);
  for (auto [output, result] : llvm::zip_equal(outputs, fused.getResults()))
    output.replaceAllUsesWith(result);
  for (Operation *op : llvm::reverse(cluster.ops)) {
    clustered.erase(op);
    eraseWithFreeUsers(op);
  }
}

namespace {
struct FuseRegions : mlir::ds::impl::FuseRegionsBase<FuseRegions> {
  void runOnOperation() override {
    for (Block &block : getOperation()) {
      SmallVector<FusionCluster> clusters = findFusionClusters(block);
      DenseSet<Operation *> clustered;
      for (const FusionCluster &cluster : clusters)
        clustered.insert(cluster.ops.begin(), cluster.ops.end());
      for (const FusionCluster &cluster : clusters)
        fuse(cluster, clustered);
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (isFreeToRepeat(&op) && op.use_empty())
          op.erase();
      if (!sortTopologically(&block))
        return signalPassFailure();
    }
  }
};
} // namespace
