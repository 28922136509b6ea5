//===- GatherScheduleTest.cpp - Gathers in time and within bounds ---------------===//
#include "GatherInstances.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

using namespace ds::analysis;

namespace {

/// Looks at all issue positions of loads, valid or not: what is valid the checker says.
class Exhaustive {
public:
  Exhaustive(const GatherProblem &problem, std::vector<GatherLoad> loads)
      : problem(problem), loads(std::move(loads)) {}

  /// The least exposed time of a step.
  int64_t run() {
    place(0);
    return best;
  }

private:
  void place(size_t index) {
    if (index == loads.size())
      return judge();
    const std::vector<GatherUse> &uses = problem.values[loads[index].value].uses;
    int64_t need = uses[loads[index].firstUse].begin, issue = 0;
    for (const GatherSegment &segment : problem.segments)
      if (segment.end <= need)
        issue = segment.end;
    for (; issue <= need; ++issue) {
      loads[index].issue = issue;
      place(index + 1);
    }
  }
  void judge() {
    GatherSchedule schedule{loads, 0, 0, 0};
    auto key = [&](const GatherLoad &load) {
      return std::tuple(load.issue, problem.values[load.value].uses[load.firstUse].begin, load.value);
    };
    std::sort(schedule.loads.begin(), schedule.loads.end(),
              [&](const GatherLoad &a, const GatherLoad &b) { return key(a) < key(b); });
    for (const GatherLoad &load : loads)
      schedule.gatheredBytes += runsAt(load.issue) * problem.values[load.value].bytes;
    schedule.exposedSeconds = exposedSeconds(problem, schedule.loads);
    const int64_t exposed = std::llround(schedule.exposedSeconds * 1e9);
    if (exposed < best && !check(schedule, problem))
      best = exposed;
  }
  int64_t runsAt(int64_t command) const {
    for (const GatherSegment &segment : problem.segments)
      if (command < segment.end)
        return segment.runs;
    return 1;
  }

