//===- GatherJudge.cpp - How good a list of gathers is -------------------------------===//
#include "GatherJudge.h"
#include "GatherIssues.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ds::analysis::detail {

/// The most bytes that are live at a command.
int64_t GatherJudge::peakOf(const Loads &loads) const {
  size_t count = times.problem.seconds.size();
  std::vector<int64_t> change(count + 1, 0);
  for (const GatherLoad &load : loads) {
    change[times.isCarried(load) ? 0 : load.issue] += times.valueOf(load).bytes;
    change[times.isCarried(load) ? count : times.endOf(load)] -= times.valueOf(load).bytes;
  }
  int64_t gathered = 0, peak = std::numeric_limits<int64_t>::min();
  for (size_t command = 0; command < count; ++command)
    peak = std::max(peak, times.problem.liveBytes[command] + (gathered += change[command]));
  return count == 0 ? 0 : peak;
}

int64_t GatherJudge::exposedNs(const Loads &sorted) const {
  return std::llround(exposedSeconds(times.problem, sorted) * 1e9);
}

Candidate GatherJudge::scored(Loads sorted, int64_t exposedNs) const {
  int64_t sent = 0;
  for (const GatherLoad &load : sorted)
    sent += times.runsOf(load) * times.valueOf(load).bytes;
  int64_t peak = peakOf(sorted);
  return {std::move(sorted), {exposedNs, sent, peak}};
}

Candidate GatherJudge::judge(Loads loads) const {
  sortByIssue(times, loads);
  int64_t exposed = exposedNs(loads);
  return scored(std::move(loads), exposed);
}

std::optional<Candidate> GatherJudge::judgeBelow(Loads loads, const Candidate &known) const {
  sortByIssue(times, loads);
  int64_t exposed = exposedNs(loads);
  if (exposed > std::get<0>(known.score))
    return std::nullopt;
  return scored(std::move(loads), exposed);
}

} // namespace ds::analysis::detail
