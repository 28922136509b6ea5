//===- StepDescription.cpp - What the segments of a step are, before anything is chosen ----===//
#include "StepDescription.h"

#include "RowsApart.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

ValueCosts mlir::ds::costsOf(ModuleOp module, const ::ds::cost::Rates &rates) {
  return ValueCosts(rates, isForCuda(module) ? ranksOnNode(module, rates) : 1);
}

/// Every `stride`-th of `values`, and the first and the last.
static SmallVector<Value> takeEvery(ArrayRef<Value> values, int64_t stride) {
  SmallVector<Value> taken;
  for (size_t index = 0; index < values.size(); ++index)
    if (index % stride == 0 || index + 1 == values.size())
      taken.push_back(values[index]);
  return taken;
}

/// What of `func` may be recomputed.
RecomputeRules StepDescriptions::makeRules(func::FuncOp func, Segment &segment,
                                           const RecomputePlan &recompute) {
  if (recompute.kind == RecomputePlan::Kind::Cheap)
    return {};
  const RecomputeOptions &demanded = recompute.demanded;
  if (!demanded.ops.empty())
    return RecomputeRules::named(demanded.ops);
  if (segment.narrow.empty())
    segment.narrow = findNarrowValues(func);
  if (recompute.kind == RecomputePlan::Kind::Groups)
    return RecomputeRules::between(takeEvery(segment.narrow, recompute.stride));
  const SmallVector<Value> ends = findLayerEnds(segment.narrow);
  int64_t stride = std::max<int64_t>(demanded.interval, 1);
  if (demanded.checkpoints > 0)
    stride = llvm::divideCeil(std::max<int64_t>(int64_t(ends.size()) - 1, 1), demanded.checkpoints);
  return RecomputeRules::demanded(takeEvery(ends, stride), demanded.layers);
}

/// What the call that is `command` takes; 0 where it is a kernel.
static double callSeconds(ArrayRef<Operation *> command, const ValueCosts &costs) {
  Operation *first = command.front();
  const bool isBeside = isa<HostOp, StoreOp, LoadOp, MoveOp>(first);
  return formOf(first) == OpForm::Call && !isBeside ? costs.callSeconds(first) : 0;
}

