//===- ScheduleCommunication.cpp - When to gather, and what to keep gathered -----===//
//
// Joins the micro-steps of a step to one plain problem of Analysis/GatherSchedule and carries its answer out:
// what is kept between two uses of a function takes the first gather's memory; what stays over micro-steps
// takes a state of its own; the gathers that this saves are erased. All others move up to where the schedule
// issues them. Evaluation, which no micro-step meets, is a problem of its own.
//
//===---------------------------------------------------------------------------===//
#include "FunctionGathers.h"
#include "GatherNotes.h"

#include "ds/Passes/CommandCost.h"
#include "ds/Passes/LateUpdates.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/StateNames.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SCHEDULECOMMUNICATION
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

static_assert(static_cast<int>(Stay::Use) == static_cast<int>(analysis::GatherStay::Use) &&
              static_cast<int>(Stay::Segment) == static_cast<int>(analysis::GatherStay::Segment) &&
              static_cast<int>(Stay::Step) == static_cast<int>(analysis::GatherStay::Step));

namespace {

/// A value that stays gathered over micro-steps, and where.
struct WholeStepValue {
  GatheredValue value;
  StateOp place;
};

/// The functions that a step runs one after the other, as one problem.
class GatherScheduler {
public:
  GatherScheduler(ArrayRef<func::FuncOp> funcs, ArrayRef<int64_t> runs, CommandCosts &costs,
                  const WorkspaceLimits &limits, std::optional<int64_t> memory);
  bool hasGathers() const { return !values.empty(); }
  /// The problem, but for its bounds.
  analysis::GatherProblem problem;

  /// What `schedule` says of each function, for the report.
  std::vector<KeptGathers> describe(const analysis::GatherSchedule &schedule);
  /// Returns the values that stay over micro-steps.
  SmallVector<WholeStepValue> apply(const analysis::GatherSchedule &schedule);

private:
  /// One value of the problem: what it is called in each function that uses it.
  struct JoinedValue {
    SmallVector<std::pair<size_t, size_t>> parts;  ///< function, its value; in order
    SmallVector<std::pair<size_t, uint32_t>> uses; ///< part, the function's use
  };

  analysis::GatherStay stayOf(const GatheredValue &value) const;
  void addFunction(size_t index);
  JoinedValue *findSame(size_t index, const GatheredValue &value, analysis::GatherValue *&entry);
  const GatheredValue &valueOf(std::pair<size_t, size_t> part) const {
    return functions[part.first].values[part.second];
  }
  WholeStepValue keepForStep(const JoinedValue &joined, int64_t issue);

  std::vector<FunctionGathers> functions;
  SmallVector<int64_t> runs;
  SmallVector<int64_t> begins;     ///< the first command of each function in the problem
  std::vector<JoinedValue> values; ///< as problem.values
};

} // namespace

GatherScheduler::GatherScheduler(ArrayRef<func::FuncOp> funcs, ArrayRef<int64_t> runs, CommandCosts &costs,
                                 const WorkspaceLimits &limits, std::optional<int64_t> memory)
    : runs(runs) {
  for (func::FuncOp func : funcs)
    functions.emplace_back(func, costs, limits, memory);
  for (size_t index = 0; index < functions.size(); ++index)
    addFunction(index);
  problem.issueSeconds = kIssueSeconds;
}

/// The value of the functions before that `value` of function `index` is, too: its shard is the same, and
/// nothing changes it on the way.
GatherScheduler::JoinedValue *GatherScheduler::findSame(size_t index, const GatheredValue &value,
                                                        analysis::GatherValue *&entry) {
  if (!value.state || value.earliest > 0 || (runs[index] > 1 && functions[index].changes(value)))
    return nullptr;
  for (auto [known, other] : llvm::zip_equal(values, problem.values)) {
    auto [first, local] = known.parts.front();
    if (known.parts.back().first == index || !valueOf({first, local}).isSameAs(value))
      continue;
    bool changes = false;
    for (auto part : known.parts)
      changes |= functions[part.first].changes(valueOf(part));
    entry = &other;
    return changes ? nullptr : &known;
  }
  return nullptr;
}

/// How long `value` was chosen to stay.
analysis::GatherStay GatherScheduler::stayOf(const GatheredValue &value) const {
  if (!value.state)
    return analysis::GatherStay::Use;
  auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(functions.front().func, value.state);
  return static_cast<analysis::GatherStay>(state.getStay().value_or(Stay::Use));
}

