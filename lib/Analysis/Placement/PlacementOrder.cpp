//===- PlacementOrder.cpp - An order of ops in which few values are held ------------===//
#include "ds/Analysis/Placement/PlacementOrder.h"

#include <algorithm>
#include <cstddef>

namespace ds::analysis {
namespace {

constexpr uint32_t kGiven = ~uint32_t(0);
/// Of a chain of ops that reads given values alone so many wait until something else needs their results.
constexpr uint32_t kMostWaiting = 3;

/// Whether operand `k` is the first that is its value.
bool isFirst(const PlacedOp &op, size_t k) {
  const auto here = op.operands.begin() + static_cast<std::ptrdiff_t>(k);
  return std::find(op.operands.begin(), here, *here) == here;
}

class Ordering {
public:
  explicit Ordering(const PlacementProblem &problem);
  std::vector<uint32_t> run();

private:
  void setWaiting(uint32_t index);
  bool isThere(uint32_t value) const;
  bool isReady(const PlacedOp &op) const;
  bool isGain(const PlacedOp &op) const;
  void emitWithSources(uint32_t index);
  void emit(uint32_t index);
  void emitGains(size_t begin);

  const PlacementProblem &problem;
  std::vector<uint32_t> makers;               ///< by value: its op, or kGiven
  std::vector<std::vector<uint32_t>> readers; ///< by value: ops that read it, each once, in order
  std::vector<uint32_t> left;                 ///< by value: readers that have not run
  std::vector<uint32_t> waiting; ///< by op: its number in a chain of such that wait, from 1; or 0
  std::vector<bool> hasRun;      ///< by op
  std::vector<uint32_t> order;
};

Ordering::Ordering(const PlacementProblem &problem)
    : problem(problem), makers(problem.values.size(), kGiven), readers(problem.values.size()),
      left(problem.values.size(), 0), waiting(problem.ops.size(), 0), hasRun(problem.ops.size(), false) {
  for (uint32_t index = 0; index < problem.ops.size(); ++index) {
    for (uint32_t value : problem.ops[index].results)
      makers[value] = index;
    for (uint32_t value : problem.ops[index].operands)
      if (readers[value].empty() || readers[value].back() != index)
        readers[value].push_back(index);
  }
  for (size_t value = 0; value < problem.values.size(); ++value)
    left[value] = static_cast<uint32_t>(readers[value].size());
  for (uint32_t index = 0; index < problem.ops.size(); ++index)
    setWaiting(index);
}

void Ordering::setWaiting(uint32_t index) {
  const PlacedOp &op = problem.ops[index];
  uint32_t behind = 0;
  for (uint32_t value : op.operands)
    if (makers[value] != kGiven) {
      if (waiting[makers[value]] == 0)
        return;
      behind = std::max(behind, waiting[makers[value]]);
    }
  const bool isRead = std::any_of(op.results.begin(), op.results.end(),
                                  [&](uint32_t value) { return !readers[value].empty(); });
  if (isRead && behind < kMostWaiting)
    waiting[index] = behind + 1;
}

bool Ordering::isThere(uint32_t value) const { return makers[value] == kGiven || hasRun[makers[value]]; }

/// Whether `op` could run now, with what waits for it.
bool Ordering::isReady(const PlacedOp &op) const {
  return std::all_of(op.operands.begin(), op.operands.end(),
                     [&](uint32_t value) { return isThere(value) || waiting[makers[value]] > 0; });
}

/// Whether fewer values are held behind `op` than before it, or as many.
bool Ordering::isGain(const PlacedOp &op) const {
  int change = 0;
  for (uint32_t value : op.results)
    change += !readers[value].empty();
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const uint32_t value = op.operands[k];
    if (!isFirst(op, k) || makers[value] == kGiven)
      continue;
    change += isThere(value) ? (left[value] == 1 ? -1 : 0) : (left[value] == 1 ? 0 : 1);
  }
  return change <= 0;
}

void Ordering::emit(uint32_t index) {
  hasRun[index] = true;
  order.push_back(index);
  const PlacedOp &op = problem.ops[index];
  for (size_t k = 0; k < op.operands.size(); ++k)
    if (isFirst(op, k))
      --left[op.operands[k]];
}

/// Runs what has waited for this op, and it.
void Ordering::emitWithSources(uint32_t index) {
  for (uint32_t value : problem.ops[index].operands)
    if (makers[value] != kGiven && !hasRun[makers[value]])
      emitWithSources(makers[value]);
  emit(index);
}

/// Runs what can run at no cost behind those that have run from `begin` on, these among them.
void Ordering::emitGains(size_t begin) {
  for (size_t at = begin; at < order.size(); ++at) {
    const PlacedOp &op = problem.ops[order[at]];
    auto look = [&](uint32_t value) {
      for (uint32_t reader : readers[value])
        if (!hasRun[reader] && isReady(problem.ops[reader]) && isGain(problem.ops[reader]))
          emitWithSources(reader);
    };
    for (uint32_t value : op.results)
      look(value);
    for (uint32_t value : op.operands)
      if (makers[value] != kGiven && left[value] == 1)
        look(value);
  }
}

std::vector<uint32_t> Ordering::run() {
  order.reserve(problem.ops.size());
  for (uint32_t index = 0; index < problem.ops.size(); ++index)
    if (!hasRun[index] && waiting[index] == 0) {
      const size_t before = order.size();
      emitWithSources(index);
      emitGains(before);
    }
  for (uint32_t index = 0; index < problem.ops.size(); ++index)
    if (!hasRun[index])
      emitWithSources(index);
  return std::move(order);
}

} // namespace

std::vector<uint32_t> orderOps(const PlacementProblem &problem) { return Ordering(problem).run(); }

} // namespace ds::analysis
