//===- ResidencyGathers.cpp - How long gathered parameters stay, in a step's problem -===//
#include "ResidencyModel.h"

#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/ScheduledFunction.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// The state that `value` is, on the device or loaded; null where it is none.
static FlatSymbolRefAttr getStateBehind(func::FuncOp func, Value value) {
  auto load = value.getDefiningOp<LoadOp>();
  return getStateOf(func, load ? load.getStored() : value);
}

/// The first moment at which a gather may be issued behind those that are needed, with so many elements, at
/// `needs`: as long as fewer are under way than may be.
uint32_t ResidencyModel::firstIssue(ArrayRef<std::pair<uint32_t, int64_t>> needs) const {
  int64_t elements = 0;
  for (auto [moment, more] : llvm::reverse(needs))
    if (limits.prefetchElements > 0 && (elements += more) >= limits.prefetchElements)
      return moment;
  return 0;
}

/// The first moment of `segment`, the last so far, at which nothing is there of a use before of `gathered`.
uint32_t ResidencyModel::behindLastUse(const Gathered &gathered, const Segment &segment) const {
  if (gathered.uses.empty() || gathered.uses.back().first + 1 != segments.size())
    return 0;
  return segment.memory.memories[gathered.uses.back().second].end + 1;
}

/// Gathers are issued ahead of need and reductions waited for behind them: by twice what they should take, as
/// the passes that place them have it; but no gather before the use before of the same parameter has ended.
/// Where memory is short, those passes have compute wait.
void ResidencyModel::delayCollectives(Segment &segment) {
  std::vector<double> start(segment.seconds.size() + 1, 0);
  std::partial_sum(segment.seconds.begin(), segment.seconds.end(), start.begin() + 1);
  auto at = [&](double seconds) {
    return uint32_t(std::max<int64_t>(0, llvm::upper_bound(start, seconds) - start.begin() - 1));
  };
  const uint32_t last = segment.memory.commands.size();
  SmallVector<std::pair<uint32_t, int64_t>> needs; // moment and elements of each gather before
  for (ArrayRef<Operation *> command : segment.memory.commands) {
    Operation *op = command.front();
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective || op->getNumOperands() == 0 || op->getNumResults() == 0)
      continue;
    const double seconds = costs.collectiveSeconds(collective),
                 ahead = limits.isNothingAhead ? 0 : 2 * seconds;
    uint32_t moment = segment.memory.momentOf(op);
    if (!isForUpdate(collective.getCarries()) && collective.getCarries() != Payload::Parameter) {
      problem.resources[kLink] += segment.runs * seconds; // layers wait for it where it stands
      continue;
    }
    if (isForUpdate(collective.getCarries())) {
      problem.resources[kLink] += segment.runs * seconds;
      if (std::optional<uint32_t> operand = segment.memory.find(op->getOperand(0)))
        for (int32_t memory = int32_t(*operand); memory >= 0; memory = segment.memory.memories[memory].joined)
          segment.memory.memories[memory].end =
              std::max(segment.memory.memories[memory].end, std::min(last, at(start[moment] + ahead)));
      continue;
    }
    const uint32_t result = *segment.memory.find(op->getResult(0));
    ValueMemory &memory = segment.memory.memories[result];
    FlatSymbolRefAttr state = getStateBehind(segment.func, op->getOperand(0));
    const int64_t elements = tensorType(memory.value).getNumElements();
    if (!limits.isNothingAhead)
      memory.begin =
          std::min(memory.begin, std::max(at(start[moment] - ahead - kIssueSeconds), firstIssue(needs)));
    needs.emplace_back(moment, elements);
    if (!state || collective.getCollectiveKind() != CollectiveKind::AllGather) {
      problem.resources[kLink] += segment.runs * seconds;
      continue;
    }
    Gathered &gathered = gathers[state.getAttr()];
    memory.begin = std::max(memory.begin, std::min(moment, behindLastUse(gathered, segment)));
    // What is loaded for the gather alone comes with it.
    if (std::optional<uint32_t> shard = segment.memory.find(op->getOperand(0)))
      segment.memory.memories[*shard].begin = std::min(segment.memory.memories[*shard].begin, memory.begin);
    gathered.bytes = memory.bytes, gathered.elements = elements, gathered.seconds = seconds;
    gathered.isLoaded |= isa_and_nonnull<LoadOp>(op->getOperand(0).getDefiningOp());
    gathered.uses.emplace_back(segments.size() - 1, result);
  }
}

/// What backward gathers of `part`, or none.
static std::optional<uint32_t> findInBackward(const SegmentMemory &memory, LocalShardOp part) {
  for (Operation *user : part->getUsers())
    if (isa<AllGatherOp>(user) && !isForward(user))
      return memory.find(user->getResult(0));
  return std::nullopt;
}

/// What is recomputed of a parameter that was `gathered` for forward takes it from the gather of backward,
/// which is there from `moment` on then, until it would be needed: a value of the problem that is had where
/// anything of that is recomputed. None where backward gathers no such parameter, or not later.
std::optional<uint32_t> ResidencyModel::addEarly(uint32_t index, Value gathered, uint32_t moment) {
  Segment &segment = segments[index];
  auto gather = gathered.getDefiningOp<AllGatherOp>();
  if (!gather || !segment.rules->recomputesCalls())
    return std::nullopt;
  std::optional<uint32_t> use;
  FlatSymbolRefAttr state = getStateBehind(segment.func, gather.getShard());
  if (LocalShardOp part = findPartOf(gather))
    use = findInBackward(segment.memory, part);
  else if (const auto known = state ? gathers.find(state.getAttr()) : gathers.end(); known != gathers.end())
    for (auto [of, memory] : llvm::reverse(known->second.uses))
      if (of == index && !segment.memory.memories[memory].isForward)
        use = memory; // the first
  if (!use || segment.memory.memories[*use].begin <= moment)
    return std::nullopt;
  const ValueMemory &memory = segment.memory.memories[*use];
  const uint32_t begin = segment.begin + moment;
  const auto [early, isNew] = segment.early.try_emplace(*use, problem.values.size());
  if (isNew) {
    problem.values.emplace_back();
    problem.values.back().homes = {{{{kDevice, memory.bytes, begin, segment.begin + memory.begin}}, {}}};
    choices.push_back({index, {}, {}});
  }
  analysis::ResidencyHold &hold = problem.values[early->second].homes.front().holds.front();
  hold.begin = std::min(hold.begin, begin);
  return early->second;
}

