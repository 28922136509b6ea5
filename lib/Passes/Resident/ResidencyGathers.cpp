//===- ResidencyGathers.cpp - How long gathered parameters stay, in a step's problem -===//
#include "StepProblem.h"

#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/MeshShape.h"
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
/// `needs`: as long as fewer are under way than `most`, 0 for any number.
static uint32_t firstIssue(ArrayRef<std::pair<uint32_t, int64_t>> needs, int64_t most) {
  int64_t elements = 0;
  for (auto [moment, more] : llvm::reverse(needs))
    if (most > 0 && (elements += more) >= most)
      return moment;
  return 0;
}

/// The first moment of the last segment of `step` at which nothing is there of a use before of `gathered`.
static uint32_t behindLastUse(const GatheredUses &gathered, const StepProblem &step) {
  if (gathered.uses.empty() || gathered.uses.back().first + 1 != step.segments.size())
    return 0;
  return step.segments.back().memory.memories[gathered.uses.back().second].end + 1;
}

namespace {
/// The collectives of one segment.
class CollectiveDelays {
public:
  explicit CollectiveDelays(StepProblem &step) : step(step), segment(step.segments.back()) {
    start.assign(segment.seconds.size() + 1, 0);
    std::partial_sum(segment.seconds.begin(), segment.seconds.end(), start.begin() + 1);
  }
  void delay(CollectiveOpInterface collective);

private:
  /// The moment at which `seconds` of the segment have passed.
  uint32_t at(double seconds) const {
    return uint32_t(std::max<int64_t>(0, llvm::upper_bound(start, seconds) - start.begin() - 1));
  }
  void delayReduction(Operation *op, double ahead);
  void hastenGather(Operation *op, double seconds, double ahead);

  StepProblem &step;
  StepSegment &segment;
  std::vector<double> start;                       ///< of each moment
  SmallVector<std::pair<uint32_t, int64_t>> needs; ///< moment and elements of each gather before
};
} // namespace

/// By twice what it should take, as the passes that place collectives have it.
void CollectiveDelays::delay(CollectiveOpInterface collective) {
  const double seconds = step.costs.collectiveSeconds(collective);
  const double ahead = step.limits.isNothingAhead ? 0 : 2 * seconds;
  step.mayBeAhead |= isForUpdate(collective.getCarries()) || collective.getCarries() == Payload::Parameter;
  if (isForUpdate(collective.getCarries()))
    delayReduction(collective, ahead);
  else if (collective.getCarries() == Payload::Parameter)
    return hastenGather(collective, seconds, ahead);
  if (isExchange(collective)) // layers wait for it where it stands, on compute
    return;
  step.problem.resources[StepProblem::kLink] += segment.runs * seconds;
}

void CollectiveDelays::delayReduction(Operation *op, double ahead) {
  const uint32_t last = segment.memory.commands().size();
  const uint32_t end = std::min(last, at(start[segment.memory.momentOf(op)] + ahead));
  if (std::optional<uint32_t> operand = segment.memory.find(op->getOperand(0)))
    for (int32_t memory = int32_t(*operand); memory >= 0; memory = segment.memory.memories[memory].joined)
      segment.memory.memories[memory].end = std::max(segment.memory.memories[memory].end, end);
}

/// No gather comes before the use before of the same parameter has ended.
void CollectiveDelays::hastenGather(Operation *op, double seconds, double ahead) {
  const uint32_t moment = segment.memory.momentOf(op), result = *segment.memory.find(op->getResult(0));
  ValueMemory &memory = segment.memory.memories[result];
  FlatSymbolRefAttr state = getStateBehind(segment.func, op->getOperand(0));
  const int64_t elements = tensorType(memory.value).getNumElements();
  if (!step.limits.isNothingAhead)
    memory.begin = std::min(memory.begin, std::max(at(start[moment] - ahead - kIssueSeconds),
                                                   firstIssue(needs, step.limits.prefetchElements)));
  needs.emplace_back(moment, elements);
  if (!state || cast<CollectiveOpInterface>(op).getCollectiveKind() != CollectiveKind::AllGather) {
    step.problem.resources[StepProblem::kLink] += segment.runs * seconds;
    return;
  }
  GatheredUses &gathered = step.gathers[state.getAttr()];
  memory.begin = std::max(memory.begin, std::min(moment, behindLastUse(gathered, step)));
  // What is loaded for the gather alone comes with it.
  if (std::optional<uint32_t> shard = segment.memory.find(op->getOperand(0)))
    segment.memory.memories[*shard].begin = std::min(segment.memory.memories[*shard].begin, memory.begin);
  gathered.bytes = memory.bytes, gathered.elements = elements, gathered.seconds = seconds;
  gathered.isLoaded |= isa_and_nonnull<LoadOp>(op->getOperand(0).getDefiningOp());
  gathered.uses.emplace_back(step.segments.size() - 1, result);
}

