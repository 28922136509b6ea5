//===- StepProblem.cpp - A step's choices while they are collected ------------------===//
#include "StepProblem.h"

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
    : costs(costsOf(module, rates)), limits(limits) {
  problem.spaces.push_back({limits.memory.value_or(kNoLimit), {}});
  // The host's memory, of which every rank of a node has as much.
  const ::ds::config::Cluster &cluster = rates.cluster();
  const int64_t bytes = cluster.host.memoryBytes / std::max<int64_t>(1, cluster.devicesPerNode);
  problem.spaces.push_back({bytes > 0 ? bytes : kNoLimit, {}});
  problem.spaces.push_back({limits.maxLiveElements > 0 ? limits.maxLiveElements : kNoLimit, {}});
  problem.resources.assign(kResources, 0);
}

/// Whether copies take the place of what does `work` on the way `resource` through a step.
static bool isBeside(std::optional<Work> work, uint32_t resource) {
  const bool stores = resource != StepProblem::kLoading, loads = resource != StepProblem::kStoring;
  return (work == Work::Forward && stores) || (work == Work::Backward && loads);
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

std::optional<analysis::MemoryHold> StepSegment::holdUntil(uint32_t index, uint32_t end) const {
  std::optional<analysis::MemoryHold> hold = memory.holdUntil(index, end);
  if (hold) // what takes another's place is there behind that
    hold = {hold->space, hold->bytes, memory.memories[index].isInPlace ? since(hold->begin) : at(hold->begin),
            since(hold->end)};
  return hold;
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
    if (std::optional<analysis::MemoryHold> hold = segment.holdUntil(index, end))
      if (memory.space != Space::Nvme) // of which there is no budget
        live.hold(*hold);
  }
}

/// The moments of the commands of `described` in a problem, from `begin` on.
static std::vector<uint32_t> placeMoments(const SegmentDescription &described, uint32_t begin) {
  std::vector<uint32_t> moments;
  for (uint32_t calls : described.repeats.calls) {
    moments.push_back(begin + calls);
    begin = moments.back() + 1;
  }
  moments.push_back(begin);
  return moments;
}

void StepProblem::addSegment(const SegmentDescription &described) {
  const uint32_t begin = live.getMoments();
  segments.push_back({described.func, described.rules.get(), described.memory, &described.repeats,
                      placeMoments(described, begin), begin, double(runsPerStep(described.func)),
                      described.seconds, described.losses});
  const StepSegment &segment = segments.back();
  for (auto [command, taken] : llvm::zip_equal(segment.memory.commands(), segment.seconds)) {
    const double seconds = segment.runs * taken;
    problem.resources[kCompute] += seconds;
    if (usesHost())
      for (uint32_t way : {kStoring, kLoading, kCopying})
        problem.resources[way] += isBeside(getWork(command.front()), way) ? 0 : seconds;
  }
  live.addMoments(segment.moments.back() + 1 - begin);
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