void GatherScheduler::addFunction(size_t index) {
  const FunctionGathers &function = functions[index];
  int64_t begin = problem.seconds.size();
  begins.push_back(begin);
  llvm::append_range(problem.seconds, function.seconds);
  llvm::append_range(problem.liveBytes, function.liveBytes);
  problem.segments.push_back({int64_t(problem.seconds.size()), runs[index]});
  for (auto [local, value] : llvm::enumerate(function.values)) {
    analysis::GatherValue *entry = nullptr;
    JoinedValue *joined = findSame(index, value, entry);
    if (!joined) {
      values.emplace_back();
      problem.values.push_back({(value.hasPlace ? 0 : value.type.getSizeInBytes()) + value.loadedBytes,
                                value.type.getTensor().getNumElements(),
                                value.seconds,
                                begin + value.earliest,
                                {},
                                stayOf(value)});
      joined = &values.back(), entry = &problem.values.back();
    }
    for (auto [use, commands] : llvm::enumerate(value.uses)) {
      joined->uses.push_back({joined->parts.size(), uint32_t(use)});
      entry->uses.push_back({begin + commands.begin, begin + commands.end});
    }
    joined->parts.push_back({index, local});
  }
}

/// Gives a value a state, which the first of its functions gathers and all read.
WholeStepValue GatherScheduler::keepForStep(const JoinedValue &joined, int64_t issue) {
  const GatheredValue &value = valueOf(joined.parts.front());
  ModuleOp module = functions.front().func->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  auto shard = symbols.lookup<StateOp>(value.getName());
  StringRef name = value.getName();
  name.consume_back(".parameter");
  OpBuilder builder(module.getContext());
  auto place = builder.create<StateOp>(shard.getLoc(), (name + ".gathered").str(), Role::Buffer,
                                       /*trainable=*/false, ArrayAttr(), FlatSymbolRefAttr(),
                                       InitAttr::get(module.getContext(), InitKind::Zero, 0.0, 0.0),
                                       shard.getHome(), value.type.getTensor());
  place.setGatheredFromAttr(value.state);
  symbols.insert(place, std::next(shard->getIterator()));
  for (auto [order, part] : llvm::enumerate(joined.parts)) {
    FunctionGathers &function = functions[part.first];
    Value argument = addStateArgument(function.func, place);
    function.moveTo(valueOf(part), argument, /*isGathered=*/order == 0, issue - begins[part.first]);
  }
  return {value, place};
}

SmallVector<WholeStepValue> GatherScheduler::apply(const analysis::GatherSchedule &schedule) {
  SmallVector<WholeStepValue> whole;
  for (const analysis::GatherLoad &load : schedule.loads) {
    const JoinedValue &joined = values[load.value];
    auto [firstPart, firstUse] = joined.uses[load.firstUse];
    auto [lastPart, lastUse] = joined.uses[load.lastUse];
    auto part = joined.parts[firstPart];
    if (firstPart != lastPart)
      whole.push_back(keepForStep(joined, load.issue));
    else
      functions[part.first].joinUses(valueOf(part), firstUse, lastUse, load.issue - begins[part.first]);
  }
  for (FunctionGathers &function : functions)
    placeBuffers(function.func);
  return whole;
}

std::vector<KeptGathers> GatherScheduler::describe(const analysis::GatherSchedule &schedule) {
  std::vector<GatherNotes> notes(functions.size());
  auto functionOf = [&](const analysis::GatherLoad &load) {
    return values[load.value].parts[values[load.value].uses[load.firstUse].first].first;
  };
  if (functions.empty())
    return {};
  for (const analysis::GatherLoad &load : schedule.loads) {
    const JoinedValue &joined = values[load.value];
    StringRef name = valueOf(joined.parts.front()).getName();
    GatherNotes::Entry entry{name, problem.values[load.value].bytes};
    bool isWhole = joined.uses[load.firstUse].first != joined.uses[load.lastUse].first;
    for (uint32_t use = load.firstUse; isWhole && use <= load.lastUse; ++use)
      entry.gathers += runs[joined.parts[joined.uses[use].first].first];
    GatherNotes &note = notes[functionOf(load)];
    if (load.firstUse < load.lastUse)
      (isWhole ? note.forStep : note.forBackward).push_back(entry);
  }
  for (const analysis::Regather &reason : analysis::explainRegathers(problem, schedule)) {
    const analysis::GatherLoad &load = schedule.loads[reason.load];
    StringRef name = valueOf(values[load.value].parts.front()).getName();
    notes[functionOf(load)].again.push_back({name, reason});
  }
  std::vector<double> exposed = analysis::exposedBySegment(problem, schedule.loads);
  std::vector<KeptGathers> result;
  for (auto [index, note] : llvm::enumerate(notes))
    result.push_back(note.describe(functions[index].func.getSymName(), problem, exposed[index]));
  return result;
}

