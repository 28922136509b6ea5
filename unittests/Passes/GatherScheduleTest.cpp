//===- GatherScheduleTest.cpp - Gathers in time and within bounds ---------------===//
#include "ds/Passes/Analysis/GatherSchedule.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

using namespace ds::analysis;

namespace {

/// `layers` layers of one command a second each, forward then backward, one value of 10 bytes and 10 elements
/// each.
GatherProblem makeLayers(unsigned layers, double gatherSeconds) {
  GatherProblem problem;
  problem.seconds.assign(2 * layers, 1.0);
  problem.liveBytes.assign(2 * layers, 100);
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t back = 2 * layers - 1 - layer;
    problem.values.push_back({10, 10, gatherSeconds, 0, {{layer, layer + 1}, {back, back + 1}}});
  }
  return problem;
}

GatherSchedule solve(const GatherProblem &problem) {
  ::ds::Result<GatherSchedule> schedule = scheduleGathers(problem);
  EXPECT_TRUE(bool(schedule));
  EXPECT_EQ(check(*schedule, problem).value_or(""), "");
  return *schedule;
}

/// The least exposed time, and of those the least bytes, of all keep sets and issue positions.
std::pair<int64_t, int64_t> exhaustive(const GatherProblem &problem) {
  std::pair<int64_t, int64_t> best{INT64_MAX, INT64_MAX};
  std::vector<GatherLoad> loads;
  auto judge = [&] {
    GatherSchedule schedule{loads, 0, 0, 0};
    std::sort(schedule.loads.begin(), schedule.loads.end(), [&](const GatherLoad &a, const GatherLoad &b) {
      auto key = [&](const GatherLoad &load) {
        return std::tuple(load.issue, problem.values[load.value].uses[load.firstUse].begin, load.value);
      };
      return key(a) < key(b);
    });
    for (const GatherLoad &load : loads)
      schedule.gatheredBytes += problem.values[load.value].bytes;
    schedule.exposedSeconds = exposedSeconds(problem, schedule.loads);
    if (!check(schedule, problem))
      best = std::min(best, {std::llround(schedule.exposedSeconds * 1e9), schedule.gatheredBytes});
  };
  std::function<void(size_t)> place = [&](size_t index) {
    if (index == loads.size())
      return judge();
    int64_t need = problem.values[loads[index].value].uses[loads[index].firstUse].begin;
    for (int64_t issue = 0; issue <= need; ++issue) {
      loads[index].issue = issue;
      place(index + 1);
    }
  };
  for (unsigned kept = 0; kept < 1u << problem.values.size(); ++kept) {
    loads.clear();
    for (uint32_t value = 0; value < problem.values.size(); ++value) {
      bool keeps = kept >> value & 1;
      loads.push_back({value, 0, keeps ? 1u : 0u, 0});
      if (!keeps)
        loads.push_back({value, 1, 1, 0});
    }
    place(0);
  }
  return best;
}

TEST(GatherSchedule, KeepsEverythingWithoutABudget) {
  GatherSchedule schedule = solve(makeLayers(4, 0.25));
  EXPECT_EQ(schedule.loads.size(), 4u);
  EXPECT_EQ(schedule.gatheredBytes, 40);           // once each: 2P a step in place of 3P
  EXPECT_DOUBLE_EQ(schedule.exposedSeconds, 0.25); // nothing runs before the first layer
}

TEST(GatherSchedule, HidesGathersWithOneValueAhead) {
  GatherProblem problem = makeLayers(4, 0.5);
  problem.budgetBytes = 120; // two of 10 bytes beside the 100 that are live anyway
  GatherSchedule schedule = solve(problem);
  EXPECT_DOUBLE_EQ(schedule.exposedSeconds, 0.5);
  EXPECT_LE(schedule.peakBytes, 120);
}

TEST(GatherSchedule, IssuesNoEarlierThanHidingAsks) {
  GatherProblem problem = makeLayers(4, 0.5);
  problem.maxReuseElements = 0; // nothing but the last layer's value, which no other separates, is kept
  GatherSchedule schedule = solve(problem);
  for (const GatherLoad &load : schedule.loads)
    EXPECT_GE(load.issue, problem.values[load.value].uses[load.firstUse].begin - 1);
  EXPECT_EQ(schedule.gatheredBytes, 70);
}

TEST(GatherSchedule, GathersWhereNeededWhenNothingFits) {
  GatherProblem problem = makeLayers(3, 0.5);
  problem.budgetBytes = 50; // less than what is live anyway
  GatherSchedule schedule = solve(problem);
  for (const GatherLoad &load : schedule.loads)
    EXPECT_EQ(load.issue, problem.values[load.value].uses[load.firstUse].begin);
}