/// What the kernel that is `command` takes, at least: it writes what leaves it, and reads as much. 0 where it
/// is a call.
static double kernelSeconds(ArrayRef<Operation *> command, const SegmentMemory &memory,
                            const ValueCosts &costs) {
  if (formOf(command.front()) == OpForm::Call)
    return 0;
  double bytes = 0;
  for (Operation *op : command)
    for (Value result : op->getResults())
      if (std::optional<uint32_t> made = memory.find(result); made && memory.memories[*made].isStored)
        bytes += 2 * double(memory.memories[*made].bytes);
  return costs.movingSeconds(bytes);
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

StepDescriptions::StepDescriptions(ModuleOp module, const OpenSegments &open, const ::ds::cost::Rates &rates)
    : open(open), symbols(module), costs(costsOf(module, rates)), isForCuda(mlir::ds::isForCuda(module)) {
  for (func::FuncOp func : getSegments(module))
    if (runsPerStep(func) > 0)
      segments.insert({func, makeSegment(func)});
}

StepDescriptions::Segment StepDescriptions::makeSegment(func::FuncOp func) const {
  Segment segment{std::make_shared<SegmentCommands>(func, open.find(func)->second), {}};
  for (ArrayRef<Operation *> command : segment.commands->commands)
    segment.callSeconds.push_back(callSeconds(command, costs));
  return segment;
}

/// Whether `value`, of forward, is read by backward, be it by what is recomputed.
static bool isNeeded(const ValueMemory &value) {
  return value.isForward && value.firstRead <= value.lastRead;
}

/// Numbers the calls of `memory` that `rules` let run again, each before the first reader of its results.
static void numberCalls(const SegmentMemory &memory, const RecomputeRules &rules, Repeats &repeats) {
  for (uint32_t index = 0; index < memory.memories.size(); ++index) {
    Operation *maker = memory.memories[index].value.getDefiningOp();
    if (memory.memories[index].value != maker->getResult(0) || isCheap(maker) || !rules.mayRecompute(maker))
      continue;
    SmallVector<uint32_t> results;
    for (Value result : maker->getResults())
      if (std::optional<uint32_t> made = memory.find(result); made && isNeeded(memory.memories[*made]))
        results.push_back(*made);
    auto firstReadOf = [&](uint32_t result) { return memory.memories[result].firstRead; };
    if (results.empty())
      continue;
    const uint32_t first = *llvm::min_element(llvm::map_to_vector(results, firstReadOf));
    if (first >= repeats.calls.size())
      continue;
    for (uint32_t result : results)
      if (firstReadOf(result) == first)
        repeats.uses[result].made = repeats.calls[first];
    ++repeats.calls[first];
  }
}

/// Notes in what memories `op`, of forward, reads which calls before the same reader read them by it.
static void followRepeats(Operation &op, const SegmentMemory &memory, Repeats &repeats) {
  for (Value result : op.getResults()) {
    const std::optional<uint32_t> made = memory.find(result);
    if (!made)
      continue;
    const Repeats::Use &by = repeats.uses[*made];
    const auto read = by.made ? std::optional(std::pair(*by.made, *by.made)) : by.read;
    for (Value operand : op.getOperands())
      if (const auto of = memory.find(operand);
          read && of && of != made && memory.memories[*of].firstRead == memory.memories[*made].firstRead) {
        auto &known = repeats.uses[*of].read;
        known = known ? std::pair(std::min(known->first, read->first), std::max(known->second, read->second))
                      : *read;
      }
  }
}

/// The calls of `func` that `rules` let run again.
static Repeats findRepeats(func::FuncOp func, const SegmentMemory &memory, const RecomputeRules &rules) {
  Repeats repeats{std::vector<uint32_t>(memory.commands().size()),
                  std::vector<Repeats::Use>(memory.memories.size())};
  if (!rules.recomputesCalls())
    return repeats;
  numberCalls(memory, rules, repeats);
  for (Operation &op : llvm::reverse(func.getBody().front().without_terminator()))
    if (isForward(&op) && rules.mayRecompute(&op))
      followRepeats(op, memory, repeats);
  return repeats;
}

SegmentDescription StepDescriptions::describe(func::FuncOp func, Segment &segment,
                                              const RecomputePlan &recompute) {
  auto rules = std::make_unique<RecomputeRules>(makeRules(func, segment, recompute));
  SegmentMemory memory(segment.commands, *rules, symbols);
  if (isForCuda)
    layRowsApart(memory);
  std::vector<double> seconds;
  for (auto [command, called] : llvm::zip_equal(memory.commands(), segment.callSeconds))
    seconds.push_back(called + kernelSeconds(command, memory, costs));
  std::vector<LossPieces> losses = findLossPieces(func, memory);
  std::vector<ForwardChoice> forward = ForwardChoices(memory, *rules, costs).choices;
  Repeats repeats = findRepeats(func, memory, *rules);
  return {func,
          std::move(rules),
          std::move(memory),
          std::move(seconds),
          std::move(losses),
          std::move(forward),
          std::move(repeats)};
}

const StepDescription &StepDescriptions::of(const RecomputePlan &recompute) {
  const bool isOfGroups = recompute.kind == RecomputePlan::Kind::Groups;
  const auto [known, isNew] =
      byStride.try_emplace(isOfGroups ? std::optional(recompute.stride) : std::nullopt);
  StepDescription &described = known->second;
  if (!isNew)
    return described;
  for (auto &[func, segment] : segments) {
    described.segments.push_back(describe(func, segment, recompute));
    if (isOfGroups)
      described.numGroups = std::max<int64_t>(described.numGroups, segment.narrow.size());
  }
  return described;
}
