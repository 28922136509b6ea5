//===- ResidencyModel.cpp - A step's choices as one problem of Analysis/Residency --===//
#include "ResidencyModel.h"

#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/ScheduledFunction.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// Copies of fewer bytes take as long as larger ones, and hardly save memory.
static constexpr int64_t kLeastHostBytes = int64_t{16} << 10;

ResidencyModel::ResidencyModel(ModuleOp module, const OpenSegments &open, const ::ds::cost::Rates &rates,
                               const ResidencyLimits &limits, RecomputePlan recompute)
    : context(module.getContext()), costs(rates, isForCuda(module) ? ranksOnNode(module, rates) : 1),
      limits(limits), recompute(recompute) {
  problem.spaces.push_back({limits.memory.value_or(kNoLimit), {}});
  problem.resources.assign(kResources, 0);
  const SymbolTable symbols(module);
  for (func::FuncOp func : getSegments(module))
    if (runsPerStep(func) > 0)
      addSegment(func, open.find(func)->second, symbols);
  for (uint32_t segment = 0; isForCuda(module) && segment < segments.size(); ++segment)
    addWorkspaces(segment);
  int64_t permanent = permanentBytes(module, Space::Device);
  for (int64_t &bytes : problem.spaces[kDevice].liveBytes)
    bytes += permanent;
  addHost(module, rates);
  for (uint32_t segment = 0; segment < segments.size(); ++segment)
    addForward(segment);
  addGathers(symbols);
  addLosses();
}

/// The host's memory, of which every rank of a node has as much.
void ResidencyModel::addHost(ModuleOp module, const ::ds::cost::Rates &rates) {
  const ::ds::config::Cluster &cluster = rates.cluster();
  int64_t ranks = std::max<int64_t>(1, cluster.devicesPerNode);
  int64_t bytes = cluster.host.memoryBytes / ranks;
  problem.spaces.push_back({bytes > 0 ? bytes : kNoLimit, {}});
  problem.spaces[kHost].liveBytes.assign(problem.spaces[kDevice].liveBytes.size(),
                                         permanentBytes(module, Space::Host));
}

int64_t ResidencyModel::permanentBytes(ModuleOp module, Space space) const {
  int64_t bytes = 0;
  for (StateOp state : getPlacedStates(module))
    if (state.getHome() == space)
      bytes += BufferType::getContiguous(state.getLocalType(), space).getSizeInBytes();
  if (space != Space::Device)
    return bytes;
  func::FuncOp first = segments.empty() ? func::FuncOp() : segments.front().func;
  for (unsigned index = 0; first && index < first.getNumArguments(); ++index)
    if (getInputOf(first, index))
      bytes +=
          BufferType::getContiguous(tensorType(first.getArgument(index)), Space::Device).getSizeInBytes();
  return bytes;
}

/// Every `stride`-th of `values`, and the first and the last.
static SmallVector<Value> takeEvery(ArrayRef<Value> values, int64_t stride) {
  SmallVector<Value> taken;
  for (size_t index = 0; index < values.size(); ++index)
    if (index % stride == 0 || index + 1 == values.size())
      taken.push_back(values[index]);
  return taken;
}

