//===- ResidencyModel.cpp - A step's choices as one problem of Analysis/Residency --===//
#include "ResidencyModel.h"

#include "ds/Dialect/Machine.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

ResidencyModel::ResidencyModel(ModuleOp module, const StepDescription &described,
                               const ::ds::cost::Rates &rates, const ResidencyLimits &limits)
    : numGroups(described.numGroups) {
  StepProblem step(module, rates, limits);
  for (const SegmentDescription &segment : described.segments)
    step.addSegment(segment);
  for (uint32_t segment = 0; isForCuda(module) && segment < step.segments.size(); ++segment)
    addWorkspaces(step, segment);
  for (uint32_t segment = 0; segment < step.segments.size(); ++segment)
    addForward(step, segment, described.segments[segment].forward);
  addGathers(step, SymbolTable(module));
  addLosses(step);
  step.close();
  problem = std::move(step.problem);
  choices = std::move(step.choices);
  segments = std::move(step.segments);
  isAhead = step.mayBeAhead;
}

DenseSet<Value> ResidencyModel::findKept(func::FuncOp func, const analysis::ResidencyPlan &plan) const {
  DenseSet<Value> kept;
  const auto segment = llvm::find_if(segments, [&](const StepSegment &of) { return of.func == func; });
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
                      [](const analysis::ResidencyHold &hold) { return hold.space == StepProblem::kHost; });
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

bool ResidencyModel::usesHost(const analysis::ResidencyPlan &plan) const {
  return llvm::any_of(llvm::seq(choices.size()), [&](size_t index) { return isOnHost(index, plan); });
}

Value ResidencyModel::valueOf(size_t index) const {
  const ResidencyChoice &choice = choices[index];
  return choice.memory ? segments[*choice.segment].memory.memories[*choice.memory].value : Value();
}

std::optional<size_t> ResidencyModel::findLosses() const {
  auto found = llvm::find_if(choices, [](const ResidencyChoice &choice) { return choice.isOfLosses(); });
  return found == choices.end() ? std::nullopt : std::optional<size_t>(found - choices.begin());
}

CrossEntropyOp ResidencyModel::getLoss() const {
  const LossPieces *most = nullptr;
  for (const StepSegment &segment : segments)
    for (const LossPieces &loss : segment.losses)
      if (!most || loss.allRows > most->allRows)
        most = &loss;
  return most->loss;
}

int64_t ResidencyModel::countPieces(int64_t rows) const {
  int64_t most = 1;
  for (const StepSegment &segment : segments)
    for (const LossPieces &loss : segment.losses)
      if (llvm::is_contained(loss.offered, rows))
        most = std::max<int64_t>(most, llvm::divideCeil(loss.allRows, rows));
  return most;
}

int64_t ResidencyModel::peakWith(const analysis::ResidencyPlan &plan, size_t index,
                                 const analysis::ResidencyWay &way) const {
  const std::vector<int64_t> &live = problem.spaces[StepProblem::kDevice].liveBytes;
  analysis::StepMemory chosen(StepProblem::kSpaces, live.size());
  for (size_t value = 0; value < plan.ways.size(); ++value) {
    const int32_t taken = plan.ways[value];
    if (value != index && taken == analysis::kNotHad)
      continue;
    const analysis::ResidencyValue &of = problem.values[value];
    for (const analysis::ResidencyHold &hold : value == index                   ? way.holds
                                               : taken == analysis::kRecomputed ? of.recompute->holds
                                                                                : of.homes[taken].holds)
      chosen.hold(hold);
  }
  int64_t most = 0;
  for (auto [held, bytes] : llvm::zip_equal(live, chosen.liveBytes(StepProblem::kDevice)))
    most = std::max(most, held + bytes);
  return most;
}

DenseMap<StringAttr, Stay> ResidencyModel::findStays(const analysis::ResidencyPlan &plan) const {
  DenseMap<StringAttr, Stay> stays;
  for (auto [choice, way] : llvm::zip_equal(choices, plan.ways))
    if (choice.state)
      stays[choice.state] = choice.stays[way];
  return stays;
}
