//===- CommandNames.cpp - What commands and their places in the model are called ----===//
#include "ds/Passes/CommandNames.h"

using namespace mlir;
using namespace mlir::ds;

std::string mlir::ds::nameOfCommand(Operation *command, SymbolTable &symbols) {
  if (auto call = dyn_cast<CallOp>(command))
    return call.getCallee().str();
  if (auto communicate = dyn_cast<CommunicateOp>(command))
    return stringifyCollectiveKind(communicate.getKind()).str();
  if (!isa<LaunchOp>(command))
    return command->getName().stripDialect().str(); // an event
  auto kernel = symbols.lookup<KernelOp>(cast<LaunchOp>(command).getKernel());
  // A reduction says more than the arithmetic around it; otherwise the last op is what the kernel is for.
  StringRef name;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (isa<ReduceOp>(op) || !name.starts_with("reduce"))
      name = op.getName().stripDialect();
  return name.str();
}