  const GatherProblem &problem;
  std::vector<GatherLoad> loads;
  int64_t best = INT64_MAX;
};

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

/// A random problem of a few layers, with tight bounds.
GatherProblem makeRandom(std::mt19937 &random, unsigned layers) {
  GatherProblem problem;
  for (unsigned command = 0; command < 2 * layers; ++command) {
    problem.seconds.push_back(double(1 + random() % 4));
    problem.liveBytes.push_back(random() % 10);
  }
  int64_t total = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t size = 1 + random() % 8, back = 2 * layers - 1 - layer;
    problem.values.push_back({size,
                              size,
                              double(random() % 5),
                              0,
                              {{layer, layer + 1}, {back, back + 1}},
                              random() % 4 ? GatherStay::Segment : GatherStay::Use});
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

/// Of `rounds` problems those for which no other issue positions of what is gathered expose less.
template <class Make>
unsigned countBest(unsigned rounds, Make make) {
  std::mt19937 random(11);
  unsigned optimal = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    GatherProblem problem = make(random);
    GatherSchedule schedule = solve(problem);
    const int64_t exposed = Exhaustive(problem, schedule.loads).run();
    EXPECT_GE(std::llround(schedule.exposedSeconds * 1e9), exposed) << "round " << round;
    optimal += std::llround(schedule.exposedSeconds * 1e9) == exposed;
  }
  return optimal;
}

// The issue positions are moved one by one: not always the best.
TEST(GatherSchedule, IssuesAsWellAsAnyPositions) {
  auto make = [](std::mt19937 &random) { return makeRandom(random, 2 + random() % 2); };
  EXPECT_GE(countBest(400, make), 380u);
}

TEST(GatherSchedule, IssuesAsWellAsAnyPositionsOverMicroSteps) {
  auto two = [](std::mt19937 &random) { return makeMicroSteps(makeRandom(random, 2), {1, 1}); };
  EXPECT_GE(countBest(100, two), 95u);
  auto many = [](std::mt19937 &random) { return makeMicroSteps(makeRandom(random, 2), {1, 6, 1}); };
  EXPECT_GE(countBest(20, many), 19u);
}

TEST(GatherSchedule, KeepsOnlyWhatIsToStay) {
  GatherProblem problem = makeMicroSteps(makeLayers(3, 0.25), {1, 6, 1});
  problem.values[0].stay = GatherStay::Use;
  problem.values[1].stay = GatherStay::Segment;
  std::vector<unsigned> gathers(3);
  for (const GatherLoad &load : solve(problem).loads)
    ++gathers[load.value];
  EXPECT_EQ(gathers, (std::vector<unsigned>{6, 3, 1}));
}

/// Of what is to stay for the step the bytes allow that for one value, and of the other to stay for a
/// segment.
TEST(GatherSchedule, TakesBackWhatDoesNotFit) {
  GatherProblem problem = makeMicroSteps(makeLayers(2, 0.25), {1, 6, 1});
  problem.values[1].seconds = 0.5;  // saves more
  problem.values[0].uses.resize(2); // leaves the first micro-step to two values, and the others to one
  problem.values[0].stay = GatherStay::Segment;
  GatherSchedule schedule = solve(problem);
  EXPECT_EQ(schedule.loads.size(), 2u);
  problem.budgetBytes = 115; // of the 120 that both take
  schedule = solve(problem);
  std::vector<unsigned> gathers(2);
  for (const GatherLoad &load : schedule.loads)
    ++gathers[load.value];
  EXPECT_EQ(gathers, (std::vector<unsigned>{2, 3})); // only uses of 1 in one segment follow each other
}

TEST(GatherSchedule, GathersOnceAStepWithoutABudget) {
  GatherSchedule schedule = solve(makeMicroSteps(makeLayers(4, 0.25), {1, 6, 1}));
  EXPECT_EQ(schedule.loads.size(), 4u);
  EXPECT_EQ(schedule.gatheredBytes, 40); // in place of 8 * 40, or twice that
  EXPECT_DOUBLE_EQ(schedule.exposedSeconds, 0.25);
}

TEST(GatherSchedule, CountsWhatStaysForTheStepAllTheTime) {
  GatherProblem problem = makeMicroSteps(makeLayers(4, 2), {1, 6, 1});
  problem.liveBytes[3] = 120; // where the first forward ends
  problem.budgetBytes = 140;  // so two values at most stay
  GatherSchedule schedule = solve(problem);
  std::vector<uint32_t> kept;
  for (const GatherLoad &load : schedule.loads)
    if (load.firstUse + 5 == load.lastUse)
      kept.push_back(load.value);
  EXPECT_LE(kept.size(), 2u);
  EXPECT_GE(kept.size(), 1u);
  EXPECT_LE(schedule.peakBytes, 140);
}

TEST(GatherSchedule, LimitsBindWhatStaysForTheStep) {
  GatherProblem layers = makeLayers(3, 0.5);
  layers.maxReuseElements = 10; // of one other value
  GatherSchedule schedule = solve(makeMicroSteps(layers, {1, 6, 1}));
  // The first layer's has two between forward and backward, the last layer's between backward and forward.
  for (const GatherLoad &load : schedule.loads)
    EXPECT_EQ(load.lastUse - load.firstUse == 5, load.value == 1);
  layers.maxReuseElements = GatherProblem::kNoLimit;
  layers.maxLiveElements = 20;
  schedule = solve(makeMicroSteps(layers, {1, 6, 1}));
  EXPECT_LE(std::count_if(schedule.loads.begin(), schedule.loads.end(),
                          [](const GatherLoad &load) { return load.lastUse - load.firstUse == 5; }),
            1);
}

// A value that many layers use makes gathers that are issued early and needed late.
TEST(GatherSchedule, HoldsWithValuesOfManyUses) {
  std::mt19937 random(7);
  for (unsigned round = 0; round < 1000; ++round) {
    GatherProblem problem = makeRandom(random, 6 + random() % 6);
    int64_t count = problem.seconds.size();
    for (unsigned more = 0; more < 3; ++more) {
      GatherValue value{8, 8, double(random() % 20), 0, {}, GatherStay::Segment};
      for (int64_t command = random() % 4; command < count; command += 2 + random() % 4)
        value.uses.push_back({command, command + 1});
      problem.values.push_back(value);
    }
    solve(problem);
  }
}

TEST(GatherSchedule, KeepsAPartOfManyValues) {
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

/// The reason for the first repeated gather.
Regather firstReason(const GatherProblem &problem) {
  std::vector<Regather> reasons = explainRegathers(problem, solve(problem));
  EXPECT_FALSE(reasons.empty());
  return reasons.empty() ? Regather() : reasons.front();
}

TEST(GatherSchedule, NamesTheLimitThatForbidsToKeep) {
  GatherProblem layers = makeLayers(2, 0.5);
  EXPECT_TRUE(explainRegathers(layers, solve(layers)).empty());
  GatherProblem problem = layers;
  problem.budgetBytes = 110;
  Regather reason = firstReason(problem);
  EXPECT_EQ(reason.limit, GatherLimit::Bytes);
  EXPECT_EQ(reason.wanted, 120); // both values beside the 100 that are live anyway
  EXPECT_TRUE(reason.isForOneSegment);
  problem = layers;
  problem.maxLiveElements = 15;
  EXPECT_EQ(firstReason(problem).limit, GatherLimit::LiveElements);
  EXPECT_EQ(firstReason(problem).wanted, 20);
  problem = layers;
  problem.maxReuseElements = 9;
  EXPECT_EQ(firstReason(problem).limit, GatherLimit::ReuseElements);
  EXPECT_EQ(firstReason(problem).wanted, 10);
  problem = layers;
  problem.values[0].stay = GatherStay::Use;
  EXPECT_EQ(firstReason(problem).limit, GatherLimit::Choice);
  problem = makeMicroSteps(layers, {1, 1});
  problem.liveBytes[4] = 200;
  problem.budgetBytes = 205; // the second micro-step begins with little room
  reason = firstReason(problem);
  EXPECT_EQ(reason.limit, GatherLimit::Bytes);
  EXPECT_FALSE(reason.isForOneSegment);
}

TEST(GatherSchedule, CountsWhatLiesBetweenTwoRunsOfOneMicroStep) {
  GatherProblem problem; // value 0 in each of three micro-steps; in the middle one after value 1, before 2
  problem.seconds.assign(5, 1.0);
  problem.liveBytes.assign(5, 0);
  problem.segments = {{1, 1}, {4, 3}, {5, 1}};
  problem.values = {{10, 10, 0.5, 0, {{0, 1}, {2, 3}, {4, 5}}, GatherStay::Step},
                    {10, 10, 0.5, 0, {{1, 2}}},
                    {10, 10, 0.5, 0, {{3, 4}}}};
  problem.maxReuseElements = 10;
  GatherProblem once = problem;
  once.segments[1].runs = 1;
  GatherSchedule schedule = solve(once);
  EXPECT_EQ(schedule.loads.size(), 3u);
  EXPECT_EQ(solve(problem).loads.size(), 5u);
  schedule.gatheredBytes = 70;
  schedule.exposedSeconds = exposedSeconds(problem, schedule.loads);
  EXPECT_NE(check(schedule, problem).value_or("").find("kept over 20 elements"), std::string::npos);
}

} // namespace
