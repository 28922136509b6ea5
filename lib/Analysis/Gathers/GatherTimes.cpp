//===- GatherTimes.cpp - The commands and segments of a gather problem ------------===//
#include "GatherTimes.h"

#include <algorithm>
#include <numeric>

namespace ds::analysis::detail {

GatherTimes::GatherTimes(const GatherProblem &problem)
    : problem(problem), startSeconds(problem.seconds.size() + 1, 0) {
  std::partial_sum(problem.seconds.begin(), problem.seconds.end(), startSeconds.begin() + 1);
  int64_t begin = 0;
  std::vector<GatherSegment> given = problem.segments;
  if (given.empty())
    given.push_back({commands(), 1});
  for (const GatherSegment &segment : given) {
    begins.push_back(begin);
    runs.push_back(segment.runs);
    segments.resize(segment.end, uint32_t(runs.size() - 1));
    begin = segment.end;
  }
}

int64_t GatherTimes::boundOf(const GatherLoad &load) const {
  const GatherValue &value = valueOf(load);
  int64_t bound = std::max(value.earliest, begins[segmentOf(value.uses[load.firstUse])]);
  return load.firstUse == 0 ? bound : std::max(bound, value.uses[load.firstUse - 1].end);
}

int64_t GatherTimes::commandAt(double seconds) const {
  auto after = std::upper_bound(startSeconds.begin(), startSeconds.end(), seconds);
  return std::max<int64_t>(0, after - startSeconds.begin() - 1);
}

} // namespace ds::analysis::detail
