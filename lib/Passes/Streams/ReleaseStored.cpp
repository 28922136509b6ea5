//===- ReleaseStored.cpp - Gives up what has been copied to the host ------------------===//
//
// What goes from the device to the host is copied beside compute, which need not wait for it; but then the
// plan does not know before the segment's end that the copy has run, and keeps the memory of every gradient
// that was ever sent. So compute waits where the copy is expected to be done, for nothing, or where memory
// does not hold it any longer: the answer that reductions have (Analysis/ReductionOverlap).
//
//===---------------------------------------------------------------------------===//
#include "ds/Analysis/Gathers/ReductionOverlap.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/ComputeMemory.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_RELEASESTORED
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// The allocation that `op`, a copy to the host, reads and that nothing behind it touches; null where there
/// is none.
static AllocOp releasedBy(TransferOp op) {
  auto alloc = rootOfBuffer(op.getSource()).getDefiningOp<AllocOp>();
  if (!alloc)
    return {};
  auto isBehind = [&](Operation *user) {
    return isa<ScheduledOpInterface>(user) && op->isBeforeInBlock(user);
  };
  auto isUsedBehind = [&](Operation *user) {
    return isBehind(user) || (isa<ViewOp>(user) && llvm::any_of(user->getUsers(), isBehind));
  };
  return llvm::any_of(alloc->getUsers(), isUsedBehind) ? AllocOp() : alloc;
}

/// The first number that no event of `func` has.
static int64_t firstFreeEvent(func::FuncOp func) {
  int64_t next = 0;
  for (RecordOp record : func.getOps<RecordOp>())
    next = std::max<int64_t>(next, record.getEvent() + 1);
  return next;
}

namespace {
struct ReleaseStored : mlir::ds::impl::ReleaseStoredBase<ReleaseStored> {
  using ReleaseStoredBase::ReleaseStoredBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    FailureOr<::ds::cost::Rates> rates = readRates(getOperation());
    if (failed(rates))
      return signalPassFailure();
    release(getOperation(), *rates);
  }

  void release(func::FuncOp func, const ::ds::cost::Rates &rates) {
    CommandCosts costs(func->getParentOfType<ModuleOp>(), rates);
    ::ds::analysis::ReductionProblem problem;
    SmallVector<Operation *> compute;
    SmallVector<TransferOp> copies;
    DenseSet<Operation *> held;
    double before = 0; // of what else is on the stream
    for (Operation &op : func.getBody().front()) {
      if (isComputeCommand(&op)) {
        compute.push_back(&op);
        problem.seconds.push_back(costs.seconds(cast<ScheduledOpInterface>(op)));
      }
      auto transfer = dyn_cast<TransferOp>(op);
      if (!transfer || transfer.getStream() != StreamKind::ToHost)
        continue;
      before += 2 * costs.seconds(transfer); // doubled, as all planned times are
      AllocOp alloc = releasedBy(transfer);
      if (!alloc || !held.insert(alloc).second)
        continue;
      problem.reductions.push_back(
          {static_cast<int64_t>(compute.size()), before, alloc.getBuffer().getType().getSizeInBytes()});
      copies.push_back(transfer);
      before = 0;
    }
    if (copies.empty())
      return;
    if (std::optional<int64_t> bytes = bytesWithin(memory, func->getParentOfType<ModuleOp>())) {
      problem.budgetBytes = *bytes;
      problem.liveBytes = ComputeMemory(func, *bytes, held).getLiveBytes();
    }
    OpBuilder builder(func.getContext());
    int64_t event = firstFreeEvent(func);
    for (auto [copy, wait] : llvm::zip_equal(copies, findWaits(problem))) {
      if (wait >= static_cast<int64_t>(compute.size()))
        continue; // the end of the segment waits for all streams
      builder.setInsertionPointAfter(copy);
      builder.create<RecordOp>(copy.getLoc(), event, StreamKind::ToHost);
      builder.setInsertionPoint(compute[wait]);
      builder.create<WaitOp>(copy.getLoc(), event++, StreamKind::Compute);
    }
  }
};
} // namespace
