//===- DescribeResidency.cpp - What was chosen, for reports -------------------------===//
#include "DescribeResidency.h"

#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// As many of the largest values are told of.
static constexpr size_t kMostValues = 10;

/// What a reader knows the result of `op` by: what is converted or seen in another shape, rather than that it
/// is.
static StringRef nameOf(Operation *op) {
  while ((isa<ConvertOp>(op) || formOf(op) == OpForm::View) && op->getOperand(0).getDefiningOp())
    op = op->getOperand(0).getDefiningOp();
  return op->getName().stripDialect();
}

/// How value `index` would be kept; null where nothing can keep it.
static const analysis::ResidencyWay *keptWayOf(const ResidencyModel &model, size_t index) {
  const ResidencyChoice &choice = model.choices[index];
  if (choice.memory && !choice.refused.empty())
    return &choice.refused.front();
  const std::vector<analysis::ResidencyWay> &homes = model.problem.values[index].homes;
  return homes.empty() ? nullptr : &homes.front();
}

/// Whether value `index` could have been kept and is recomputed.
static bool isRecomputed(const ResidencyModel &model, const analysis::ResidencyPlan &plan, size_t index) {
  return plan.ways[index] == analysis::kRecomputed && keptWayOf(model, index);
}

/// Seconds of compute that `way` costs.
static double computeSecondsOf(const analysis::ResidencyWay &way) {
  return way.charges.empty() ? 0 : way.charges.front().seconds;
}

/// Bytes that value `index` would hold if it were kept, and the seconds more that making it again takes.
static std::pair<int64_t, double> priceOf(const ResidencyModel &model, size_t index) {
  const analysis::ResidencyValue &value = model.problem.values[index];
  // What lies between a value and what it is made of would not be kept beside it.
  const analysis::ResidencyWay &way = *keptWayOf(model, index);
  double kept = value.isRead ? computeSecondsOf(way) : 0;
  return {way.holds[0].bytes, computeSecondsOf(*value.recompute) - kept};
}

void mlir::ds::remarkRecompute(const ResidencyModel &model, const analysis::ResidencyPlan &plan) {
  for (size_t index = 0; index < plan.ways.size(); ++index)
    if (isRecomputed(model, plan, index)) {
      auto [bytes, seconds] = priceOf(model, index);
      model.valueOf(index).getDefiningOp()->emitRemark("is recomputed in backward: ")
          << bytes << " bytes are not kept, for " << llvm::formatv("{0:E2}", seconds) << " s a step";
    }
}

/// What is recomputed, by kind of op.
static std::vector<RecomputedKind> describeRecompute(const ResidencyModel &model,
                                                     const analysis::ResidencyPlan &plan) {
  struct Group {
    DenseMap<uint32_t, std::pair<int64_t, int64_t>> ofSegment{}; ///< bytes, values
    double seconds = 0;
  };
  llvm::MapVector<StringRef, Group> groups;
  for (size_t index = 0; index < plan.ways.size(); ++index) {
    if (!isRecomputed(model, plan, index))
      continue;
    Group &group = groups[nameOf(model.valueOf(index).getDefiningOp())];
    auto [bytes, seconds] = priceOf(model, index);
    auto &[savedBytes, values] = group.ofSegment[*model.choices[index].segment];
    group.seconds += seconds;
    if (model.problem.values[index].isRead)
      savedBytes += bytes, ++values;
  }
  std::vector<RecomputedKind> again;
  for (const auto &[what, group] : groups) {
    std::pair<int64_t, int64_t> most;
    for (const auto &[segment, saved] : group.ofSegment)
      most = std::max(most, saved);
    again.push_back({what.str(), most.second, most.first, group.seconds});
  }
  return again;
}

//===----------------------------------------------------------------------===//
// The largest values
//===----------------------------------------------------------------------===//

/// The number of the first way that is not open; others have those below.
static constexpr int32_t kRefused = -3;