/// Where memory is short, the passes that place collectives have compute wait.
void mlir::ds::delayCollectives(StepProblem &step) {
  CollectiveDelays delays(step);
  for (ArrayRef<Operation *> command : step.segments.back().memory.commands())
    if (auto collective = dyn_cast<CollectiveOpInterface>(command.front()))
      if (collective->getNumOperands() > 0 && collective->getNumResults() > 0)
        delays.delay(collective);
}

/// What backward gathers of `part`, or none.
static std::optional<uint32_t> findInBackward(const SegmentMemory &memory, LocalShardOp part) {
  for (Operation *user : part->getUsers())
    if (isa<AllGatherOp>(user) && !isForward(user))
      return memory.find(user->getResult(0));
  return std::nullopt;
}

std::optional<uint32_t> mlir::ds::addEarly(StepProblem &step, uint32_t index, Value gathered,
                                           uint32_t moment) {
  StepSegment &segment = step.segments[index];
  auto gather = gathered.getDefiningOp<AllGatherOp>();
  if (!gather || !segment.rules->recomputesCalls())
    return std::nullopt;
  std::optional<uint32_t> use;
  FlatSymbolRefAttr state = getStateBehind(segment.func, gather.getShard());
  if (LocalShardOp part = findPartOf(gather))
    use = findInBackward(segment.memory, part);
  else if (const auto known = state ? step.gathers.find(state.getAttr()) : step.gathers.end();
           known != step.gathers.end())
    for (auto [of, memory] : llvm::reverse(known->second.uses))
      if (of == index && !segment.memory.memories[memory].isForward)
        use = memory; // the first
  if (!use || segment.memory.memories[*use].begin <= moment)
    return std::nullopt;
  const ValueMemory &memory = segment.memory.memories[*use];
  const uint32_t begin = segment.since(moment);
  const auto [early, isNew] = segment.early.try_emplace(*use, step.choices.size());
  if (isNew) {
    analysis::ResidencyValue value;
    value.homes = {{{{StepProblem::kDevice, memory.bytes, begin, segment.at(memory.begin)}}, {}}};
    step.add(std::move(value), {index, {}, {}});
  }
  analysis::ResidencyHold &hold = step.problem.values[early->second].homes.front().holds.front();
  hold.begin = std::min(hold.begin, begin);
  return early->second;
}

namespace {
/// How long one parameter may stay.
class StayingParameter {
public:
  StayingParameter(StepProblem &step, StringAttr state, const GatheredUses &gathered)
      : step(step), state(state), gathered(gathered) {}
  /// `isOfStage`: forward and backward of a micro-batch are functions of their own, and each gathers.
  void add(const SymbolTable &symbols, bool isOfStage);

private:
  uint32_t beginOf(std::pair<uint32_t, uint32_t> use) const;
  uint32_t endOf(std::pair<uint32_t, uint32_t> use) const;
  bool mayKeep(size_t use) const;
  void addUses();
  void addHome(Stay stay, std::vector<analysis::ResidencyHold> holds, double seconds);

  StepProblem &step;
  StringAttr state;
  const GatheredUses &gathered;
  analysis::ResidencyValue value{};
  SmallVector<Stay> stays{};                            ///< by home
  std::vector<analysis::ResidencyHold> gaps{}, whole{}; ///< between uses of one segment, and over the step
  double everyUse = 0, everyRun = 0;                    ///< seconds of all its gathers, and of one a segment
  bool mayKeepAll = true, mayKeepWithin = true;         ///< over the step, and within segments
};
} // namespace

