//===- ComputeMemory.cpp - What is live while a function computes, and what room it leaves ---===//
#include "ds/Passes/ComputeMemory.h"

#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

ComputeMemory::ComputeMemory(func::FuncOp func, std::optional<int64_t> budget,
                             const DenseSet<Operation *> &without)
    : budget(budget), commands(getComputeCommands(func)), live(mlir::ds::getLiveBytes(func, without)) {}

int64_t ComputeMemory::roomAt(size_t command) const {
  return budget ? *budget - live[command] : std::numeric_limits<int64_t>::max();
}

::ds::Result<uint64_t> ComputeMemory::workspaceAt(size_t command, WorkspaceLimits limits) const {
  limits.room = roomAt(command);
  return workspaceBytes(cast<CallOp>(commands[command]), limits);
}

void ComputeMemory::holdWorkspaces(const WorkspaceLimits &limits) {
  for (size_t command = 0; command < commands.size(); ++command) {
    auto call = dyn_cast<CallOp>(commands[command]);
    if (!call || call.getWorkspace())
      continue;
    // One that is unknown is refused where it is assigned.
    if (::ds::Result<uint64_t> bytes = workspaceAt(command, limits))
      hold(command, static_cast<int64_t>(*bytes));
  }
}
