//===- ScalarLaunches.cpp - One launch for the scalars of a step ----------------===//
#include "ScalarLaunches.h"

#include "Support/JoinKernels.h"

namespace mlir::ds {

/// Whether the launch computes scalars of the device alone.
static bool isScalar(LaunchOp launch) {
  return isPlain(launch) && llvm::all_of(launch->getOperands(), [](Value buffer) {
           auto type = cast<BufferType>(buffer.getType());
           return type.getTensor().getRank() == 0 && type.getSpace() == Space::Device;
         });
}

/// Moves a constant down to where it is needed.
static void sink(LaunchOp launch) {
  const SmallVector<BufferAccess> accesses = accessesOf(launch);
  for (Operation *op = launch->getNextNode(); op; op = op->getNextNode())
    if (isa<ScheduledOpInterface>(op) && conflict(accesses, accessesOf(op)))
      return launch->moveBefore(op);
}

/// Whether all that the second launch reads of what the first writes is one of the first's results, whole, so
/// that loading everything first changes nothing.
static bool readsWholeResults(LaunchOp first, LaunchOp second, const Sources &sources) {
  SmallVector<BufferAccess> written;
  for (Value output : first.getOutputs()) {
    written.push_back(windowOf(output));
    written.back().isWrite = true;
  }
  return !conflict(written, readsBeside(second, sources));
}

void joinScalarLaunches(func::FuncOp func, SymbolTable &symbols) {
  llvm::SetVector<Operation *> replaced;
  for (LaunchOp launch : llvm::to_vector(func.getOps<LaunchOp>()))
    if (isScalar(launch) && launch.getInputs().empty())
      sink(launch);
  SmallVector<LaunchOp> launches = llvm::to_vector(func.getOps<LaunchOp>());
  for (size_t k = 0; k + 1 < launches.size(); ++k) {
    LaunchOp first = launches[k], second = launches[k + 1];
    if (!isScalar(first) || !isScalar(second) || findNext(first) != second)
      continue;
    const Sources sources = findSources(first, second);
    if (!readsWholeResults(first, second, sources))
      continue;
    auto one = symbols.lookup<KernelOp>(first.getKernel()),
         other = symbols.lookup<KernelOp>(second.getKernel());
    KernelOp kernel = joinKernels(one, other, sources);
    symbols.insert(kernel);
    replaced.insert(one);
    replaced.insert(other);
    launches[k + 1] = joinLaunches(first, second, sources, kernel);
  }
  eraseIdle(replaced, func->getParentOfType<ModuleOp>(), symbols);
}

} // namespace mlir::ds