/// The ways of value `index` by number, as plans have them.
static SmallVector<int32_t> waysOf(const ResidencyModel &model, size_t index) {
  const analysis::ResidencyValue &value = model.problem.values[index];
  SmallVector<int32_t> ways;
  for (size_t home = 0; home < value.homes.size(); ++home)
    ways.push_back(int32_t(home));
  if (value.recompute)
    ways.push_back(analysis::kRecomputed);
  for (size_t refused = 0; refused < model.choices[index].refused.size(); ++refused)
    ways.push_back(kRefused - int32_t(refused));
  return ways;
}

static const analysis::ResidencyWay &wayOf(const ResidencyModel &model, size_t index, int32_t way) {
  if (way <= kRefused)
    return model.choices[index].refused[kRefused - way];
  const analysis::ResidencyValue &value = model.problem.values[index];
  return way == analysis::kRecomputed ? *value.recompute : value.homes[way];
}

/// Bytes of the device that `way` holds at its most.
static int64_t deviceBytesOf(const analysis::ResidencyWay &way) {
  int64_t bytes = 0;
  for (const analysis::ResidencyHold &hold : way.holds)
    if (hold.space == StepProblem::kDevice && hold.end > hold.begin)
      bytes = std::max(bytes, hold.bytes);
  return bytes;
}

/// Rows of the pieces of losses that `way` of choice `index` is; nothing: they are whole.
static std::optional<int64_t> rowsOf(const ResidencyModel &model, size_t index, int32_t way) {
  const size_t homes = model.problem.values[index].homes.size();
  return model.choices[index].lossRows[way <= kRefused ? homes + size_t(kRefused - way) : size_t(way)];
}

/// What `way` of value `index` is.
static ValueWay describeWay(const ResidencyModel &model, size_t index, int32_t way) {
  const ResidencyChoice &choice = model.choices[index];
  if (choice.isOfLosses()) {
    const std::optional<int64_t> rows = rowsOf(model, index, way);
    return rows ? ValueWay{HadBy::Pieces, *rows} : ValueWay{HadBy::Whole};
  }
  if (way == analysis::kRecomputed || way <= kRefused)
    return {way <= kRefused ? HadBy::Kept : HadBy::Recomputed};
  const analysis::ResidencyWay &home = model.problem.values[index].homes[way];
  if (choice.attention)
    return home.holds.empty() ? ValueWay{HadBy::SinglePrecision}
                              : ValueWay{HadBy::Workspace, deviceBytesOf(home)};
  if (choice.state)
    switch (choice.stays[way]) {
    case Stay::Use:
      return {HadBy::GatherForUse};
    case Stay::Segment:
      return {HadBy::GatherForSegment};
    case Stay::Step:
      return {HadBy::GatherForStep};
    }
  const bool isOnHost =
      llvm::any_of(home.holds, [](const auto &hold) { return hold.space == StepProblem::kHost; });
  return {isOnHost ? HadBy::Host : HadBy::Kept};
}

/// By how much a step's busiest resource takes longer if value `index` is had by `other`.
static double moreSecondsOf(const ResidencyModel &model, const analysis::ResidencyPlan &plan, size_t index,
                            int32_t other) {
  std::vector<double> work = plan.work;
  for (const analysis::ResidencyCharge &charge : wayOf(model, index, plan.ways[index]).charges)
    work[charge.resource] -= charge.seconds;
  for (const analysis::ResidencyCharge &charge : wayOf(model, index, other).charges)
    work[charge.resource] += charge.seconds;
  return *llvm::max_element(work) - plan.seconds;
}

static int64_t bytesOf(const ResidencyModel &model, size_t index) {
  int64_t bytes = 0;
  for (int32_t way : waysOf(model, index))
    bytes = std::max(bytes, deviceBytesOf(wayOf(model, index, way)));
  return bytes;
}

