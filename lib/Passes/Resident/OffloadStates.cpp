//===- OffloadStates.cpp - Says which states live on the host -------------------------===//
//
// States change where they live by a declaration, and all that moves them follows. What of a step is updated
// on the host is chosen by whole buckets, or parameters where there are none: largest first, as long as the
// share holds, so that the last ones can be as small as they come.
//
//===---------------------------------------------------------------------------------===//
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_OFFLOADSTATES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// What the optimizer has of one bucket or parameter.
struct Group {
  int64_t elements = 0; ///< of the rank's part
  SmallVector<StateOp> states;
};
} // namespace

static void setHome(StateOp state, Space home) {
  state.setHomeAttr(SpaceAttr::get(state.getContext(), home));
}

static SmallVector<Group> findGroups(ModuleOp module) {
  llvm::MapVector<Attribute, Group> groups;
  for (StateOp state : getPlacedStates(module)) {
    Role role = state.getRole();
    if (role != Role::Gradient && role != Role::Moment && role != Role::Master)
      continue;
    Group &group = groups[state.getBucketAttr() ? state.getBucketAttr() : state.getOwnerAttr()];
    group.elements = state.getLocalType().getNumElements();
    group.states.push_back(state);
  }
  return llvm::map_to_vector(groups, [](auto &entry) { return entry.second; });
}

/// Moves groups of at most a share of all elements. Gradients change with each micro-step: a disk would wear
/// out of them, and they stay on the host.
static void offloadOptimizer(ModuleOp module, const OffloadOptions &options) {
  SmallVector<Group> groups = findGroups(module);
  int64_t total = 0, moved = 0;
  for (const Group &group : groups)
    total += group.elements;
  const auto most = static_cast<int64_t>(options.optimizer * static_cast<double>(total));
  llvm::stable_sort(groups, [](const Group &a, const Group &b) { return a.elements > b.elements; });
  for (Group &group : groups)
    if (moved + group.elements <= most) {
      moved += group.elements;
      for (StateOp state : group.states)
        setHome(state,
                options.optimizerOnNvme && state.getRole() != Role::Gradient ? Space::Nvme : Space::Host);
    }
  if (total > 0)
    addChoice(module, {.kind = ChoiceOf::OptimizerPlace,
                       .elements = moved,
                       .ofElements = total,
                       .space = options.optimizerOnNvme ? Space::Nvme : Space::Host});
}

/// Moves parameters, but for those that `sharding` keeps whole because they are small. Those that storage is
/// for stay on the host in order as far as that may have them.
static void offloadParameters(ModuleOp module, const OffloadOptions &options,
                              const ShardingOptions &sharding) {
  int64_t onHost = 0, onNvme = 0;
  for (StateOp state : getPlacedStates(module)) {
    int64_t elements = state.getLocalType().getNumElements();
    bool isSmall = sharding.stage == 3 && !state.isSharded() && elements <= sharding.parameterThreshold;
    if (state.getRole() != Role::Parameter || isSmall)
      continue;
    bool isOnNvme = options.parametersOnNvme && onHost + elements > options.maxInCpu;
    setHome(state, isOnNvme ? Space::Nvme : Space::Host);
    (isOnNvme ? onNvme : onHost) += elements;
  }
  auto say = [&](int64_t elements, Space space) {
    addChoice(module, {.kind = ChoiceOf::ParameterPlace, .elements = elements, .space = space});
  };
  if (onHost > 0 || !options.parametersOnNvme)
    say(onHost, Space::Host);
  if (options.parametersOnNvme)
    say(onNvme, Space::Nvme);
}

namespace {
struct OffloadStates : mlir::ds::impl::OffloadStatesBase<OffloadStates> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Sharded)))
      return signalPassFailure();
    const TrainingOptions options = getTraining(getOperation());
    if (options.offload.optimizer > 0)
      offloadOptimizer(getOperation(), options.offload);
    if (options.offload.parameters)
      offloadParameters(getOperation(), options.offload, options.sharding);
    setPhase(getOperation(), Phase::Fused); // the first of those that lead there
  }
};
} // namespace