/// The first moment at which it is there for `use`.
uint32_t StayingParameter::beginOf(std::pair<uint32_t, uint32_t> use) const {
  const StepSegment &segment = step.segments[use.first];
  return segment.at(segment.memory.memories[use.second].begin);
}

/// The last moment of `use`.
uint32_t StayingParameter::endOf(std::pair<uint32_t, uint32_t> use) const {
  const StepSegment &segment = step.segments[use.first];
  return segment.at(segment.memory.memories[use.second].end);
}

/// Whether DeepSpeed's bound allows to keep it from a use to the next: elements of other parameters that are
/// used between the two. Of a large model some dozens are beyond the bound: no more are looked at.
bool StayingParameter::mayKeep(size_t use) const {
  const int64_t most = step.limits.maxReuseElements;
  if (most == 0)
    return true;
  const uint32_t begin = endOf(gathered.uses[use]), end = beginOf(gathered.uses[use + 1]);
  int64_t elements = 0;
  for (const auto &[name, other] : step.gathers)
    if (&other != &gathered &&
        llvm::any_of(other.uses, [&](auto at) { return beginOf(at) < end && endOf(at) > begin; }) &&
        (elements += other.elements) > most)
      return false;
  return true;
}

void StayingParameter::addUses() {
  uint32_t end = 0;
  for (size_t use = 0; use < gathered.uses.size(); ++use) {
    const double seconds = step.segments[gathered.uses[use].first].runs * gathered.seconds;
    bool isFirst = use == 0 || gathered.uses[use - 1].first != gathered.uses[use].first;
    everyUse += seconds, everyRun += isFirst ? seconds : 0;
    const analysis::ResidencyHold gap{StepProblem::kDevice, gathered.bytes, end,
                                      std::max(end, beginOf(gathered.uses[use]))};
    whole.push_back(gap);
    if (!isFirst)
      gaps.push_back(gap);
    if (use > 0 && !mayKeep(use - 1))
      (isFirst ? mayKeepAll : mayKeepWithin) = false;
    end = endOf(gathered.uses[use]) + 1;
  }
  whole.push_back({StepProblem::kDevice, gathered.bytes, end, std::max(end, step.live.getMoments())});
}

void StayingParameter::addHome(Stay stay, std::vector<analysis::ResidencyHold> holds, double seconds) {
  for (size_t hold = 0, count = holds.size(); hold < count; ++hold)
    holds.push_back({StepProblem::kElements, gathered.elements, holds[hold].begin, holds[hold].end});
  value.homes.push_back({std::move(holds), {{StepProblem::kLink, seconds}}});
  stays.push_back(stay);
}

void StayingParameter::add(const SymbolTable &symbols, bool isOfStage) {
  value.isRead = true;
  addUses();
  const bool isInSeveral = gathered.uses.front().first != gathered.uses.back().first;
  // What is kept of the first micro-step's gather is there only then: nothing gathers it for all of them.
  const bool isSecondary = symbols.lookup<StateOp>(state).getGatheredFrom().has_value();
  // What is loaded for each gather is another value each time to those that place them.
  mayKeepWithin &= !gathered.isLoaded;
  if (isInSeveral && mayKeepAll && mayKeepWithin && !isSecondary && !isOfStage)
    addHome(Stay::Step, std::move(whole), gathered.seconds);
  if (!gaps.empty() && mayKeepWithin)
    addHome(Stay::Segment, std::move(gaps), everyRun);
  addHome(Stay::Use, {}, everyUse);
  ResidencyChoice choice{std::nullopt, std::nullopt, state};
  choice.stays = std::move(stays);
  step.add(std::move(value), std::move(choice));
}

void mlir::ds::addGathers(StepProblem &step, const SymbolTable &symbols) {
  const MeshShape shape = getMeshShape(cast<ModuleOp>(symbols.getOp()));
  const bool isOfStage = shape.mesh.size(shape.stages) > 1;
  for (const auto &[state, gathered] : step.gathers) {
    // What is there because it is needed.
    for (auto [index, memory] : gathered.uses) {
      const StepSegment &segment = step.segments[index];
      const ValueMemory &use = segment.memory.memories[memory];
      step.live.hold(
          {StepProblem::kElements, gathered.elements, segment.at(use.begin), segment.since(use.end + 1)});
    }
    StayingParameter(step, state, gathered).add(symbols, isOfStage);
  }
}
