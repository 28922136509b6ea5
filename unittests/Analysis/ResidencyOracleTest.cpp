//===- ResidencyOracleTest.cpp - Plans against the best choice of small problems -----===//
//
// Wanted: 1 % from the best in the mean, 3 % at worst, of steps as they are and of what is made to be hard.
//
//===---------------------------------------------------------------------------------===//
#include "ResidencyOracle.h"
#include "Residency/ResidencySolver.h"

#include "gtest/gtest.h"

using namespace ds::analysis;

namespace {

/// Plans of one kind of problem, against the best.
struct Distances {
  int problems = 0, fitting = 0, missed = 0, best = 0, open = 0;
  double sum = 0, most = 0;

  void add(const ResidencyProblem &problem);
  double mean() const { return fitting > 0 ? sum / fitting : 0; }
  void print(const char *kind) const {
    std::printf("%-36s %3d of %3d fit, %3d are the best, %d not proved; slower by %.3f %% in the mean, "
                "%.2f %% at most\n",
                kind, fitting, problems, best, open, 100 * mean(), 100 * most);
  }
  void judge() const {
    EXPECT_EQ(missed, 0) << "where something fits a plan is to";
    EXPECT_LE(open, problems / 2);
    EXPECT_LE(mean(), 0.01);
    EXPECT_LE(most, 0.03);
  }
};

void Distances::add(const ResidencyProblem &problem) {
  ds::Result<ResidencyPlan> plan = solveResidency(problem);
  ASSERT_TRUE(bool(plan)) << plan.error().message;
  ASSERT_EQ(check(*plan, problem).value_or(""), "");
  const std::optional<double> above = plan->fits ? std::optional(plan->seconds) : std::nullopt;
  const ResidencyBest known = findBestResidency(problem, above, 1e-4, 500'000);
  ++problems, open += !known.isProved;
  if (!plan->fits) {
    missed += known.seconds.has_value();
    return;
  }
  ++fitting, best += !known.seconds && known.isProved;
  if (!known.seconds)
    return;
  EXPECT_LE(plan->bound, *known.seconds * (1 + 1e-9));
  const double distance = plan->seconds / *known.seconds - 1;
  sum += distance, most = std::max(most, distance);
}

class ResidencyOfSteps : public testing::TestWithParam<uint32_t> {};

TEST_P(ResidencyOfSteps, IsNearTheBest) {
  const uint32_t layers = 1 + GetParam() / 4;
  std::mt19937 random(5);
  Distances distances;
  for (int round = 0; round < 10; ++round) {
    StepShape shape;
    shape.layers = layers;
    shape.usesHost = GetParam() % 2 != 0, shape.gathersWeights = GetParam() / 2 % 2 != 0;
    shape.losesInPieces = random() % 2 != 0, shape.hasWorkspaces = random() % 2 != 0;
    shape.free = double(10 + random() % 85) / 100;
    distances.add(makeStep(shape, random));
  }
  const std::string kind = std::to_string(layers) + " layers" + (GetParam() % 2 ? ", host" : "") +
                           (GetParam() / 2 % 2 ? ", gathers" : "");
  distances.print(kind.c_str());
  distances.judge();
  EXPECT_GE(distances.fitting, 6);
}

INSTANTIATE_TEST_SUITE_P(, ResidencyOfSteps, testing::Range(0u, 12u));

TEST(ResidencyOracle, IsNearTheBestOfTangles) {
  std::mt19937 random(3);
  Distances distances;
  for (int round = 0; round < 100; ++round)
    distances.add(makeTangle(random));
  distances.print("tangles in two spaces");
  distances.judge();
  EXPECT_GE(distances.fitting, 70);
}

TEST(ResidencyOracle, IsNearTheBestOfKnapsacks) {
  std::mt19937 random(3);
  Distances distances;
  for (int round = 0; round < 100; ++round)
    distances.add(makeKnapsack(random));
  distances.print("bytes that are worth alike");
  distances.judge();
  EXPECT_EQ(distances.fitting, 100);
}

/// Three values of 3 bytes are kept within 10. To keep one of 5 and one of 4 in their place saves a second
/// more, and no single change does.
TEST(ResidencyOracle, GroupsChangeSeveralValuesAtOnce) {
  ResidencyProblem problem;
  problem.spaces.push_back({10, {0}});
  problem.resources = {0};
  for (auto [bytes, seconds] : {std::pair<int64_t, double>{3, 1}, {3, 1}, {3, 1}, {5, 2}, {4, 2}})
    problem.values.push_back({true, {{{{0, bytes, 0, 1}}, {}}}, ResidencyWay{{}, {{0, seconds}}}, {}});
  std::vector<int32_t> ways = {0, 0, 0, kRecomputed, kRecomputed};
  detail::improveGroups(problem, {{}, {1}}, ways);
  EXPECT_EQ(ways, (std::vector<int32_t>{kRecomputed, kRecomputed, kRecomputed, 0, 0}));
}

/// h is read by nobody: it is had as long as g is made of it, and no longer. 6 bytes leave room for h alone,
/// then, once w is gone, for g and h.
TEST(ResidencyOracle, GroupsHaveWhatIsNeededAlone) {
  ResidencyProblem problem;
  problem.spaces.push_back({6, {0}});
  problem.resources = {0};
  problem.values.push_back({false, {{{{0, 4, 0, 1}}, {}}}, std::nullopt, {}});
  problem.values.push_back({true, {{{{0, 5, 0, 1}}, {}}}, ResidencyWay{{}, {{0, 1.0}}}, {0}});
  problem.values.push_back({true, {{{{0, 2, 0, 1}}, {}}, {{}, {{0, 0.5}}}}, std::nullopt, {}});
  std::vector<int32_t> ways = {0, kRecomputed, 0};
  detail::improveGroups(problem, {{}, {1}}, ways);
  EXPECT_EQ(ways, (std::vector<int32_t>{kNotHad, 0, 1})); // 5 bytes and half a second
}

TEST(ResidencyOracle, GroupsBringDownWhatIsBeyondABudget) {
  ResidencyProblem problem;
  problem.spaces.push_back({5, {0}});
  problem.resources = {0};
  for (int64_t bytes : {3, 4, 5})
    problem.values.push_back({true, {{{{0, bytes, 0, 1}}, {}}}, ResidencyWay{{}, {{0, double(bytes)}}}, {}});
  std::vector<int32_t> ways = {0, 0, 0};
  detail::improveGroups(problem, {{}, {1}}, ways);
  EXPECT_EQ(ways, (std::vector<int32_t>{kRecomputed, kRecomputed, 0}));
}

} // namespace
