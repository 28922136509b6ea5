//===- StepDescription.cpp - What the segments of a step are, before anything is chosen ----===//
#include "StepDescription.h"

#include "RowsApart.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Machine.h"
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
RecomputeRules StepDescriptions::makeRules(func::FuncOp func, const RecomputePlan &recompute) {
  if (recompute.kind == RecomputePlan::Kind::Cheap)
    return {};
  const RecomputeOptions &demanded = recompute.demanded;
  if (!demanded.ops.empty())
    return RecomputeRules::named(demanded.ops);
  const auto [known, isNew] = narrowValues.try_emplace(func);
  if (isNew)
    known->second = findNarrowValues(func);
  SmallVector<Value> narrow = known->second;
  if (recompute.kind == RecomputePlan::Kind::Groups)
    return RecomputeRules::between(takeEvery(narrow, recompute.stride));
  narrow = findLayerEnds(narrow);
  int64_t stride = std::max<int64_t>(demanded.interval, 1);
  if (demanded.checkpoints > 0)
    stride = llvm::divideCeil(std::max<int64_t>(int64_t(narrow.size()) - 1, 1), demanded.checkpoints);
  return RecomputeRules::demanded(takeEvery(narrow, stride), demanded.layers);
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
      segments.push_back(func);
}

SegmentDescription StepDescriptions::describe(func::FuncOp func, const RecomputePlan &recompute) {
  auto rules = std::make_unique<RecomputeRules>(makeRules(func, recompute));
  SegmentMemory memory(func, open.find(func)->second, *rules, symbols);
  if (isForCuda)
    layRowsApart(memory);
  std::vector<double> seconds;
  for (ArrayRef<Operation *> command : memory.commands)
    seconds.push_back(secondsOf(command, memory, costs));
  std::vector<LossPieces> losses = findLossPieces(func, memory);
  std::vector<ForwardChoice> forward = ForwardChoices(memory, *rules, costs).choices;
  return {
      func, std::move(rules), std::move(memory), std::move(seconds), std::move(losses), std::move(forward)};
}

const StepDescription &StepDescriptions::of(const RecomputePlan &recompute) {
  const bool isOfGroups = recompute.kind == RecomputePlan::Kind::Groups;
  const auto [known, isNew] =
      byStride.try_emplace(isOfGroups ? std::optional(recompute.stride) : std::nullopt);
  StepDescription &described = known->second;
  if (!isNew)
    return described;
  for (func::FuncOp func : segments)
    described.segments.push_back(describe(func, recompute));
  if (isOfGroups)
    for (const auto &[func, narrow] : narrowValues)
      described.numGroups = std::max<int64_t>(described.numGroups, narrow.size());
  return described;
}