static ResidentValue describeValue(const ResidencyModel &model, const analysis::ResidencyPlan &plan,
                                   size_t index) {
  const int32_t chosen = plan.ways[index];
  const ResidencyChoice &choice = model.choices[index];
  Operation *maker = choice.attention      ? choice.attention
                     : choice.isOfLosses() ? model.getLoss()
                     : choice.state        ? nullptr
                                           : model.valueOf(index).getDefiningOp();
  ResidentValue value;
  value.what = (choice.isOfLosses() ? "logits" : maker ? nameOf(maker) : choice.state.getValue()).str();
  value.layer = maker ? layerOf(maker) : std::string();
  value.bytes = bytesOf(model, index);
  value.way = describeWay(model, index, chosen);
  std::optional<std::pair<double, int32_t>> next;
  for (int32_t way : waysOf(model, index))
    if (way != chosen)
      if (double more = moreSecondsOf(model, plan, index, way); !next || more < next->first)
        next = {more, way};
  if (!next)
    return value;
  auto peakOf = [&](int32_t way) { return model.peakWith(plan, index, wayOf(model, index, way)); };
  value.next =
      NextWay{describeWay(model, index, next->second), next->first, peakOf(next->second) - peakOf(chosen),
              next->second <= kRefused && choice.memory.has_value()};
  return value;
}

/// The largest values that are read and have a choice.
static std::vector<ResidentValue> describeLargest(const ResidencyModel &model,
                                                  const analysis::ResidencyPlan &plan) {
  SmallVector<size_t> order;
  for (size_t index = 0; index < plan.ways.size(); ++index)
    if (model.problem.values[index].isRead && plan.ways[index] != analysis::kNotHad)
      order.push_back(index);
  llvm::stable_sort(order, [&](size_t a, size_t b) { return bytesOf(model, a) > bytesOf(model, b); });
  order.resize(std::min(order.size(), kMostValues));
  std::vector<ResidentValue> largest;
  for (size_t index : order)
    largest.push_back(describeValue(model, plan, index));
  return largest;
}

/// What was chosen of losses, and what each way to make them in pieces saves and costs beside whole ones;
/// none where none offers pieces.
static std::optional<LossResidency> describeLosses(const ResidencyModel &model,
                                                   const analysis::ResidencyPlan &plan) {
  const std::optional<size_t> index = model.findLosses();
  if (!index)
    return std::nullopt;
  const int64_t whole = model.peakWith(plan, *index, wayOf(model, *index, 0));
  const double wholeSeconds = moreSecondsOf(model, plan, *index, 0);
  LossResidency loss;
  loss.rows = rowsOf(model, *index, plan.ways[*index]);
  const SmallVector<int32_t> ways = waysOf(model, *index); // whole losses first
  for (int32_t way : ArrayRef(ways).drop_front()) {
    const int64_t rows = *rowsOf(model, *index, way);
    const double more = moreSecondsOf(model, plan, *index, way) - wholeSeconds;
    loss.pieces.push_back({rows, model.countPieces(rows),
                           whole - model.peakWith(plan, *index, wayOf(model, *index, way)), more});
  }
  return loss;
}

Residency mlir::ds::describeResidency(const ResidencyModel &model, const analysis::ResidencyPlan &plan) {
  Residency residency;
  residency.again = describeRecompute(model, plan);
  residency.largest = describeLargest(model, plan);
  residency.attentionInF32 = model.countSlowAttention(plan);
  for (size_t index = 0; index < plan.ways.size(); ++index)
    if (model.isOnHost(index, plan)) {
      ++residency.hostValues;
      residency.hostBytes += bytesOf(model, index);
    }
  residency.fits = plan.fits;
  residency.expectedBytes = plan.peakBytes[0];
  residency.expectedSeconds = plan.seconds;
  residency.boundSeconds = plan.bound;
  residency.loss = describeLosses(model, plan);
  return residency;
}
