//===- CommandNames.cpp - What commands and their places in the model are called ----===//
#include "ds/Passes/CommandNames.h"

#include "ds/Passes/ScheduledFunction.h"

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

std::string mlir::ds::nameOfState(StateOp state, SymbolTable &symbols) {
  StateOp like = state; // of what is gathered once a step, the bucket's
  if (auto from = state->getAttrOfType<FlatSymbolRefAttr>(kGatheredFromAttr))
    if (auto shard = symbols.lookup<StateOp>(from.getValue()))
      like = shard;
  auto bucket = like.getBucket() ? symbols.lookup<BucketOp>(*like.getBucket()) : BucketOp();
  if (!bucket || bucket.getMembers().empty())
    return state.getSymName().str();
  const size_t others = bucket.getMembers().size() - 1;
  std::string name = cast<FlatSymbolRefAttr>(bucket.getMembers()[0]).getValue().str();
  if (others > 0)
    name += " and " + std::to_string(others) + " more";
  StringRef ending = state.getSymName().rsplit('.').second; // of "bucket_3.exp_avg"
  return state.getRole() == Role::Parameter ? name : name + " (" + ending.str() + ")";
}
