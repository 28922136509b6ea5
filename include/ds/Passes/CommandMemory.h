//===- CommandMemory.h - What the allocations of a function hold, command by command ---------===//
//
// The commands' side of StepMemory.h: who touches an allocation, and how long it lives for that. A plan gives
// memory to what ScheduledFunction.h says. Two more questions are asked of a function whose streams are not
// settled: what its values take one after the other, which is what they were counted to take before there
// were buffers, and what they take under any schedule. Example:
//
//   0  launch      writes %a          %a, 4 bytes, lives in [0, 4): compute knows at 3 that it was sent
//   1  to_host     %a to %h           %b, 2 bytes, lives in [2, 3)
//   2  launch      writes %b
//   3  wait for 1, on compute         so that 4, 4, 6 and 4 bytes are live
//
// Where each command waits for the one before, %a lives in [0, 2): 4, 4, 2, 0. Under any schedule at least in
// [0, 1), where compute touches it: 4, 0, 2, 0.
//
//===-----------------------------------------------------------------------------------------===//
#ifndef DS_PASSES_COMMANDMEMORY_H
#define DS_PASSES_COMMANDMEMORY_H

#include "ds/Analysis/Memory/StepMemory.h"
#include "ds/Passes/ScheduledFunction.h"

namespace mlir::ds {

/// Until when an allocation is taken to live.
enum class LivesUntil {
  Known,   ///< compute knows that the last that touches it has run: what a plan gives it memory for
  Touched, ///< the last has touched it, as if each command waited for the one before
  Needed,  ///< the last of compute has touched it; what is gathered, each of them alone. Without workspaces
};

/// The commands that touch `buffer` or a view of it; one that names it twice may be there twice.
SmallVector<Operation *> findTouching(Value buffer);

/// What the allocations of `func` hold at each command, of each Space by its number, but for those `without`.
::ds::analysis::StepMemory getMemory(func::FuncOp func, LivesUntil until = LivesUntil::Known,
                                     const DenseSet<Operation *> &without = {});
::ds::analysis::StepMemory getMemory(const ScheduledFunction &scheduled,
                                     const DenseSet<Operation *> &without = {});

/// Bytes of `space` that are taken all the time while `func` runs: states of its module, and its inputs.
/// Before there are buffers, too.
int64_t getPermanentBytes(func::FuncOp func, Space space);

} // namespace mlir::ds

#endif // DS_PASSES_COMMANDMEMORY_H
