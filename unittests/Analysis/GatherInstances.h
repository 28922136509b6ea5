//===- GatherInstances.h - Small problems of gathers ---------------------------===//
#ifndef DS_UNITTESTS_ANALYSIS_GATHERINSTANCES_H
#define DS_UNITTESTS_ANALYSIS_GATHERINSTANCES_H

#include "ds/Analysis/Gathers/GatherSchedule.h"

#include "gtest/gtest.h"

namespace ds::analysis {

/// `layers` layers of one command a second each, forward then backward, one value of 10 bytes and 10 elements
/// each, which is to stay.
inline GatherProblem makeLayers(unsigned layers, double gatherSeconds) {
  GatherProblem problem;
  problem.seconds.assign(2 * layers, 1.0);
  problem.liveBytes.assign(2 * layers, 100);
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t back = 2 * layers - 1 - layer;
    problem.values.push_back(
        {10, 10, gatherSeconds, 0, {{layer, layer + 1}, {back, back + 1}}, GatherStay::Segment});
  }
  return problem;
}

inline GatherSchedule solve(const GatherProblem &problem) {
  ::ds::Result<GatherSchedule> schedule = scheduleGathers(problem);
  EXPECT_TRUE(bool(schedule));
  EXPECT_EQ(check(*schedule, problem).value_or(""), "");
  return *schedule;
}

/// The same layers in `runs.size()` micro-steps, of which each runs so many times; values are to stay for
/// all.
inline GatherProblem makeMicroSteps(const GatherProblem &layers, const std::vector<int64_t> &runs) {
  GatherProblem problem = layers;
  int64_t count = layers.seconds.size();
  problem.seconds.clear(), problem.liveBytes.clear();
  for (GatherValue &value : problem.values)
    value.uses.clear(), value.stay = GatherStay::Step;
  for (int64_t run : runs) {
    int64_t begin = problem.seconds.size();
    problem.seconds.insert(problem.seconds.end(), layers.seconds.begin(), layers.seconds.end());
    problem.liveBytes.insert(problem.liveBytes.end(), layers.liveBytes.begin(), layers.liveBytes.end());
    problem.segments.push_back({begin + count, run});
    for (size_t value = 0; value < problem.values.size(); ++value)
      for (const GatherUse &use : layers.values[value].uses)
        problem.values[value].uses.push_back({begin + use.begin, begin + use.end});
  }
  return problem;
}

} // namespace ds::analysis

#endif // DS_UNITTESTS_ANALYSIS_GATHERINSTANCES_H