/// Lets the gathers of `func`, which no micro-step meets, fill the places of what stays over micro-steps.
static void sharePlaces(func::FuncOp func, ArrayRef<WholeStepValue> whole) {
  for (auto gather : func.getOps<CommunicateOp>()) {
    auto alloc = gather.getOutputs().empty() ? AllocOp() : gather.getOutputs()[0].getDefiningOp<AllocOp>();
    if (!alloc || !isMovableGather(gather))
      continue;
    BufferAccess shard = windowOf(gather.getInputs()[0]);
    FlatSymbolRefAttr state = getStateOf(func, shard.root);
    for (const auto &[value, place] : whole) {
      bool isSame = state && state == value.state && shard.begin == value.shard.begin &&
                    shard.end == value.shard.end && alloc.getBuffer().getType() == value.type;
      if (!isSame)
        continue;
      alloc.getBuffer().replaceAllUsesWith(addStateArgument(func, place));
      alloc.erase();
      break;
    }
  }
}

namespace {
struct ScheduleCommunication : mlir::ds::impl::ScheduleCommunicationBase<ScheduleCommunication> {
  using ScheduleCommunicationBase::ScheduleCommunicationBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    FailureOr<::ds::cost::Rates> rates = readRates(getOperation());
    if (failed(rates))
      return signalPassFailure();
    SmallVector<func::FuncOp> step, others;
    SmallVector<int64_t> runs;
    for (func::FuncOp func : getFunctions()) {
      int64_t count = scheduledRuns(func); // what follows the first segment follows the rotated one as well
      (count > 0 ? step : others).push_back(func);
      if (count > 0)
        runs.push_back(count);
    }
    CommandCosts costs(getOperation(), *rates);
    SmallVector<WholeStepValue> whole;
    if (failed(schedule(step, runs, costs, whole)))
      return signalPassFailure();
    for (func::FuncOp func : others) {
      SmallVector<WholeStepValue> none;
      sharePlaces(func, whole);
      if (failed(schedule(func, int64_t(1), costs, none)))
        return signalPassFailure();
    }
  }

  /// Segments in the order in which a step runs them, then everything else.
  SmallVector<func::FuncOp> getFunctions() {
    SmallVector<func::FuncOp> functions = getSegments(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func->hasAttr(DsDialect::kSegmentAttr))
        functions.push_back(func);
    return functions;
  }

  LogicalResult schedule(ArrayRef<func::FuncOp> funcs, ArrayRef<int64_t> runs, CommandCosts &costs,
                         SmallVectorImpl<WholeStepValue> &whole) {
    const std::optional<int64_t> bytes = bytesWithin(memory, getOperation());
    GatherScheduler scheduler(funcs, runs, costs, limitsOf(getOperation()), bytes);
    if (!scheduler.hasGathers())
      return success();
    analysis::GatherProblem &problem = scheduler.problem;
    problem.budgetBytes = bytes.value_or(analysis::GatherProblem::kNoLimit);
    problem.prefetchElements = prefetchElements;
    problem.maxLiveElements = maxLiveElements;
    problem.maxReuseElements = maxReuseElements;
    ::ds::Result<analysis::GatherSchedule> schedule = analysis::scheduleGathers(problem);
    std::optional<std::string> fault =
        schedule ? analysis::check(*schedule, problem) : std::optional(schedule.error().message);
    if (fault)
      return getOperation().emitError("the schedule of gathers is wrong: ") << *fault;
    std::vector<KeptGathers> gathers = scheduler.describe(*schedule);
    for (auto [func, kept] : llvm::zip_equal(funcs, gathers))
      if (remarks)
        func::FuncOp(func).emitRemark() << DecisionsAttr::get(&getContext(), {.gathers = {kept}});
    changeDecisions(getOperation(),
                    [&](Decisions &decisions) { llvm::append_range(decisions.gathers, gathers); });
    llvm::append_range(whole, scheduler.apply(*schedule));
    return success();
  }
};
} // namespace
