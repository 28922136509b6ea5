//===- GatherGaps.cpp - Where a value is kept ----------------------------------------===//
#include "GatherGaps.h"
#include "GatherIssues.h"
#include "GatherOccupancy.h"
#include "Residency/HeldBytes.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ds::analysis::detail {

GatherGaps::GatherGaps(const GatherTimes &times) : times(times) {
  for (uint32_t value = 0; value < times.problem.values.size(); ++value) {
    const std::vector<GatherUse> &uses = times.problem.values[value].uses;
    const GatherStay stay = times.problem.values[value].stay;
    if (uses.empty() || stay == GatherStay::Use)
      continue;
    Gap all{value, 0, uint32_t(uses.size() - 1)};
    if (stay == GatherStay::Step && times.segmentOf(uses.front()) != times.segmentOf(uses.back()) &&
        isAllowed(all))
      gaps.push_back(all);
    for (uint32_t use = 0; use + 1 < uses.size(); ++use)
      if (Gap gap{value, use, use + 1};
          times.segmentOf(uses[use]) == times.segmentOf(uses[use + 1]) && isAllowed(gap))
        gaps.push_back(gap);
  }
}

bool GatherGaps::isForStep(const Gap &gap) const {
  const std::vector<GatherUse> &uses = times.problem.values[gap.value].uses;
  return times.segmentOf(uses[gap.firstUse]) != times.segmentOf(uses[gap.lastUse]);
}

/// Elements of other values that are used between two uses of one.
int64_t GatherGaps::useDistance(uint32_t value, uint32_t use) const {
  const GatherValue &entry = times.problem.values[value];
  int64_t distance = 0, begin = entry.uses[use].end, end = entry.uses[use + 1].begin;
  for (uint32_t other = 0; other < times.problem.values.size(); ++other)
    if (other != value &&
        std::any_of(times.problem.values[other].uses.begin(), times.problem.values[other].uses.end(),
                    [&](const GatherUse &between) { return between.begin < end && between.end > begin; }))
      distance += times.problem.values[other].elements;
  return distance;
}

/// The same from the value's last use in a segment to its first one when the segment runs again.
int64_t GatherGaps::loopDistance(uint32_t value, uint32_t segment) const {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1, distance = 0;
  for (const GatherUse &use : times.problem.values[value].uses)
    if (times.segmentOf(use) == segment)
      first = std::min(first, use.begin), last = std::max(last, use.end);
  for (uint32_t other = 0; other < times.problem.values.size() && last >= 0; ++other)
    if (other != value && std::any_of(times.problem.values[other].uses.begin(),
                                      times.problem.values[other].uses.end(), [&](const GatherUse &between) {
                                        return times.segmentOf(between) == segment &&
                                               (between.begin < first || between.end > last);
                                      }))
      distance += times.problem.values[other].elements;
  return distance;
}

int64_t GatherGaps::reuseDistance(const Gap &gap) const {
  int64_t distance = 0;
  for (uint32_t use = gap.firstUse; use < gap.lastUse; ++use)
    distance = std::max(distance, useDistance(gap.value, use));
  const std::vector<GatherUse> &uses = times.problem.values[gap.value].uses;
  if (times.segmentOf(uses[gap.firstUse]) != times.segmentOf(uses[gap.lastUse]))
    for (uint32_t segment = 0; segment < times.segmentsCount(); ++segment)
      if (times.runsOf(segment) > 1)
        distance = std::max(distance, loopDistance(gap.value, segment));
  return distance;
}

/// The commands over which a value takes memory that is kept over `gap`, but for those over which it takes
/// memory where nothing is kept: from `issues` of its uses to their ends.
std::vector<GatherUse> GatherGaps::heldOver(const Gap &gap, const std::vector<int64_t> &issues) const {
  const std::vector<GatherUse> &uses = times.problem.values[gap.value].uses;
  std::vector<GatherUse> held;
  for (uint32_t use = gap.firstUse; use < gap.lastUse; ++use)
    held.push_back({uses[use].end, issues[use + 1]});
  if (isForStep(gap)) {
    held.push_back({0, issues.front()});
    held.push_back({uses.back().end, int64_t(times.problem.seconds.size())});
  }
  std::erase_if(held, [](const GatherUse &range) { return range.begin >= range.end; });
  return held;
}

