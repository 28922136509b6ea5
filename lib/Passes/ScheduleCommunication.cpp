//===- ScheduleCommunication.cpp - When to gather, and what to keep gathered -----===//
//
// Translates a function into the plain problem of Analysis/GatherSchedule: gathers of one shard that does not
// change in between are one value with several uses; what is kept between two uses takes the first gather's
// memory, and the second gather is erased. All others move up to where the schedule issues them.
//
//===---------------------------------------------------------------------------===//
#include "BufferAccess.h"
#include "CommandCost.h"
#include "ScheduledFunction.h"
#include "ds/Passes/Analysis/GatherSchedule.h"
#include "ds/Passes/Passes.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SCHEDULECOMMUNICATION
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

namespace {

/// The gathers of one value, use by use; those of one use share its memory.
struct GatheredValue {
  BufferAccess shard;
  std::string name;
  SmallVector<SmallVector<CommunicateOp>> uses;
};

class GatherScheduler {
public:
  explicit GatherScheduler(func::FuncOp func);
  bool hasGathers() const { return !values.empty(); }
  /// The problem, but for its bounds.
  analysis::GatherProblem problem;

  void apply(const analysis::GatherSchedule &schedule);
  /// What `schedule` says, for the plan's report.
  DictionaryAttr describe(const analysis::GatherSchedule &schedule);

private:
  void findCompute();
  void findValues();
  void addGather(CommunicateOp gather);
  analysis::GatherUse useOf(CommunicateOp gather) const;
  int64_t earliestIssue(CommunicateOp gather) const;
  void issueBefore(CommunicateOp gather, int64_t command);

  func::FuncOp func;
  ::ds::cost::Rates rates;
  SmallVector<Operation *> compute;
  SmallVector<SmallVector<BufferAccess>> accesses; ///< of compute
  DenseMap<Operation *, int64_t> position;         ///< command -> number of compute commands before it
  std::vector<GatheredValue> values;               ///< as problem.values
};

} // namespace

/// True for a gather whose result is memory of its own: not one that happens in a state's place.
static bool isMovable(CommunicateOp op) {
  auto alloc =
      op.getKind() == CollectiveKind::AllGather ? op.getOutputs()[0].getDefiningOp<AllocOp>() : AllocOp();
  return alloc && alloc.getCategory() == "communication";
}

GatherScheduler::GatherScheduler(func::FuncOp func) : func(func) {
  findCompute();
  findValues();
  DenseSet<Operation *> gathered;
  for (const GatheredValue &value : values)
    for (const auto &use : value.uses)
      for (CommunicateOp gather : use)
        gathered.insert(gather.getOutputs()[0].getDefiningOp());
  problem.liveBytes = getLiveBytes(func, gathered);
  problem.issueSeconds = kIssueSeconds;
}

void GatherScheduler::findCompute() {
  for (Operation &op : func.getBody().front()) {
    position[&op] = compute.size();
    if (!isa<LaunchOp, CallOp>(op))
      continue;
    compute.push_back(&op);
    accesses.push_back(accessesOf(&op));
    problem.seconds.push_back(computeSeconds(&op, rates));
  }
}

/// The compute commands from the first to the last that reads what `gather` brings.
analysis::GatherUse GatherScheduler::useOf(CommunicateOp gather) const {
  int64_t begin = position.at(gather), first = compute.size(), last = begin;
  Value root = gather.getOutputs()[0];
  for (int64_t command = begin; command < static_cast<int64_t>(compute.size()); ++command)
    if (llvm::any_of(accesses[command], [&](const BufferAccess &access) { return access.root == root; }))
      first = std::min(first, command), last = command + 1;
  return {std::min(first, last), std::max(last, first == begin ? begin + 1 : last)};
}

/// The compute command behind the last one that writes what `gather` reads.
int64_t GatherScheduler::earliestIssue(CommunicateOp gather) const {
  BufferAccess shard = windowOf(gather.getInputs()[0]);
  for (int64_t command = position.at(gather); command > 0; --command)
    if (conflict(accesses[command - 1], shard))
      return command;
  return 0;
}

