//===- RegatherReasons.cpp - Why a value is gathered again ----------------------------===//
#include "GatherGaps.h"
#include "GatherOccupancy.h"

#include <algorithm>
#include <limits>

namespace ds::analysis {

using namespace detail;

/// The bound that keeping what `loads` keep would exceed, and what it would take at most; bytes first.
static std::optional<Regather> exceededBy(const GatherTimes &times, const Loads &loads) {
  int64_t bytes = times.problem.budgetBytes, elements = times.problem.maxLiveElements;
  GatherOccupancy occupancy(times, loads);
  for (const GatherLoad &load : loads) {
    if (load.firstUse == load.lastUse)
      continue;
    const std::vector<GatherUse> &uses = times.valueOf(load).uses;
    bool carried = times.isCarried(load);
    uint32_t use = load.firstUse;
    int64_t end = carried ? int64_t(times.problem.seconds.size()) : uses[load.lastUse].begin;
    for (int64_t command = carried ? 0 : uses[use].end; command < end; ++command) {
      while (use <= load.lastUse && uses[use].end <= command)
        ++use;
      if (use <= load.lastUse && uses[use].begin <= command)
        continue; // needed, so nothing that was chosen
      bytes = std::max(bytes, occupancy.bytes()[command]);
      elements = std::max(elements, occupancy.elements()[command]);
    }
  }
  if (bytes > times.problem.budgetBytes)
    return Regather{0, GatherLimit::Bytes, bytes};
  if (elements > times.problem.maxLiveElements)
    return Regather{0, GatherLimit::LiveElements, elements};
  return std::nullopt;
}

/// `loads` without those of `value`, but for one of uses [first, last].
static Loads joinUses(const Loads &loads, uint32_t value, uint32_t first, uint32_t last) {
  Loads joined;
  GatherLoad whole{value, first, last, std::numeric_limits<int64_t>::max()};
  for (const GatherLoad &load : loads)
    if (load.value == value && load.firstUse >= first && load.lastUse <= last)
      whole.issue = std::min(whole.issue, load.issue);
    else
      joined.push_back(load);
  joined.push_back(whole);
  return joined;
}

std::vector<Regather> explainRegathers(const GatherProblem &problem, const GatherSchedule &schedule) {
  const GatherTimes times(problem);
  const GatherGaps gaps(times);
  const Loads &loads = schedule.loads;
  std::vector<Regather> result;
  for (uint32_t index = 0; index < loads.size(); ++index) {
    const GatherLoad &load = loads[index];
    if (load.firstUse == 0)
      continue;
    const std::vector<GatherUse> &uses = times.valueOf(load).uses;
    bool within = times.segmentOf(uses[load.firstUse - 1]) == times.segmentOf(uses[load.firstUse]);
    uint32_t first = within ? load.firstUse - 1 : 0;
    while (within && first > 0 && times.segmentOf(uses[first - 1]) == times.segmentOf(uses[first]))
      --first;
    Gap gap{load.value, first, within ? load.lastUse : uint32_t(uses.size() - 1)};
    Regather reason;
    if (int64_t distance = gaps.reuseDistance(gap); distance > times.problem.maxReuseElements)
      reason.limit = GatherLimit::ReuseElements, reason.wanted = distance;
    else if (auto exceeded = exceededBy(times, joinUses(loads, gap.value, gap.firstUse, gap.lastUse)))
      reason = *exceeded;
    reason.load = index;
    reason.isForOneSegment = within;
    result.push_back(reason);
  }
  return result;
}

} // namespace ds::analysis