RecomputeRules ResidencyModel::makeRules(func::FuncOp func) {
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
  const bool stores = resource != ResidencyModel::kLoading, loads = resource != ResidencyModel::kStoring;
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

void ResidencyModel::addSegment(func::FuncOp func, const OpenRegions &regions, const SymbolTable &symbols) {
  std::vector<int64_t> &live = problem.spaces[kDevice].liveBytes;
  auto rules = std::make_unique<RecomputeRules>(makeRules(func));
  SegmentMemory memory(func, regions, *rules, symbols);
  if (isForCuda(func->getParentOfType<ModuleOp>()))
    layRowsApart(memory);
  segments.push_back(
      {func, std::move(rules), std::move(memory), uint32_t(live.size()), double(runsPerStep(func))});
  Segment &segment = segments.back();
  for (ArrayRef<Operation *> command : segment.memory.commands) {
    segment.seconds.push_back(secondsOf(command, segment.memory, costs));
    const double seconds = segment.runs * segment.seconds.back();
    problem.resources[kCompute] += seconds;
    if (usesHost())
      for (uint32_t way : {kStoring, kLoading, kCopying})
        problem.resources[way] += isBeside(getWork(command.front()), way) ? 0 : seconds;
  }
  live.resize(live.size() + segment.memory.commands.size() + 1);
  segment.losses = findLossPieces(func, segment.memory);
  delayCollectives(segment);
  addLiveBytes(segment);
}

/// The moment up to which a value stays that is sent to the host: as long as its copy alone takes, twice, as
/// planned copies do. Where more are under way at once compute waits for them, if memory asks for that.
uint32_t ResidencyModel::endOfSending(const Segment &segment, const ValueMemory &memory) const {
  double left = 2 * costs.hostCopySeconds(double(memory.bytes));
  uint32_t moment = memory.end + 1;
  for (; moment < segment.seconds.size() && left > 0; ++moment)
    left -= segment.seconds[moment];
  return moment - 1;
}

void ResidencyModel::addLiveBytes(const Segment &segment) {
  std::vector<int64_t> change(segment.memory.commands.size() + 2, 0);
  for (const ValueMemory &memory : segment.memory.memories) {
    if (!memory.isStored || memory.joined >= 0 || memory.isInState)
      continue;
    const uint32_t end = memory.isSent ? endOfSending(segment, memory) : memory.end;
    change[memory.begin + memory.isInPlace] += memory.bytes;
    change[std::max(memory.begin + memory.isInPlace, end + 1)] -= memory.bytes;
  }
  int64_t bytes = 0;
  for (size_t moment = 0; moment <= segment.memory.commands.size(); ++moment)
    problem.spaces[kDevice].liveBytes[segment.begin + moment] += bytes += change[moment];
}

/// Whether anything of forward may go to the host, so that its copies count.
bool ResidencyModel::usesHost() const {
  return limits.offload.activations != OffloadOptions::Activations::Kept || limits.offload.checkpoints;
}

/// What more seconds of compute in forward and in backward cost, compute itself first.
std::vector<analysis::ResidencyCharge> ResidencyModel::chargesOf(const Segment &segment, double forward,
                                                                 double backward) const {
  std::vector<analysis::ResidencyCharge> charges{{kCompute, segment.runs * (forward + backward)}};
  if (usesHost())
    charges.insert(charges.end(), {{kStoring, segment.runs * backward}, {kLoading, segment.runs * forward}});
  return charges;
}

ResidencyModel::HostUse ResidencyModel::hostUseOf(const Segment &segment, uint32_t index) const {
  const ValueMemory &memory = segment.memory.memories[index];
  if (limits.offload.activations == OffloadOptions::Activations::Kept && !limits.offload.checkpoints)
    return HostUse::No;
  // Parts of a join lie in it, and go with it.
  if (memory.joined >= 0 || memory.bytes < kLeastHostBytes || memory.firstRead <= memory.end ||
      memory.firstRead > memory.lastRead || isBroughtAgain(memory.value.getDefiningOp()))
    return HostUse::No;
  double gap =
      std::accumulate(segment.seconds.begin() + memory.end, segment.seconds.begin() + memory.firstRead, 0.0);
  if (gap <= 2 * costs.hostCopySeconds(double(memory.bytes))) // it would be back before it is gone
    return HostUse::No;
  using Activations = OffloadOptions::Activations;
  if (limits.offload.activations == Activations::Moved)
    return HostUse::Must;
  if (limits.offload.checkpoints && segment.rules->isCheckpoint(memory.value.getDefiningOp()))
    return HostUse::Must;
  return limits.offload.activations == Activations::Chosen ? HostUse::May : HostUse::No;
}

/// On the host from its last use in forward until shortly before the first in backward, and on the device for
/// as long as the copies should take.
analysis::ResidencyWay ResidencyModel::wayByHost(const Segment &segment, const ForwardChoice &choice) const {
  const ValueMemory &memory = segment.memory.memories[choice.memory];
  const double copy = costs.hostCopySeconds(double(memory.bytes));
  uint32_t begin = memory.isStored ? memory.end + 1 : memory.begin, end = memory.lastRead + 1;
  uint32_t gone = begin, back = memory.firstRead;
  for (double passed = 0; gone < memory.firstRead && passed < copy; ++gone)
    passed += segment.seconds[gone];
  for (double passed = 0; back > gone && passed < copy; --back)
    passed += segment.seconds[back - 1];
  auto at = [&](uint32_t moment) { return segment.begin + moment; };
  const double seconds = segment.runs * copy;
  std::vector<analysis::ResidencyCharge> charges =
      chargesOf(segment, choice.writeSeconds, choice.readSeconds);
  charges.insert(charges.end(), {{kStoring, seconds}, {kLoading, seconds}, {kCopying, 2 * seconds}});
  return {{{kDevice, memory.bytes, at(begin), at(gone)},
           {kDevice, memory.bytes, at(back), at(std::max(back, end))},
           {kHost, memory.bytes, at(begin), at(std::max(begin, end))}},
          std::move(charges)};
}

/// A value that `choice` leaves a choice.
void ResidencyModel::addChoice(uint32_t index, const ForwardChoice &choice) {
  Segment &segment = segments[index];
  const ValueMemory &memory = segment.memory.memories[choice.memory];
  auto hold = [&](uint32_t begin, uint32_t end) {
    return analysis::ResidencyHold{kDevice, memory.bytes, segment.begin + begin,
                                   segment.begin + std::max(begin, end)};
  };
  analysis::ResidencyValue value;
  value.isRead = memory.isRead;
  const HostUse host = hostUseOf(segment, choice.memory);
  std::vector<analysis::ResidencyWay> refused;
  if (choice.canKeep) {
    uint32_t keptFrom = memory.isStored ? memory.end + 1 : memory.begin;
    analysis::ResidencyWay kept{{hold(keptFrom, memory.lastRead + 1)},
                                chargesOf(segment, choice.writeSeconds, choice.readSeconds)};
    const bool isRecomputed = choice.canRecompute && choice.mustRecompute;
    if (isRecomputed || host == HostUse::Must)
      refused.push_back(std::move(kept));
    else
      value.homes.push_back(std::move(kept));
    if (!isRecomputed && host != HostUse::No)
      value.homes.push_back(wayByHost(segment, choice));
  }
  if (choice.canRecompute) {
    value.recompute = analysis::ResidencyWay{{}, chargesOf(segment, 0, choice.recomputeSeconds)};
    // A call's result is made once and stays for all that read it; what is cheap is recomputed for each.
    if (!isCheap(memory.value.getDefiningOp()))
      value.recompute->holds.push_back(hold(memory.firstRead, memory.lastRead + 1));
    else if (memory.isReadByCall || formOf(memory.value.getDefiningOp()) == OpForm::Join)
      value.recompute->holds.push_back(hold(memory.firstRead, memory.firstRead + 1));
    for (uint32_t operand : choice.operands)
      if (auto known = segment.values.find(operand); known != segment.values.end())
        value.operands.push_back(known->second);
    for (Value operand : memory.value.getDefiningOp()->getOperands())
      if (std::optional<uint32_t> early = addEarly(index, rootOf(operand), memory.firstRead))
        value.operands.push_back(*early);
  }
  segment.values[choice.memory] = problem.values.size();
  problem.values.push_back(std::move(value));
  choices.push_back({index, choice.memory, {}, nullptr, std::move(refused)});
}

void ResidencyModel::addForward(uint32_t index) {
  Segment &segment = segments[index];
  ForwardChoices forward(segment.memory, *segment.rules, costs);
  std::vector<int64_t> &live = problem.spaces[kDevice].liveBytes;
  for (const ForwardChoice &choice : forward.choices) {
    const ValueMemory &memory = segment.memory.memories[choice.memory];
    // Logits are read at once: to make them again buys nothing that pieces of them do not.
    const bool isOfLoss = llvm::any_of(segment.losses, [&](const LossPieces &loss) {
      return llvm::is_contained(loss.ofPiece, choice.memory);
    });
    const bool canRecompute = choice.canRecompute && (choice.mustRecompute || !isOfLoss || !choice.canKeep);
    if (canRecompute || !memory.isRead || hostUseOf(segment, choice.memory) != HostUse::No) {
      addChoice(index, choice);
      continue;
    }
    segment.alwaysKept.insert(choice.memory);
    for (uint32_t moment = memory.isStored ? memory.end + 1 : memory.begin; moment <= memory.lastRead;
         ++moment)
      live[segment.begin + moment] += memory.bytes;
  }
}

DenseSet<Value> ResidencyModel::findKept(func::FuncOp func, const analysis::ResidencyPlan &plan) const {
  DenseSet<Value> kept;
  const auto segment = llvm::find_if(segments, [&](const Segment &of) { return of.func == func; });
  if (segment == segments.end())
    return kept;
  for (Operation &op : func.getBody().front().without_terminator())
    for (Value result : op.getResults()) {
      std::optional<uint32_t> memory = segment->memory.find(result);
      // What cannot be recomputed is there for whoever asks, also where only a copy does; a view of what is
      // there anyway has no memory. Where calls are repeated, each repetition has views of its own.
      bool isOwnView = segment->rules->recomputesCalls() && formOf(&op) == OpForm::View;
      bool isKept = !segment->rules->mayRecompute(&op) && !isOwnView;
      if (memory && !isOwnView) {
        auto value = segment->values.find(*memory);
        isKept |= value == segment->values.end() ? segment->alwaysKept.contains(*memory)
                                                 : plan.ways[value->second] >= 0;
      }
      if (isKept)
        kept.insert(result);
    }
  return kept;
}

bool ResidencyModel::isOnHost(size_t index, const analysis::ResidencyPlan &plan) const {
  return plan.ways[index] >= 0 &&
         llvm::any_of(problem.values[index].homes[plan.ways[index]].holds,
                      [](const analysis::ResidencyHold &hold) { return hold.space == kHost; });
}

DenseSet<Value> ResidencyModel::findOnHost(func::FuncOp func, const analysis::ResidencyPlan &plan) const {
  DenseSet<Value> onHost;
  for (size_t index = 0; index < choices.size(); ++index)
    if (choices[index].segment && segments[*choices[index].segment].func == func && isOnHost(index, plan))
      onHost.insert(valueOf(index));
  return onHost;
}

int64_t ResidencyModel::countSlowAttention(const analysis::ResidencyPlan &plan) const {
  int64_t count = 0;
  for (size_t index = 0; index < choices.size(); ++index)
    count += choices[index].attention && problem.values[index].homes[plan.ways[index]].holds.empty();
  return count;
}

int64_t ResidencyModel::getHostBytes() const {
  const std::vector<int64_t> &live = problem.spaces[kHost].liveBytes;
  return live.empty() ? 0 : live.front();
}

Value ResidencyModel::valueOf(size_t index) const {
  const ResidencyChoice &choice = choices[index];
  return choice.memory ? segments[*choice.segment].memory.memories[*choice.memory].value : Value();
}
