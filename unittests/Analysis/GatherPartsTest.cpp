//===- GatherPartsTest.cpp - The parts of the search for gathers, one by one ---------===//
#include "Gathers/GatherGaps.h"
#include "Gathers/GatherIssues.h"
#include "Gathers/GatherJudge.h"
#include "Gathers/GatherOccupancy.h"

#include <gtest/gtest.h>

using namespace ds::analysis;
using namespace ds::analysis::detail;

namespace {

/// Commands of 1, 1 | 2 s, of which the first two run four times; a value that is read by all three.
GatherProblem makeSegments() {
  GatherProblem problem;
  problem.seconds = {1, 1, 2};
  problem.liveBytes = {100, 100, 100};
  problem.segments = {{2, 4}, {3, 1}};
  problem.values = {{10, 10, 2, 0, {{0, 1}, {1, 2}, {2, 3}}, GatherStay::Segment}};
  return problem;
}

TEST(GatherTimes, KnowsSegmentsAndStarts) {
  const GatherProblem problem = makeSegments();
  const GatherTimes times(problem);
  const GatherLoad second{0, 1, 1, 1}, third{0, 2, 2, 2}, both{0, 1, 2, 1};
  EXPECT_EQ(times.startOf(2), 2);
  EXPECT_EQ(times.commandAt(1.5), 1);
  EXPECT_EQ(times.commandAt(-1), 0);
  EXPECT_EQ(times.runsOf(second), 4);
  EXPECT_EQ(times.runsOf(third), 1);
  EXPECT_EQ(times.boundOf(second), 1); // its value's use before ends there
  EXPECT_EQ(times.boundOf(third), 2);  // nor before its segment
  EXPECT_FALSE(times.isCarried(second));
  EXPECT_TRUE(times.isCarried(both));
}

/// Two values of 10 bytes, beside 100 that are live anyway, that commands 2 and 3 of four read.
GatherProblem makePair(double seconds) {
  GatherProblem problem;
  problem.seconds = {3, 3, 3, 1};
  problem.liveBytes = {100, 100, 100, 100};
  problem.values = {{10, 10, seconds, 0, {{2, 3}}, GatherStay::Use},
                    {10, 10, 1, 0, {{3, 4}}, GatherStay::Use}};
  return problem;
}

TEST(GatherOccupancy, AllowsWhatTheBudgetHasRoomFor) {
  GatherProblem problem = makePair(3);
  problem.budgetBytes = 110;
  const GatherTimes times(problem);
  const Loads loads = {{0, 0, 0, 2}, {1, 0, 0, 3}};
  GatherOccupancy occupancy(times, loads);
  EXPECT_EQ(occupancy.bytes(), (std::vector<int64_t>{100, 100, 110, 110}));
  EXPECT_FALSE(occupancy.allows(2, loads[1])); // beside the first, which is in use
  EXPECT_EQ(occupancy.earliestIssue(loads[1]), 3);
  EXPECT_EQ(occupancy.earliestIssue(loads[0]), 0);
  occupancy.addAhead(loads[0], 0, 2);
  EXPECT_EQ(occupancy.bytes(), (std::vector<int64_t>{110, 110, 110, 110}));
}

TEST(GatherIssues, AreAsLateAsHidingAllowsOrAsEarlyAsRoomDoes) {
  const GatherProblem problem = makePair(3);
  const GatherTimes times(problem);
  Loads late = {{0, 0, 0, 2}, {1, 0, 0, 3}}, early = late;
  issueLate(times, late);
  EXPECT_EQ(late[1].issue, 2); // needed at 9 s, takes 1: the last command that starts by 8 s does at 6
  EXPECT_EQ(late[0].issue, 1); // needed at 6 s, takes 3
  issueEarly(times, early);
  EXPECT_EQ(early[0].issue, 0);
  EXPECT_EQ(early[1].issue, 0);
}

TEST(GatherJudge, PutsExposedTimeFirst) {
  const GatherProblem problem = makePair(3);
  const GatherTimes times(problem);
  const GatherJudge judge(times);
  const Candidate hidden = judge.judge({{0, 0, 0, 1}, {1, 0, 0, 2}});
  EXPECT_EQ(hidden.score, Score(0, 20, 120));
  const Candidate waited = judge.judge({{0, 0, 0, 2}, {1, 0, 0, 3}}); // 3 s for the first, 1 for the second
  EXPECT_EQ(waited.score, Score(4'000'000'000, 20, 110));
  EXPECT_LT(hidden.score, waited.score);
  EXPECT_FALSE(judge.judgeBelow(waited.loads, hidden));
  EXPECT_TRUE(judge.judgeBelow(hidden.loads, waited));
}

TEST(GatherGaps, KeepsWhatHasRoom) {
  GatherProblem problem = makeSegments();
  const GatherTimes times(problem);
  const GatherGaps gaps(times);
  EXPECT_EQ(gaps.keepWhatFits(), std::vector<bool>{true}); // between the two uses of the first segment
  EXPECT_EQ(gaps.makeLoads({true}).size(), 2u);
  EXPECT_EQ(gaps.makeLoads({false}).size(), 3u);
  EXPECT_EQ(gaps.reuseDistance({0, 0, 1}), 0); // no other value in between
}

} // namespace
