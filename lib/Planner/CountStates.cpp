//===- CountStates.cpp - What a rank keeps for the whole step ---------------------===//
//
// Numerators are added up over all divided buckets before the ranks divide them: the sum is then the formula
// of ZeRO to the byte, and what rounding leaves over is padding.
//
//===---------------------------------------------------------------------------===//
#include "CountStates.h"

#include "ds/Passes/LateUpdates.h"
#include "ds/Passes/ScheduledFunction.h"

#include <map>

using namespace mlir;
using namespace mlir::ds;
namespace report = ::ds::report;

static int64_t bytesOf(RankedTensorType type) { return BufferType::getContiguous(type).getSizeInBytes(); }

/// The count that states of `role` are part of.
static int64_t &countFor(report::StateBytes &bytes, Role role) {
  switch (role) {
  case Role::Parameter:
  case Role::Buffer:
    return bytes.parameters;
  case Role::Gradient:
    return bytes.gradients;
  case Role::Moment:
  case Role::Master:
    return bytes.optimizer;
  case Role::Scalar:
    return bytes.scalars;
  }
  llvm_unreachable("all roles are counted");
}

/// Whether `state` holds parameters that are not trained, of one or of a bucket, which has either kind alone.
static bool isFrozen(StateOp state, SymbolTable &symbols) {
  if (state.getRole() != Role::Parameter || !state.getBucket())
    return state.getRole() == Role::Parameter && !state.getTrainable();
  auto bucket = symbols.lookup<BucketOp>(*state.getBucket());
  auto first = symbols.lookup<StateOp>(cast<FlatSymbolRefAttr>(bucket.getMembers()[0]).getValue());
  return !first.getTrainable();
}

report::StateBytes mlir::ds::countStateBytes(ModuleOp module, int64_t alignment) {
  DenseSet<Attribute> members;
  llvm::StringMap<int64_t> memberElements; // by bucket
  SymbolTable symbols(module);
  for (auto bucket : module.getOps<BucketOp>())
    for (Attribute member : bucket.getMembers()) {
      members.insert(member);
      auto state = symbols.lookup<StateOp>(cast<FlatSymbolRefAttr>(member).getValue());
      memberElements[bucket.getSymName()] += state.getLocalType().getNumElements();
    }
  report::StateBytes whole;
  std::map<int64_t, report::StateBytes> divided; // by the ranks that share it
  int64_t memory = 0;
  for (auto state : module.getOps<StateOp>()) {
    if (members.contains(FlatSymbolRefAttr::get(state)) || state.getGatheredFrom() || state.getSlots())
      continue;
    memory += llvm::alignTo(bytesOf(state.getLocalType()), alignment);
    if (isCarried(state)) { // the step's gradients, and what was made of all of them
      (state.getTensorType().getRank() > 0 ? whole.gradients : whole.scalars) +=
          bytesOf(state.getLocalType());
      continue;
    }
    RankedTensorType content = state.getTensorType();
    if (state.getBucket())
      content = content.clone({memberElements.lookup(*state.getBucket())});
    bool isDivided = state.getBucket() && state.isSharded();
    int64_t ranks = state.getTensorType().getNumElements() / state.getLocalType().getNumElements();
    report::StateBytes &counts = isDivided ? divided[ranks] : whole;
    const int64_t bytes = bytesOf(state.getBucket() ? content : state.getLocalType());
    countFor(counts, state.getRole()) += bytes;
    if (isFrozen(state, symbols))
      counts.frozen += bytes;
  }
  for (auto [ranks, bytes] : divided) {
    whole.parameters += bytes.parameters / ranks;
    whole.gradients += bytes.gradients / ranks;
    whole.optimizer += bytes.optimizer / ranks;
    whole.frozen += bytes.frozen / ranks;
  }
  whole.padding = memory - whole.parameters - whole.gradients - whole.optimizer - whole.scalars;
  return whole;
}

int64_t mlir::ds::countParameters(ModuleOp module, bool onlyTrained) {
  int64_t elements = 0;
  for (auto state : module.getOps<StateOp>())
    if (state.getRole() == Role::Parameter && !state.getBucket() && (state.getTrainable() || !onlyTrained))
      elements += state.getTensorType().getNumElements();
  return elements;
}
