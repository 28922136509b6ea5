//===- ResidencyTest.cpp - One choice among keep, bring back, recompute and pieces ==//
#include "Residency/ResidencySolver.h"
#include "ResidencyOracle.h"

#include "gtest/gtest.h"

#include <random>

using namespace ds::analysis;

namespace {

ResidencyPlan solve(const ResidencyProblem &problem) {
  ds::Result<ResidencyPlan> plan = solveResidency(problem);
  EXPECT_TRUE(bool(plan)) << (plan ? "" : plan.error().message);
  EXPECT_EQ(check(*plan, problem).value_or(""), "");
  return *plan;
}

/// The best of all choices: seconds of the busiest resource, or none where nothing fits.
class Exhaustive {
public:
  explicit Exhaustive(const ResidencyProblem &problem) : problem(problem), ways(problem.values.size()) {}
  std::optional<double> run() {
    visit(0);
    return best;
  }

private:
  void visit(size_t value) {
    if (value == ways.size())
      return judge();
    const ResidencyValue &entry = problem.values[value];
    for (int32_t way = kRecomputed; way < int32_t(entry.homes.size()); ++way) {
      bool isHad = way != kNotHad;
      if ((!isHad && entry.isRead) || (way == kRecomputed && !entry.recompute))
        continue;
      bool canBe = true;
      for (uint32_t operand : entry.operands)
        canBe &= way != kRecomputed || ways[operand] != kNotHad;
      ways[value] = way;
      if (canBe)
        visit(value + 1);
    }
  }

  void judge() {
    std::vector<double> work = problem.resources;
    std::vector<std::vector<int64_t>> bytes;
    for (const ResidencySpace &space : problem.spaces)
      bytes.push_back(space.liveBytes);
    for (size_t value = 0; value < ways.size(); ++value) {
      if (ways[value] == kNotHad)
        continue;
      const ResidencyValue &entry = problem.values[value];
      const ResidencyWay &way = ways[value] == kRecomputed ? *entry.recompute : entry.homes[ways[value]];
      for (const ResidencyCharge &charge : way.charges)
        work[charge.resource] += charge.seconds;
      for (const ResidencyHold &hold : way.holds)
        for (uint32_t moment = hold.begin; moment < hold.end; ++moment)
          if ((bytes[hold.space][moment] += hold.bytes) > problem.spaces[hold.space].budget)
            return;
    }
    double seconds = *std::max_element(work.begin(), work.end());
    if (!best || seconds < *best)
      best = seconds;
  }

  const ResidencyProblem &problem;
  std::vector<int32_t> ways;
  std::optional<double> best;
};

/// Values of a forward that backward reads in reverse, some made of others, with a pool of bytes and a link.
ResidencyProblem makeRandom(std::mt19937 &random) {
  ResidencyProblem problem;
  uint32_t moments = 6 + random() % 6, count = 3 + random() % 6;
  problem.spaces.push_back({int64_t(15 + random() % 40), {}});
  for (uint32_t moment = 0; moment < moments; ++moment)
    problem.spaces[0].liveBytes.push_back(random() % 10);
  problem.resources = {double(5 + random() % 10), double(random() % 15)};
  for (uint32_t index = 0; index < count; ++index) {
    ResidencyValue value;
    uint32_t begin = random() % (moments / 2), end = moments - random() % (moments / 2);
    int64_t bytes = 1 + random() % 12;
    value.isRead = random() % 4 != 0;
    value.homes.push_back({{{0, bytes, begin, end}}, {}});
    if (random() % 3 == 0)
      value.homes.push_back({{{0, bytes, end - 1, end}}, {{1, double(1 + random() % 6)}}});
    if (random() % 3 == 0)
      value.homes.push_back({{{0, bytes / 2, begin, end}}, {{0, double(1 + random() % 4) / 2}}});
    for (uint32_t operand = 0; operand < index && value.operands.size() < 2; ++operand)
      if (random() % 4 == 0)
        value.operands.push_back(operand);
    if (!value.operands.empty())
      value.recompute = ResidencyWay{{{0, int64_t(random() % 2), end - 1, end}}, {{0, double(random() % 5)}}};
    problem.values.push_back(value);
  }
  return problem;
}

TEST(Residency, IsNearTheBestOfAllChoices) {
  std::mt19937 random(5);
  int fitting = 0, exact = 0;
  double sum = 0, most = 0, stated = 0;
  for (int round = 0; round < 600; ++round) {
    ResidencyProblem problem = makeRandom(random);
    std::optional<double> best = Exhaustive(problem).run();
    const ResidencyBest byBounds = findBestResidency(problem, std::nullopt, 0);
    EXPECT_EQ(byBounds.seconds.has_value(), best.has_value()) << "round " << round;
    EXPECT_NEAR(byBounds.seconds.value_or(0), best.value_or(0), 1e-9) << "round " << round;
    ResidencyPlan plan = solve(problem);
    EXPECT_EQ(plan.fits, best.has_value()) << "round " << round;
    if (!best || !plan.fits)
      continue;
    EXPECT_GE(plan.seconds, *best - 1e-9) << "round " << round;
    EXPECT_LE(plan.bound, *best + 1e-9) << "round " << round;
    double distance = (plan.seconds - *best) / *best;
    ++fitting, exact += distance < 1e-9;
    sum += distance, most = std::max(most, distance), stated += plan.distance();
  }
  std::printf(
      "of %d that fit %d are the best; slower by %.2f %% in the mean, %.1f %% at most; stated %.2f %%\n",
      fitting, exact, 100 * sum / fitting, 100 * most, 100 * stated / fitting);
  EXPECT_GT(fitting, 300);
  EXPECT_GE(exact, fitting * 99 / 100);
  EXPECT_LE(sum, fitting * 0.01);
  EXPECT_LE(most, 0.03);
}

/// The example of the header.
ResidencyProblem makeExample() {
  ResidencyProblem problem;
  problem.spaces.push_back({10, {4, 4, 4}});
  problem.resources = {10, 9};
  auto keep = [](int64_t bytes) { return ResidencyWay{{{0, bytes, 0, 3}}, {}}; };
  problem.values.push_back({true, {keep(4)}, std::nullopt, {}});
  problem.values.push_back({true, {keep(4)}, ResidencyWay{{}, {{0, 1.0}}}, {0}});
  problem.values.push_back({true, {keep(3), ResidencyWay{{}, {{1, 2.0}}}}, std::nullopt, {}});
  return problem;
}

TEST(Residency, OverlapsWhatItGivesUp) {
  ResidencyPlan plan = solve(makeExample());
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.ways, (std::vector<int32_t>{0, kRecomputed, 1}));
  EXPECT_DOUBLE_EQ(plan.seconds, 11);
}