/// Whether DeepSpeed's bound allows to keep `gathered` from a use to the next: elements of other parameters
/// that are used between the two.
bool ResidencyModel::mayKeep(const Gathered &gathered, size_t use) const {
  auto momentOf = [&](std::pair<uint32_t, uint32_t> at, bool isEnd) {
    const ValueMemory &memory = segments[at.first].memory.memories[at.second];
    return segments[at.first].begin + (isEnd ? memory.end : memory.begin);
  };
  uint32_t begin = momentOf(gathered.uses[use], true), end = momentOf(gathered.uses[use + 1], false);
  int64_t elements = 0;
  for (const auto &[state, other] : gathers)
    if (&other != &gathered && llvm::any_of(other.uses, [&](auto at) {
          return momentOf(at, false) < end && momentOf(at, true) > begin;
        }))
      elements += other.elements;
  return limits.maxReuseElements == 0 || elements <= limits.maxReuseElements;
}

/// The elements that are gathered at each moment because they are needed, as far as they are bounded: more
/// may be needed at once, and then none stay beside them by choice.
void ResidencyModel::countElements() {
  std::vector<int64_t> change(problem.spaces[kDevice].liveBytes.size() + 1, 0);
  for (const auto &[state, gathered] : gathers)
    for (auto [index, memory] : gathered.uses) {
      const Segment &segment = segments[index];
      change[segment.begin + segment.memory.memories[memory].begin] += gathered.elements;
      change[segment.begin + segment.memory.memories[memory].end + 1] -= gathered.elements;
    }
  const int64_t most = limits.maxLiveElements > 0 ? limits.maxLiveElements : kNoLimit;
  problem.spaces.push_back({most, {}});
  int64_t elements = 0;
  for (size_t moment = 0; moment + 1 < change.size(); ++moment)
    problem.spaces[kElements].liveBytes.push_back(std::min(most, elements += change[moment]));
}

void ResidencyModel::addGathers(const SymbolTable &symbols) {
  countElements();
  for (const auto &[state, gathered] : gathers) {
    analysis::ResidencyValue value;
    value.isRead = true;
    double everyUse = 0, everyRun = 0;
    std::vector<analysis::ResidencyHold> gaps, whole;
    uint32_t end = 0;
    bool mayKeepAll = true, mayKeepWithin = true;
    for (size_t use = 0; use < gathered.uses.size(); ++use) {
      auto [index, memory] = gathered.uses[use];
      const Segment &segment = segments[index];
      const ValueMemory &at = segment.memory.memories[memory];
      bool isFirst = use == 0 || gathered.uses[use - 1].first != index;
      everyUse += segment.runs * gathered.seconds, everyRun += isFirst ? segment.runs * gathered.seconds : 0;
      uint32_t begin = segment.begin + at.begin;
      analysis::ResidencyHold gap{kDevice, gathered.bytes, end, std::max(end, begin)};
      whole.push_back(gap);
      if (!isFirst)
        gaps.push_back(gap);
      if (use > 0 && !mayKeep(gathered, use - 1))
        (isFirst ? mayKeepAll : mayKeepWithin) = false;
      end = segment.begin + at.end + 1;
    }
    whole.push_back({kDevice, gathered.bytes, end, uint32_t(problem.spaces[kDevice].liveBytes.size())});
    whole.back().end = std::max(whole.back().begin, whole.back().end);
    bool isInSeveral = gathered.uses.front().first != gathered.uses.back().first;
    ResidencyChoice choice{std::nullopt, std::nullopt, state};
    auto addHome = [&](Stay stay, std::vector<analysis::ResidencyHold> holds, double seconds) {
      for (size_t hold = 0, count = holds.size(); hold < count; ++hold)
        holds.push_back({kElements, gathered.elements, holds[hold].begin, holds[hold].end});
      value.homes.push_back({std::move(holds), {{kLink, seconds}}});
      choice.stays.push_back(stay);
    };
    // What is kept of the first micro-step's gather is there only then: nothing gathers it for all of them.
    const bool isSecondary = symbols.lookup<StateOp>(state).getGatheredFrom().has_value();
    // What is loaded for each gather is another value each time to those that place them.
    mayKeepWithin &= !gathered.isLoaded;
    if (isInSeveral && mayKeepAll && mayKeepWithin && !isSecondary)
      addHome(Stay::Step, std::move(whole), gathered.seconds);
    if (!gaps.empty() && mayKeepWithin)
      addHome(Stay::Segment, std::move(gaps), everyRun);
    addHome(Stay::Use, {}, everyUse);
    problem.values.push_back(std::move(value));
    choices.push_back(std::move(choice));
  }
}

DenseMap<StringAttr, Stay> ResidencyModel::findStays(const analysis::ResidencyPlan &plan) const {
  DenseMap<StringAttr, Stay> stays;
  for (auto [choice, way] : llvm::zip_equal(choices, plan.ways))
    if (choice.state)
      stays[choice.state] = choice.stays[way];
  return stays;
}
