//===- GatherIssues.cpp - Two ways to issue all gathers ----------------------------===//
#include "GatherIssues.h"
#include "GatherOccupancy.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace ds::analysis::detail {

void sortByIssue(const GatherTimes &times, Loads &loads) {
  auto key = [&](const GatherLoad &load) { return std::tuple(load.issue, times.needOf(load), load.value); };
  std::sort(loads.begin(), loads.end(),
            [&](const GatherLoad &a, const GatherLoad &b) { return key(a) < key(b); });
}

/// Issues loads [begin, end) at `issue` instead, if the bounds allow all of it.
static bool moveGroup(const GatherTimes &times, GatherOccupancy &occupancy, Loads &loads, size_t begin,
                      size_t end, int64_t issue) {
  GatherOccupancy moved = occupancy;
  for (size_t index = begin; index < end; ++index) {
    for (int64_t command = issue; command < loads[index].issue; ++command)
      if (command < times.boundOf(loads[index]) || !moved.allows(command, loads[index]))
        return false;
    moved.addAhead(loads[index], issue, loads[index].issue);
  }
  for (size_t index = begin; index < end; ++index)
    loads[index].issue = issue;
  occupancy = std::move(moved);
  return true;
}

void issueLate(const GatherTimes &times, Loads &loads) {
  GatherOccupancy occupancy(times, loads);
  double groupStart = std::numeric_limits<double>::infinity();
  size_t groupEnd = loads.size();
  for (size_t index = loads.size(); index-- > 0;) {
    GatherLoad &load = loads[index];
    double need = times.startOf(times.needOf(load)),
           seconds = times.valueOf(load).seconds + times.problem.issueSeconds;
    double joined = std::min(need, groupStart + times.problem.issueSeconds) - seconds;
    bool joins = index + 1 < loads.size() && groupStart - joined <= times.problem.issueSeconds;
    int64_t together = std::min(times.commandAt(joined), times.needOf(load));
    if (joins && together >= occupancy.earliestIssue(load) &&
        moveGroup(times, occupancy, loads, index + 1, groupEnd, together)) {
      load.issue = together, groupStart = joined;
    } else {
      double alone = std::min(need, groupStart) - seconds;
      load.issue =
          std::max(occupancy.earliestIssue(load), std::min(times.commandAt(alone), times.needOf(load)));
      groupStart = std::max(alone, times.startOf(load.issue)), groupEnd = index + 1;
    }
    occupancy.addAhead(load, load.issue, times.needOf(load));
  }
}

void issueEarly(const GatherTimes &times, Loads &loads) {
  GatherOccupancy occupancy(times, loads);
  int64_t before = 0;
  for (GatherLoad &load : loads) {
    int64_t need = times.needOf(load);
    load.issue = std::min(need, std::max(before, occupancy.earliestIssue(load)));
    occupancy.addAhead(load, load.issue, need);
    before = load.issue;
  }
}

} // namespace ds::analysis::detail