std::vector<bool> GatherGaps::keepWhatFits() const {
  Loads loads = makeLoads(std::vector<bool>(gaps.size()));
  issueLate(times, loads);
  std::vector<std::vector<int64_t>> issues(times.problem.values.size());
  for (uint32_t value = 0; value < issues.size(); ++value)
    issues[value].resize(times.problem.values[value].uses.size());
  for (const GatherLoad &load : loads)
    issues[load.value][load.firstUse] = load.issue;
  GatherOccupancy taken(times, loads);
  HeldBytes bytes(taken.bytes()), elements(taken.elements());
  auto fits = [&](const GatherValue &value, const GatherUse &range) {
    return bytes.mostIn(range.begin, range.end) <= times.problem.budgetBytes - value.bytes &&
           elements.mostIn(range.begin, range.end) <= times.problem.maxLiveElements - value.elements;
  };
  std::vector<bool> kept(gaps.size()), isKeptForStep(times.problem.values.size());
  for (size_t gap : orderByWorth()) {
    const GatherValue &value = times.problem.values[gaps[gap].value];
    const std::vector<GatherUse> held = heldOver(gaps[gap], issues[gaps[gap].value]);
    if (isKeptForStep[gaps[gap].value] ||
        !std::all_of(held.begin(), held.end(), [&](const GatherUse &range) { return fits(value, range); }))
      continue;
    for (const GatherUse &range : held)
      bytes.add(range.begin, range.end, value.bytes), elements.add(range.begin, range.end, value.elements);
    kept[gap] = true;
    if (isForStep(gaps[gap]))
      isKeptForStep[gaps[gap].value] = true;
  }
  return kept;
}

/// Time of gathers that keeping a value over `gap` saves in a step.
double GatherGaps::savedSeconds(const Gap &gap) const {
  const GatherValue &value = times.problem.values[gap.value];
  double gathers = 0;
  for (uint32_t use = gap.firstUse; use <= gap.lastUse; ++use)
    gathers += double(times.runsOf(times.segmentOf(value.uses[use])));
  return (gathers - double(times.runsOf(times.segmentOf(value.uses[gap.firstUse])))) * value.seconds;
}

/// The gaps, those first over which a kept byte saves most time.
std::vector<size_t> GatherGaps::orderByWorth() const {
  std::vector<double> worth;
  for (const Gap &gap : gaps)
    worth.push_back(savedSeconds(gap) / double(std::max<int64_t>(times.problem.values[gap.value].bytes, 1)));
  std::vector<size_t> order(gaps.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return worth[a] > worth[b]; });
  return order;
}

Loads GatherGaps::makeLoads(const std::vector<bool> &kept) const {
  Loads loads;
  std::vector<std::vector<bool>> joined(times.problem.values.size()); // with the use before
  for (uint32_t value = 0; value < joined.size(); ++value)
    joined[value].resize(times.problem.values[value].uses.size());
  for (size_t gap = 0; gap < gaps.size(); ++gap)
    for (uint32_t use = gaps[gap].firstUse + 1; kept[gap] && use <= gaps[gap].lastUse; ++use)
      joined[gaps[gap].value][use] = true;
  for (uint32_t value = 0; value < joined.size(); ++value)
    for (uint32_t use = 0; use < joined[value].size(); ++use)
      if (joined[value][use])
        loads.back().lastUse = use;
      else
        loads.push_back({value, use, use, times.problem.values[value].uses[use].begin});
  sortByIssue(times, loads);
  return loads;
}

} // namespace ds::analysis::detail
