//===- StateNames.cpp - What states are called ------------------------------------===//
#include "ds/Passes/StateNames.h"

#include "ds/Dialect/Work.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

bool mlir::ds::isLogitsEntry(func::FuncOp func) {
  SegmentAttr segment = SegmentAttr::of(func);
  if (!segment || !segment.does(Work::Evaluation))
    return false;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (FlatSymbolRefAttr state = getStateOf(func, index); state && state.getValue() == kLogitsRowsState)
      return true;
  return false;
}

std::string mlir::ds::nameOfState(StateOp state, SymbolTable &symbols) {
  if (state.getSlots()) { // of the layer that makes it
    const std::string layer = layerOf(state);
    return layer.empty() ? state.getSymName().str() : layer + " (" + state.getSymName().str() + ")";
  }
  StateOp like = state; // of what is gathered once a step, whole or a part of it, the bucket's
  if (std::optional<StringRef> from = state.getGatheredFrom())
    if (auto shard = symbols.lookup<StateOp>(*from))
      like = shard;
  auto bucket = like.getBucket() ? symbols.lookup<BucketOp>(*like.getBucket()) : BucketOp();
  if (!bucket || bucket.getMembers().empty())
    return state.getSymName().str();
  const size_t others = bucket.getMembers().size() - 1;
  std::string name = cast<FlatSymbolRefAttr>(bucket.getMembers()[0]).getValue().str();
  if (others > 0)
    name += " and " + std::to_string(others) + " more";
  if (state.getGatheredFrom())
    return name + (state.isSharded() ? " (secondary)" : " (gathered)");
  return state.getSlot() ? name + " (" + state.getSlot()->str() + ")" : name;
}
