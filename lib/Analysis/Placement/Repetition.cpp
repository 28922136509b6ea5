//===- Repetition.cpp - Layers that are placed as those before ----------------------===//
#include "Repetition.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ds::analysis {
namespace {

/// As many stands of one key are compared, the latest first.
constexpr size_t kMostCompared = 4;

bool isAlike(const PlacedValue &a, const PlacedValue &b) {
  return a.bytes == b.bytes && a.gradientBytes == b.gradientBytes && a.mayMove == b.mayMove &&
         a.isGiven == b.isGiven && (!a.isGiven || (a.held == b.held && a.available == b.available));
}

bool isAlike(const PlacedWay &a, const PlacedWay &b) {
  return a.seconds == b.seconds && a.operands == b.operands && a.results == b.results;
}

} // namespace

bool Repetition::isSame(uint32_t a, uint32_t b) const {
  return isAlike(problem.values[a], problem.values[b]);
}

uint64_t Repetition::keyOf(const Stand &stand) const {
  Hash hash;
  for (size_t k = 0; k < stand.live.size(); ++k) {
    hash.add(std::bit_cast<uint64_t>(problem.values[stand.live[k]].bytes));
    hash.add(stand.forms[k]);
  }
  for (const State &state : stand.states)
    hash.add(FrontierHash()(state.frontier));
  return hash.value;
}

/// Whether both have the same states, of which the later ones take so many seconds more, each as many.
bool Repetition::standsAlike(const Stand &a, const Stand &b) const {
  if (a.forms != b.forms || a.states.size() != b.states.size() ||
      !std::equal(a.live.begin(), a.live.end(), b.live.begin(), b.live.end(),
                  [&](uint32_t x, uint32_t y) { return isSame(x, y); }))
    return false;
  constexpr double kRounding = 1e-9;
  const double more = b.states.front().seconds - a.states.front().seconds;
  return std::equal(a.states.begin(), a.states.end(), b.states.begin(), [&](const State &x, const State &y) {
    return x.frontier == y.frontier && std::abs(y.seconds - x.seconds - more) <= kRounding * more;
  });
}

/// Whether the ops from `now` on are those from `before` up to `now`, on other values, and leave what those
/// have left.
bool Repetition::repeats(const Stand &before, const Stand &now, const std::vector<uint32_t> &lastRead,
                         const FormsOf &formsOf) {
  const uint32_t length = now.at - before.at;
  if (now.at + length > problem.ops.size())
    return false;
  twins.clear();
  for (size_t k = 0; k < now.live.size(); ++k)
    twins[before.live[k]] = now.live[k];
  auto isTwin = [&](uint32_t first, uint32_t second) {
    if (!isSame(first, second))
      return false;
    auto twin = twins.find(first);
    return twin == twins.end() ? problem.values[first].isGiven : twin->second == second;
  };
  behind.clear();
  const uint32_t end = now.at + length;
  auto isLeft = [&](uint32_t value) { return lastRead[value] >= end; };
  std::copy_if(now.live.begin(), now.live.end(), std::back_inserter(behind), isLeft);
  for (uint32_t index = before.at; index < now.at; ++index) {
    const PlacedOp &first = problem.ops[index], &second = problem.ops[index + length];
    if (!std::equal(first.operands.begin(), first.operands.end(), second.operands.begin(),
                    second.operands.end(), isTwin) ||
        first.results.size() != second.results.size() ||
        !std::equal(first.ways.begin(), first.ways.end(), second.ways.begin(), second.ways.end(),
                    [](const PlacedWay &a, const PlacedWay &b) { return isAlike(a, b); }))
      return false;
    for (size_t k = 0; k < first.results.size(); ++k) {
      if (!isSame(first.results[k], second.results[k]))
        return false;
      twins[first.results[k]] = second.results[k];
    }
    std::copy_if(second.results.begin(), second.results.end(), std::back_inserter(behind), isLeft);
  }
  if (behind.size() != now.live.size())
    return false;
  for (size_t k = 0; k < behind.size(); ++k) {
    auto twin = twins.find(now.live[k]);
    if (twin == twins.end() || twin->second != behind[k] || formsOf(behind[k], end) != now.forms[k])
      return false;
  }
  return true;
}

std::optional<Repetition::Stand> Repetition::find(Stand now, const std::vector<uint32_t> &lastRead,
                                                  const FormsOf &formsOf) {
  for (uint32_t value : now.live)
    now.forms.push_back(formsOf(value, now.at));
  std::vector<uint32_t> &alike = known[keyOf(now)];
  std::optional<Stand> found;
  for (size_t k = alike.size(); k > 0 && alike.size() - k < kMostCompared && !found; --k)
    if (const Stand &before = stands[alike[k - 1]];
        standsAlike(before, now) && repeats(before, now, lastRead, formsOf))
      found = before;
  alike.push_back(static_cast<uint32_t>(stands.size()));
  stands.push_back(std::move(now));
  return found;
}

} // namespace ds::analysis