TEST(GatherSchedule, RespectsTheLimitOfLiveElements) {
  GatherProblem problem = makeLayers(6, 0.5);
  problem.maxLiveElements = 30;
  EXPECT_LE(solve(problem).peakBytes, 130);
}

TEST(GatherSchedule, PrefetchesNoMoreThanTheWindow) {
  GatherProblem problem = makeLayers(4, 1.5); // slower than compute: early issue would help
  problem.maxReuseElements = 0;
  double open = solve(problem).exposedSeconds;
  problem.prefetchElements = 10;
  EXPECT_GE(solve(problem).exposedSeconds, open);
  problem.prefetchElements = 0; // nothing ahead of need: all are exposed
  EXPECT_DOUBLE_EQ(solve(problem).exposedSeconds, 7 * 1.5);
}

TEST(GatherSchedule, IssuesSmallGathersTogether) {
  GatherProblem problem;
  problem.seconds.assign(20, 0.01);
  problem.liveBytes.assign(20, 0);
  problem.issueSeconds = 0.05;
  for (int64_t value = 0; value < 4; ++value)
    problem.values.push_back({1, 1, 0.001, 0, {{15 + value, 16 + value}}});
  GatherSchedule schedule = solve(problem);
  EXPECT_EQ(schedule.loads.front().issue, schedule.loads.back().issue);
  EXPECT_DOUBLE_EQ(schedule.exposedSeconds, 0);
}

TEST(GatherSchedule, IsRefusedWhenMalformed) {
  GatherProblem problem = makeLayers(2, 0.5);
  problem.values[0].uses[1].begin = 0;
  EXPECT_FALSE(bool(scheduleGathers(problem)));
  problem = makeLayers(2, 0.5);
  problem.liveBytes.pop_back();
  EXPECT_FALSE(bool(scheduleGathers(problem)));
}

/// A random problem of three values over few commands, with tight bounds.
GatherProblem makeRandom(std::mt19937 &random) {
  GatherProblem problem;
  unsigned layers = 2 + random() % 2;
  for (unsigned command = 0; command < 2 * layers; ++command) {
    problem.seconds.push_back(double(1 + random() % 4));
    problem.liveBytes.push_back(random() % 10);
  }
  int64_t total = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t size = 1 + random() % 8, back = 2 * layers - 1 - layer;
    problem.values.push_back({size, size, double(random() % 5), 0, {{layer, layer + 1}, {back, back + 1}}});
    total += size;
  }
  if (random() % 2)
    problem.budgetBytes = 5 + random() % (total + 5);
  if (random() % 3 == 0)
    problem.prefetchElements = random() % 10;
  if (random() % 3 == 0)
    problem.maxLiveElements = random() % (total + 1);
  return problem;
}

TEST(GatherSchedule, IsTheBestOfAllSchedules) {
  std::mt19937 random(11);
  unsigned optimal = 0, rounds = 400;
  for (unsigned round = 0; round < rounds; ++round) {
    GatherProblem problem = makeRandom(random);
    GatherSchedule schedule = solve(problem);
    auto [exposed, bytes] = exhaustive(problem);
    EXPECT_GE(std::llround(schedule.exposedSeconds * 1e9), exposed) << "round " << round;
    optimal += std::llround(schedule.exposedSeconds * 1e9) == exposed && schedule.gatheredBytes == bytes;
  }
  EXPECT_GE(optimal, rounds * 95 / 100); // the issue positions are moved one by one
}

TEST(GatherSchedule, SearchesManyValues) {
  std::mt19937 random(5);
  GatherProblem problem = makeLayers(24, 0.8);
  for (GatherValue &value : problem.values)
    value.bytes = value.elements = 5 + random() % 20;
  problem.budgetBytes = 220; // about a third of all values
  GatherSchedule schedule = solve(problem);
  GatherProblem withoutReuse = problem;
  withoutReuse.maxReuseElements = 0;
  GatherSchedule regather = solve(withoutReuse);
  EXPECT_LT(schedule.gatheredBytes, regather.gatheredBytes);
  EXPECT_LE(schedule.exposedSeconds, regather.exposedSeconds);
}

TEST(GatherSchedule, CheckerFindsFaults) {
  GatherProblem problem = makeLayers(3, 0.5);
  const GatherSchedule good = solve(problem);
  GatherSchedule late = good;
  late.loads.back().issue =
      problem.values[late.loads.back().value].uses[late.loads.back().firstUse].begin + 1;
  EXPECT_NE(check(late, problem), std::nullopt);
  GatherSchedule lost = good;
  lost.loads.pop_back();
  EXPECT_NE(check(lost, problem), std::nullopt);
  GatherSchedule faster = good;
  faster.exposedSeconds -= 0.1;
  EXPECT_NE(check(faster, problem), std::nullopt);
  problem.budgetBytes = 105;
  EXPECT_NE(check(good, problem), std::nullopt);
}

} // namespace
