//===- Snapshots.cpp - States as they were when a micro-batch went forward ---------===//
#include "Snapshots.h"

#include "Buffers/CopyCommands.h"
#include "SegmentParts.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
/// Who touches a state or an input.
struct Touches {
  SmallVector<Operation *> writes; ///< of forward; none: the host does
  SmallVector<Operation *> reads;  ///< of what is done later
};
} // namespace

/// The inputs of `func` that are read after forward, and the states of which that changes some.
static llvm::MapVector<Value, Touches> findChanged(func::FuncOp func) {
  llvm::MapVector<Value, Touches> touched;
  for (auto command : func.getBody().front().getOps<ScheduledOpInterface>())
    for (const BufferAccess &access : accessesOf(command)) {
      if (!isa<BlockArgument>(access.root))
        continue;
      if (access.isWrite && isForward(command))
        touched[access.root].writes.push_back(command);
      else if (access.isRead && !access.isWrite && isBehindForward(command))
        touched[access.root].reads.push_back(command);
    }
  touched.remove_if([&](auto &entry) {
    const bool isState = getStateOf(func, entry.first) != nullptr;
    return entry.second.reads.empty() || (isState && entry.second.writes.empty());
  });
  return touched;
}

/// Copies `root` where `builder` is.
static Value copyState(Value root, OpBuilder &builder) {
  auto copy =
      builder.create<AllocOp>(root.getLoc(), cast<BufferType>(root.getType()), AllocCategory::Activations);
  auto call =
      builder.create<CallOp>(root.getLoc(), ::ds::rt::LibraryFn::Copy, ValueRange{root, copy.getBuffer()},
                             ArrayRef<int64_t>{1}, builder.getArrayAttr({}), StreamKind::Compute);
  setWork(copy, Work::Forward);
  setWork(call, Work::Forward);
  return copy.getBuffer();
}

LogicalResult mlir::ds::keepSnapshots(func::FuncOp func) {
  for (auto &[root, touches] : findChanged(func)) {
    // What is read is what the state was before forward changed it, or after.
    const bool isBefore =
        touches.writes.empty() || touches.reads.back()->isBeforeInBlock(touches.writes.front());
    if (!isBefore && !touches.writes.back()->isBeforeInBlock(touches.reads.front()))
      return touches.writes.front()->emitOpError(
          "expects to change a state before, or after, all that is read of it behind forward");
    OpBuilder builder(func.getContext());
    if (isBefore)
      builder.setInsertionPointToStart(&func.getBody().front());
    else
      builder.setInsertionPointAfter(touches.writes.back());
    Value copy = copyState(root, builder);
    for (Operation *command : touches.reads) {
      builder.setInsertionPoint(command);
      for (OpOperand &operand : command->getOpOperands())
        if (isa<BufferType>(operand.get().getType()) && rootOfBuffer(operand.get()) == root)
          operand.set(onOtherRoot(
              operand.get(), [&](Value) { return copy; }, builder));
    }
  }
  return success();
}
