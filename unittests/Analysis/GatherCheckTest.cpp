//===- GatherCheckTest.cpp - What the checker of gather schedules finds --------===//
//
// Each fault is named by its words, so that one rule does not stand in for another.
//
//===---------------------------------------------------------------------------===//
#include "GatherInstances.h"

using namespace ds::analysis;

namespace {

TEST(GatherSchedule, CheckerFindsFaultsOfMicroSteps) {
  GatherProblem problem = makeMicroSteps(makeLayers(2, 0.5), {1, 3, 1});
  const GatherSchedule good = solve(problem);
  auto faultOf = [&](const GatherSchedule &schedule) { return check(schedule, problem).value_or(""); };
  problem.values[0].stay = GatherStay::Segment;
  EXPECT_NE(faultOf(good).find("serves more uses than it is to stay for"), std::string::npos);
  problem.values[0].stay = GatherStay::Step;
  GatherSchedule half = good; // first and middle micro-step, but not the last
  half.loads[0].lastUse = 3;
  half.loads.push_back({half.loads[0].value, 4, 5, problem.values[half.loads[0].value].uses[4].begin});
  EXPECT_NE(faultOf(half).find("not all uses"), std::string::npos) << faultOf(half);
  GatherSchedule early = good; // the last micro-step's gather in the middle one
  early.loads[0].lastUse = 1;
  early.loads.push_back({early.loads[0].value, 2, 3, problem.values[early.loads[0].value].uses[2].begin});
  early.loads.push_back({early.loads[0].value, 4, 5, problem.values[early.loads[0].value].uses[4].begin - 1});
  EXPECT_NE(faultOf(early).find("is issued before"), std::string::npos) << faultOf(early);
  GatherSchedule sent = good;
  sent.gatheredBytes *= 5;
  EXPECT_NE(faultOf(sent).find("the gathers move"), std::string::npos);
  problem.liveBytes.back() = 200; // behind the last use of the first value
  problem.values[1].uses.back() = problem.values[0].uses.back();
  problem.budgetBytes = 210;
  problem.maxReuseElements = 9;
  EXPECT_NE(faultOf(good).find("kept over 10 elements"), std::string::npos) << faultOf(good);
}

TEST(GatherSchedule, CheckerCountsWhatStaysForTheStepAllTheTime) {
  GatherProblem problem = makeMicroSteps(makeLayers(2, 0.5), {1, 3, 1});
  const GatherSchedule good = solve(problem);
  problem.liveBytes.assign(problem.liveBytes.size(), 0);
  problem.liveBytes.back() = 100; // behind the second value's last use in the step
  problem.budgetBytes = 119;
  EXPECT_NE(check(good, problem).value_or("").find("bytes live at command 11"), std::string::npos);
  problem.budgetBytes = GatherProblem::kNoLimit;
  problem.maxReuseElements = 10;
  EXPECT_EQ(check(good, problem), std::nullopt);
}

TEST(GatherSchedule, CheckerFindsFaults) {
  GatherProblem problem = makeLayers(3, 0.5);
  const GatherSchedule good = solve(problem);
  auto expectFault = [&](const GatherSchedule &schedule, const std::string &words) {
    const std::string fault = check(schedule, problem).value_or("");
    EXPECT_NE(fault.find(words), std::string::npos) << "expected " << words << ", got " << fault;
  };
  GatherSchedule late = good;
  late.loads.back().issue =
      problem.values[late.loads.back().value].uses[late.loads.back().firstUse].begin + 1;
  expectFault(late, "comes too late");
  GatherSchedule lost = good;
  lost.loads.pop_back();
  expectFault(lost, "lies in 0 gathers");
  GatherSchedule twice = good;
  twice.loads.push_back(twice.loads.back());
  expectFault(twice, "lies in 2 gathers");
  GatherSchedule swapped = good;
  std::swap(swapped.loads.front(), swapped.loads.back());
  expectFault(swapped, "stands after one that is issued later");
  GatherSchedule again = good; // while the first use of the same value is not over
  again.loads.front().lastUse = 0;
  again.loads.insert(again.loads.begin() + 1, {again.loads.front().value, 1, 1, 0});
  expectFault(again, "is issued before command 1");
  problem.values.back().stay = GatherStay::Use;
  expectFault(good, "serves more uses than it is to stay for");
  problem.values.back().stay = GatherStay::Segment;
  GatherSchedule faster = good;
  faster.exposedSeconds -= 0.1;
  expectFault(faster, "compute waits");
}

TEST(GatherSchedule, CheckerHoldsLimits) {
  const GatherProblem problem = makeLayers(3, 0.5);
  const GatherSchedule good = solve(problem);
  auto expectFault = [&](const GatherProblem &bounded, const std::string &words) {
    const std::string fault = check(good, bounded).value_or("");
    EXPECT_NE(fault.find(words), std::string::npos) << "expected " << words << ", got " << fault;
  };
  GatherProblem bounded = problem;
  bounded.budgetBytes = 105;
  expectFault(bounded, "bytes live");
  bounded = problem;
  bounded.maxLiveElements = 15;
  expectFault(bounded, "elements live");
  bounded = problem;
  bounded.prefetchElements = 0;
  expectFault(bounded, "elements are under way");
}

/// Commands of one segment are another function's: nothing is issued there for the next.
TEST(GatherSchedule, CheckerFindsGathersInAnotherSegment) {
  GatherProblem problem;
  problem.seconds = {1, 1};
  problem.liveBytes = {0, 0};
  problem.segments = {{1, 1}, {2, 1}};
  problem.values = {{10, 10, 0.5, 0, {{1, 2}}}};
  GatherSchedule schedule = solve(problem);
  schedule.loads[0].issue = 0;
  EXPECT_NE(check(schedule, problem).value_or("").find("is issued before command 1"), std::string::npos);
}

} // namespace
