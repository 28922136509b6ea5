//===- ComputeMemory.h - What is live while a function computes, and what room it leaves -----===//
//
// Gathers and loads that are issued ahead of need, reductions that nobody has waited for yet and workspaces
// share the memory that is left while each launch and call runs. Each of the passes that place them asks here
// what is left, with what the ones before it have taken.
//
// Example, a budget of 100 bytes: 40 of states and inputs, and allocations of 30 and 20 that overlap at the
// second of three calls.
//
//   live    70   90   60          room    30   10   40
//
// Without the allocation of 20, which is what a gather brings that is to be placed: 70, 70, 40. The second
// call's workspace of 16 bytes, which is still to be made, leaves 14 of 100 there for a gather ahead of need.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_COMPUTEMEMORY_H
#define DS_PASSES_COMPUTEMEMORY_H

#include "ds/Passes/Workspaces.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Bytes of the device at each command of compute of a function.
class ComputeMemory {
public:
  /// Of `func`, but for the allocations `without`, in `budget` bytes (nothing: no limit).
  explicit ComputeMemory(func::FuncOp func, std::optional<int64_t> budget = std::nullopt,
                         const DenseSet<Operation *> &without = {});

  /// Bytes that are left while `command` runs, of a budget.
  int64_t roomAt(size_t command) const;
  /// Holds `bytes` more while `command` runs.
  void hold(size_t command, int64_t bytes) { live[command] += bytes; }
  /// What the call that is `command` is to have for its workspace in the room that is left, or why that is
  /// unknown. `limits` say nothing of the room.
  ::ds::Result<uint64_t> workspaceAt(size_t command, WorkspaceLimits limits) const;
  /// Holds what calls are to have that have no workspace yet.
  void holdWorkspaces(const WorkspaceLimits &limits);

  ArrayRef<Operation *> getCommands() const { return commands; }
  const std::vector<int64_t> &getLiveBytes() const { return live; }

private:
  std::optional<int64_t> budget;
  SmallVector<Operation *> commands;
  std::vector<int64_t> live; ///< of states, inputs and allocations, and of what is held beside
};

} // namespace mlir::ds

#endif // DS_PASSES_COMPUTEMEMORY_H