// With 8 bytes free all of the forward is kept, and the parameter, whose gather now takes 4 s, finds no room.
// One choice makes g again for a second.
TEST(Residency, TwoDecisionsInTurnSeeLessThanOne) {
  ResidencyProblem problem = makeExample();
  problem.spaces[0].budget = 12;
  problem.values.back().homes.back().charges = {{1, 4}};
  const std::vector<bool> isLater = {false, false, true};
  ds::Result<ResidencyPlan> inTurn = solveInTurn(problem, isLater);
  ASSERT_TRUE(bool(inTurn)) << inTurn.error().message;
  EXPECT_EQ(check(*inTurn, problem).value_or(""), "");
  EXPECT_EQ(inTurn->ways, (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(inTurn->seconds, 13);
  EXPECT_EQ(solve(problem).seconds, 11);
}

TEST(Residency, TwoDecisionsInTurnAreNeverBetter) {
  std::mt19937 random(7);
  int compared = 0;
  for (int round = 0; round < 200; ++round) {
    ResidencyProblem problem = makeRandom(random);
    std::vector<bool> isLater;
    for (const ResidencyValue &value : problem.values)
      isLater.push_back(value.homes.size() > 1 && value.isRead);
    ds::Result<ResidencyPlan> inTurn = solveInTurn(problem, isLater);
    ASSERT_TRUE(bool(inTurn)) << inTurn.error().message;
    EXPECT_EQ(check(*inTurn, problem).value_or(""), "") << "round " << round;
    std::optional<double> best = Exhaustive(problem).run();
    if (!inTurn->fits)
      continue;
    ASSERT_TRUE(best) << "round " << round;
    EXPECT_GE(inTurn->seconds, *best - 1e-9) << "round " << round;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST(Residency, GivesUpNothingWhereMemoryIsFree) {
  ResidencyProblem problem = makeExample();
  problem.spaces[0].budget = 15; // 4 + 4 + 4 + 3
  ResidencyPlan plan = solve(problem);
  EXPECT_EQ(plan.ways, (std::vector<int32_t>{0, 0, 0}));
  EXPECT_LE(plan.distance(), 0.001);
}

TEST(Residency, HoldsAsLittleAsItCanWhereNothingFits) {
  ResidencyProblem problem = makeExample();
  problem.spaces[0].budget = 5;
  ResidencyPlan plan = solve(problem);
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.peakBytes[0], 8); // 4 and h
}

/// The moment that is too full holds nothing by choice. Still as little is held as can be, as bytes count.
TEST(Residency, HoldsLittleWhereNoChoiceHelps) {
  ResidencyProblem problem;
  problem.spaces.push_back({5, {0, 0, 9}});
  problem.resources = {1};
  problem.values.push_back({false, {{{{0, 2, 0, 2}}, {}}}, std::nullopt, {}});
  problem.values.push_back({false, {{{{0, 1, 0, 2}}, {}}}, std::nullopt, {}});
  problem.values.push_back({true, {{{{0, 4, 0, 2}}, {}}}, ResidencyWay{{}, {{0, 0.5}}}, {0, 1}});
  ResidencyPlan plan = solve(problem);
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.ways, (std::vector<int32_t>{0, 0, kRecomputed})); // 3 bytes in place of 4
}

/// Of layers that are all alike, as many are kept as fit: one price alone would keep all or none.
TEST(Residency, FillsWhatPricesLeave) {
  ResidencyProblem problem;
  problem.spaces.push_back({75, std::vector<int64_t>(20, 0)});
  problem.resources = {1};
  for (uint32_t layer = 0; layer < 10; ++layer) {
    problem.values.push_back({true, {{{{0, 5, layer, 20 - layer}}, {}}}, std::nullopt, {}});
    problem.values.push_back(
        {true, {{{{0, 10, layer, 20 - layer}}, {}}}, ResidencyWay{{}, {{0, 0.1}}}, {2 * layer}});
  }
  ResidencyPlan plan = solve(problem);
  // 50 bytes are kept whatever is chosen; two more values of 10 bytes fit.
  EXPECT_NEAR(plan.seconds, 1.8, 1e-9);
  EXPECT_EQ(plan.peakBytes[0], 70);
}

TEST(Residency, MakesThousandsOfChoices) {
  ResidencyProblem problem;
  const uint32_t layers = 1000, moments = 2 * layers;
  problem.spaces.push_back({5000, std::vector<int64_t>(moments, 100)});
  problem.resources = {100, 90};
  for (uint32_t layer = 0; layer < layers; ++layer) {
    uint32_t end = moments - layer, base = 3 * layer;
    problem.values.push_back({true, {{{{0, 2, layer, end}}, {}}}, std::nullopt, {}});
    problem.values.push_back({true, {{{{0, 4, layer, end}}, {}}}, ResidencyWay{{}, {{0, 0.01}}}, {base}});
    problem.values.push_back({true, {{{{0, 3, layer, end}}, {}}, {{}, {{1, 0.03}}}}, std::nullopt, {}});
  }
  ResidencyPlan plan = solve(problem);
  EXPECT_TRUE(plan.fits);
  EXPECT_LE(plan.distance(), 0.001) << plan.seconds << " against " << plan.bound;
}

/// A chain in which each value may be recomputed from the one before: were all one part, each round of the
/// search would take a time that grows with its square.
/// A loss of 32 bytes at moments 1 and 2, or in pieces of half and of a quarter that cost more, beside 6
/// bytes of a value that can be recomputed, for `seconds`, and 4 bytes of all else.
ResidencyProblem makeLoss(int64_t budget, double seconds) {
  ResidencyProblem problem;
  problem.spaces.push_back({budget, {4, 4, 4, 4}});
  problem.resources = {10};
  auto pieces = [](int64_t bytes, double more) { return ResidencyWay{{{0, bytes, 1, 3}}, {{0, more}}}; };
  problem.values.push_back({true, {{{{0, 6, 0, 4}}, {}}}, ResidencyWay{{}, {{0, seconds}}}, {}});
  problem.values.push_back({true, {pieces(32, 0), pieces(16, 0.3), pieces(8, 0.9)}, std::nullopt, {}});
  return problem;
}

TEST(Residency, MakesALossInTheFewestPieces) {
  using Ways = std::vector<int32_t>;
  EXPECT_EQ(solve(makeLoss(42, 0.5)).ways, Ways({0, 0})); // all of it fits
  EXPECT_EQ(solve(makeLoss(41, 0.5)).ways, Ways({0, 1}));
  EXPECT_EQ(solve(makeLoss(26, 0.5)).ways, Ways({0, 1}));
  EXPECT_EQ(solve(makeLoss(20, 0.5)).ways, Ways({kRecomputed, 1})); // 0.8 s, where quarters take 0.9
  EXPECT_EQ(solve(makeLoss(19, 0.5)).ways, Ways({0, 2}));
  EXPECT_EQ(solve(makeLoss(12, 0.5)).ways, Ways({kRecomputed, 2}));
}

TEST(Residency, LeavesALossWholeWhereAnotherIsCheaperToGiveUp) {
  using Ways = std::vector<int32_t>;
  EXPECT_EQ(solve(makeLoss(41, 0.2)).ways, Ways({kRecomputed, 0}));
  EXPECT_EQ(solve(makeLoss(35, 0.2)).ways, Ways({0, 1})); // without it 36 bytes are still too many
}

TEST(Residency, TiesNothingToWhatIsReadAnyway) {
  ResidencyProblem problem;
  problem.spaces.push_back({100, std::vector<int64_t>(20, 0)});
  problem.resources = {1};
  for (uint32_t index = 0; index < 10; ++index) {
    problem.values.push_back({true, {{{{0, 5, index, 20 - index}}, {}}}, std::nullopt, {}});
    if (index > 0)
      problem.values.back().recompute = ResidencyWay{{}, {{0, 0.1}}},
      problem.values.back().operands = {index - 1};
  }
  EXPECT_EQ(detail::ResidencyParts(problem).parts.size(), 10u);
  problem.values[4].isRead =
      false; // now 5 ties it to itself, and it is tied to no other that could be missing
  EXPECT_EQ(detail::ResidencyParts(problem).parts.size(), 9u);
}

TEST(Residency, RefusesWhatCannotBeHad) {
  ResidencyProblem problem = makeExample();
  problem.values.push_back({true, {}, std::nullopt, {}});
  EXPECT_EQ(solveResidency(problem).error().message, "value 3 is read, but cannot be had");
  problem = makeExample();
  problem.values[0].operands = {1};
  EXPECT_EQ(solveResidency(problem).error().message, "value 0 expects operands before it, but got value 1");
  problem = makeExample();
  problem.values[2].homes[0].holds[0].end = 4;
  EXPECT_EQ(solveResidency(problem).error().message,
            "value 2 holds 3 bytes in moments [0, 4) of space 0, which are out of range");
}

TEST(ResidencyCheck, FindsWhatIsWrong) {
  const ResidencyProblem problem = makeExample();
  const ResidencyPlan good = solve(problem);
  auto fault = [&](auto change) {
    ResidencyPlan plan = good;
    change(plan);
    return check(plan, problem).value_or("");
  };
  EXPECT_EQ(fault([](ResidencyPlan &plan) { plan.ways[0] = kNotHad; }), "value 0 is read, but not had");
  EXPECT_EQ(fault([](ResidencyPlan &plan) { plan.ways[0] = kRecomputed; }), "value 0 has no way -2");
  EXPECT_EQ(fault([](ResidencyPlan &plan) { plan.ways[2] = 2; }), "value 2 has no way 2");
  EXPECT_EQ(fault([](ResidencyPlan &plan) { plan.ways.pop_back(); }), "expects ways of 3 values, but got 2");
  EXPECT_EQ(fault([](ResidencyPlan &plan) { plan.peakBytes[0] = 7; }),
            "space 0 holds 8 bytes, but the plan says 7");
  EXPECT_EQ(fault([](ResidencyPlan &plan) { plan.fits = false; }), "the plan fits, but says otherwise");
  EXPECT_EQ(fault([](ResidencyPlan &plan) { plan.work[1] = 9; }),
            "resource 1 works 11.000000 s, but the plan says 9.000000");
  EXPECT_EQ(fault([](ResidencyPlan &plan) { plan.seconds = 10; }),
            "the busiest resource works 11.000000 s, but the plan says 10.000000");
  EXPECT_EQ(fault([](ResidencyPlan &plan) { plan.bound = 12; }),
            "the plan takes 11.000000 s, less than its bound of 12.000000");
  ResidencyProblem other = problem;
  other.values[0].isRead = false;
  ResidencyPlan without = good;
  without.ways[0] = kNotHad;
  EXPECT_EQ(check(without, other), "value 1 is recomputed from value 0, which is not had");
}

TEST(Residency, RecomputesWhatHasNoHomeHoweverMuchItsOperandsHold) {
  // Nothing fits, so that bytes have the highest price: each of eight operands weighs as much as can be
  // counted.
  constexpr int64_t kLarge = int64_t(1) << 50;
  constexpr uint32_t kOperands = 8, kMoments = 512;
  ResidencyProblem problem;
  problem.resources = {1e4};
  problem.spaces.push_back({1, std::vector<int64_t>(kMoments, 0)});
  ResidencyValue made;
  made.isRead = true;
  made.recompute = ResidencyWay{{}, {{0, 1e3}}};
  for (uint32_t operand = 0; operand < kOperands; ++operand) {
    problem.values.push_back({false, {{{{0, kLarge, 0, kMoments}}, {}}}, std::nullopt, {}});
    made.operands.push_back(operand);
  }
  problem.values.push_back(made);
  const ResidencyPlan plan = solve(problem);
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.ways.back(), kRecomputed);
}

} // namespace
