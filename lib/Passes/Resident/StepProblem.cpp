//===- StepProblem.cpp - A step's choices while they are collected ------------------===//
#include "StepProblem.h"

#include "RowsApart.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/CommandMemory.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

static_assert(StepProblem::kDevice == uint32_t(Space::Device) && StepProblem::kHost == uint32_t(Space::Host));

StepProblem::StepProblem(ModuleOp module, const ::ds::cost::Rates &rates, const ResidencyLimits &limits)
    : costs(rates, isForCuda(module) ? ranksOnNode(module, rates) : 1), limits(limits) {
  problem.spaces.push_back({limits.memory.value_or(kNoLimit), {}});
  // The host's memory, of which every rank of a node has as much.
  const ::ds::config::Cluster &cluster = rates.cluster();
  const int64_t bytes = cluster.host.memoryBytes / std::max<int64_t>(1, cluster.devicesPerNode);
  problem.spaces.push_back({bytes > 0 ? bytes : kNoLimit, {}});
  problem.spaces.push_back({limits.maxLiveElements > 0 ? limits.maxLiveElements : kNoLimit, {}});
  problem.resources.assign(kResources, 0);
}

/// Every `stride`-th of `values`, and the first and the last.
static SmallVector<Value> takeEvery(ArrayRef<Value> values, int64_t stride) {
  SmallVector<Value> taken;
  for (size_t index = 0; index < values.size(); ++index)
    if (index % stride == 0 || index + 1 == values.size())
      taken.push_back(values[index]);
  return taken;
}

/// What of `func` may be recomputed; of groups it raises `numGroups` to as many as there are.
static RecomputeRules makeRules(func::FuncOp func, const RecomputePlan &recompute, int64_t &numGroups) {
  if (recompute.kind == RecomputePlan::Kind::Cheap)
    return {};
  const RecomputeOptions &demanded = recompute.demanded;
  if (!demanded.ops.empty())
    return RecomputeRules::named(demanded.ops);
  SmallVector<Value> narrow = findNarrowValues(func);
  if (recompute.kind == RecomputePlan::Kind::Groups) {
    numGroups = std::max<int64_t>(numGroups, narrow.size());
    return RecomputeRules::between(takeEvery(narrow, recompute.stride));
  }
  narrow = findLayerEnds(narrow);
  int64_t stride = std::max<int64_t>(demanded.interval, 1);
  if (demanded.checkpoints > 0)
    stride = llvm::divideCeil(std::max<int64_t>(int64_t(narrow.size()) - 1, 1), demanded.checkpoints);
  return RecomputeRules::demanded(takeEvery(narrow, stride), demanded.layers);
}

/// Whether copies take the place of what does `work` on the way `resource` through a step.
static bool isBeside(std::optional<Work> work, uint32_t resource) {
  const bool stores = resource != StepProblem::kLoading, loads = resource != StepProblem::kStoring;
  return (work == Work::Forward && stores) || (work == Work::Backward && loads);
}

/// What `command` takes, at least: a kernel writes what leaves it, and reads as much.
static double secondsOf(ArrayRef<Operation *> command, const SegmentMemory &memory, const ValueCosts &costs) {
  Operation *first = command.front();
  if (formOf(first) == OpForm::Call)
    return isa<HostOp, StoreOp, LoadOp, MoveOp>(first) ? 0 : costs.callSeconds(first);
  double bytes = 0;
  for (Operation *op : command)
    for (Value result : op->getResults())
      if (std::optional<uint32_t> made = memory.find(result); made && memory.memories[*made].isStored)
        bytes += 2 * double(memory.memories[*made].bytes);
  return costs.movingSeconds(bytes);
}

/// The moment up to which a value stays that is sent to the host: as long as its copy alone takes, twice, as
/// planned copies do. Where more are under way at once compute waits for them, if memory asks for that.
static uint32_t endOfSending(const StepSegment &segment, const ValueMemory &memory, const ValueCosts &costs) {
  double left = 2 * costs.hostCopySeconds(double(memory.bytes));
  uint32_t moment = memory.end + 1;
  for (; moment < segment.seconds.size() && left > 0; ++moment)
    left -= segment.seconds[moment];
  return moment - 1;
}