void GatherScheduler::addGather(CommunicateOp gather) {
  analysis::GatherUse use = useOf(gather);
  BufferAccess shard = windowOf(gather.getInputs()[0]);
  int64_t earliest = earliestIssue(gather);
  auto type = cast<BufferType>(gather.getOutputs()[0].getType());
  for (auto [value, entry] : llvm::zip_equal(values, problem.values)) {
    bool isSame = value.shard.root == shard.root && value.shard.begin == shard.begin &&
                  value.shard.end == shard.end && entry.bytes == type.getSizeInBytes() &&
                  value.uses.back().back().getOutputs()[0].getType() == type;
    // A shard that has changed since is another value.
    if (!isSame || earliest > entry.uses.back().begin)
      continue;
    if (use.begin < entry.uses.back().end) {
      entry.uses.back().end = std::max(entry.uses.back().end, use.end);
      value.uses.back().push_back(gather);
      return;
    }
    entry.uses.push_back(use);
    value.uses.push_back({gather});
    return;
  }
  std::string name;
  if (auto argument = dyn_cast<BlockArgument>(shard.root))
    if (FlatSymbolRefAttr state = getStateOf(func, argument.getArgNumber()))
      name = state.getValue().str();
  values.push_back({shard, name, {{gather}}});
  // Planned times are doubled, as a machine that does other things as well may take them.
  problem.values.push_back({type.getSizeInBytes(),
                            type.getTensor().getNumElements(),
                            2 * collectiveSeconds(gather, rates),
                            earliest,
                            {use}});
}

void GatherScheduler::findValues() {
  SmallVector<CommunicateOp> gathers =
      llvm::to_vector(llvm::make_filter_range(func.getOps<CommunicateOp>(), isMovable));
  llvm::stable_sort(gathers,
                    [&](CommunicateOp a, CommunicateOp b) { return useOf(a).begin < useOf(b).begin; });
  for (CommunicateOp gather : gathers)
    addGather(gather);
}

void GatherScheduler::issueBefore(CommunicateOp gather, int64_t command) {
  Operation *target = compute[command];
  // Not behind what only compute waits for.
  while (auto wait = dyn_cast_or_null<WaitOp>(target->getPrevNode())) {
    if (wait.getStream() != StreamKind::Compute)
      break;
    target = wait;
  }
  gather->moveBefore(target);
}

void GatherScheduler::apply(const analysis::GatherSchedule &schedule) {
  for (const analysis::GatherLoad &load : schedule.loads) {
    CommunicateOp first = values[load.value].uses[load.firstUse].front();
    for (uint32_t use = load.firstUse; use <= load.lastUse; ++use)
      for (CommunicateOp other : values[load.value].uses[use]) {
        if (other == first)
          continue;
        Operation *alloc = other.getOutputs()[0].getDefiningOp();
        alloc->getResult(0).replaceAllUsesExcept(first.getOutputs()[0], other);
        other.erase();
        alloc->erase();
      }
    issueBefore(first, load.issue);
  }
  placeBuffers(func);
}

DictionaryAttr GatherScheduler::describe(const analysis::GatherSchedule &schedule) {
  Builder builder(func.getContext());
  SmallVector<StringRef> kept, again;
  int64_t keptBytes = 0;
  DenseSet<uint32_t> loaded;
  for (const analysis::GatherLoad &load : schedule.loads) {
    StringRef name = values[load.value].name;
    if (load.firstUse < load.lastUse)
      kept.push_back(name), keptBytes += problem.values[load.value].bytes;
    if (!loaded.insert(load.value).second)
      again.push_back(name);
  }
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("kept", builder.getStrArrayAttr(kept)),
       builder.getNamedAttr("kept_bytes", builder.getI64IntegerAttr(keptBytes)),
       builder.getNamedAttr("gathered_again", builder.getStrArrayAttr(again)),
       builder.getNamedAttr("exposed_seconds", builder.getF64FloatAttr(schedule.exposedSeconds))});
}

namespace {
struct ScheduleCommunication : mlir::ds::impl::ScheduleCommunicationBase<ScheduleCommunication> {
  using ScheduleCommunicationBase::ScheduleCommunicationBase;

  void runOnOperation() override {
    GatherScheduler scheduler(getOperation());
    if (!scheduler.hasGathers())
      return;
    analysis::GatherProblem &problem = scheduler.problem;
    problem.budgetBytes = memory > 0 ? memory : analysis::GatherProblem::kNoLimit;
    problem.prefetchElements = prefetchElements;
    problem.maxLiveElements = maxLiveElements;
    problem.maxReuseElements = maxReuseElements;
    ::ds::Result<analysis::GatherSchedule> schedule = analysis::scheduleGathers(problem);
    std::optional<std::string> fault =
        schedule ? analysis::check(*schedule, problem) : std::optional(schedule.error().message);
    if (fault) {
      getOperation().emitError("the schedule of gathers is wrong: ") << *fault;
      return signalPassFailure();
    }
    if (remarks)
      getOperation().emitRemark() << scheduler.describe(*schedule);
    getOperation()->setAttr(kGathersAttr, scheduler.describe(*schedule));
    scheduler.apply(*schedule);
  }
};
} // namespace