/// Holds what `segment` has in memory whatever is chosen: on the device up to its last reader of the same
/// direction, for beyond there is a choice.
static void holdValues(const StepSegment &segment, const ValueCosts &costs, analysis::StepMemory &live) {
  for (uint32_t index = 0; index < segment.memory.memories.size(); ++index) {
    const ValueMemory &memory = segment.memory.memories[index];
    if (!memory.isStored)
      continue;
    uint32_t end = memory.isSent ? endOfSending(segment, memory, costs) : memory.end;
    if (memory.space != Space::Device && memory.isRead) // of which there is no choice
      end = std::max(end, memory.lastRead);
    if (std::optional<analysis::MemoryHold> hold = segment.memory.holdUntil(index, end)) {
      hold->begin += segment.begin, hold->end += segment.begin;
      if (memory.space != Space::Nvme) // of which there is no budget
        live.hold(*hold);
    }
  }
}

/// Whether all that reads `value`, be it in another shape of the same rows, walks its rows, and a product is
/// among it if it was not one that made it.
static bool isReadByRows(Value value, bool &hasProduct) {
  const int64_t columns = tensorType(value).getShape().back();
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    hasProduct |= isa<MatmulOp>(user);
    auto reshape = dyn_cast<ReshapeOp>(user);
    return reshape ? reshape.getType().getRank() > 1 && reshape.getType().getShape().back() == columns &&
                         isReadByRows(reshape.getResult(), hasProduct)
                   : walksRows(user, value);
  });
}

/// Counts in `of` what will lie between rows that products and losses alone read, as ds-align-rows lays
/// them.
static void layRowsApart(SegmentMemory &of) {
  for (ValueMemory &memory : of.memories) {
    Operation *maker = memory.value.getDefiningOp();
    const bool isOfDevice = memory.space == Space::Device;
    const std::optional<Rows> rows = isOfDevice ? findRowsApart(tensorType(memory.value)) : std::nullopt;
    bool hasProduct = isa<MatmulOp>(maker);
    if (rows && memory.bytes > 0 && memory.joined < 0 && walksRows(maker, memory.value) &&
        isReadByRows(memory.value, hasProduct) && hasProduct)
      memory.bytes = memory.bytes / rows->elements * rows->pitch;
  }
}

void StepProblem::addSegment(func::FuncOp func, const OpenRegions &regions, const RecomputePlan &recompute,
                             const SymbolTable &symbols) {
  auto rules = std::make_unique<RecomputeRules>(makeRules(func, recompute, numGroups));
  SegmentMemory memory(func, regions, *rules, symbols);
  if (isForCuda(func->getParentOfType<ModuleOp>()))
    layRowsApart(memory);
  segments.push_back(
      {func, std::move(rules), std::move(memory), live.getMoments(), double(runsPerStep(func))});
  StepSegment &segment = segments.back();
  for (ArrayRef<Operation *> command : segment.memory.commands) {
    segment.seconds.push_back(secondsOf(command, segment.memory, costs));
    const double seconds = segment.runs * segment.seconds.back();
    problem.resources[kCompute] += seconds;
    if (usesHost())
      for (uint32_t way : {kStoring, kLoading, kCopying})
        problem.resources[way] += isBeside(getWork(command.front()), way) ? 0 : seconds;
  }
  live.addMoments(segment.memory.commands.size() + 1);
  segment.losses = findLossPieces(func, segment.memory);
  delayCollectives(*this);
  holdValues(segment, costs, live);
}

uint32_t StepProblem::add(analysis::ResidencyValue value, ResidencyChoice choice) {
  problem.values.push_back(std::move(value));
  choices.push_back(std::move(choice));
  return uint32_t(choices.size() - 1);
}

void StepProblem::close() {
  if (!segments.empty())
    for (Space space : {Space::Device, Space::Host})
      live.holdThroughout(uint32_t(space), getPermanentBytes(segments.front().func, space));
  for (uint32_t space = 0; space < problem.spaces.size(); ++space)
    problem.spaces[space].liveBytes = live.liveBytes(space);
  // More elements may be needed at once than are bounded; then none stay beside them by choice.
  for (int64_t &elements : problem.spaces[kElements].liveBytes)
    elements = std::min(elements, problem.spaces[kElements].budget);
}

bool StepProblem::usesHost() const {
  return limits.offload.activations != OffloadOptions::Activations::Kept || limits.offload.checkpoints;
}

std::vector<analysis::ResidencyCharge> StepProblem::chargesOf(const StepSegment &segment, double forward,
                                                              double backward) const {
  std::vector<analysis::ResidencyCharge> charges{{kCompute, segment.runs * (forward + backward)}};
  if (usesHost())
    charges.insert(charges.end(), {{kStoring, segment.runs * backward}, {kLoading, segment.runs * forward}});
  return charges;
}
