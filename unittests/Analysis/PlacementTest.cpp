//===- PlacementTest.cpp - Placements against all that there are ------------------===//
#include "ds/Analysis/Placement/Placement.h"
#include "ds/Analysis/Placement/PlacementOrder.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

using namespace ds::analysis;

namespace {

constexpr double kSecondsPerByte = 1e-3;

PlacementProblem makeProblem(double ranks) {
  PlacementProblem problem;
  problem.ranks = ranks;
  problem.secondsPerByte = kSecondsPerByte;
  return problem;
}

uint32_t addValue(PlacementProblem &problem, double bytes, double gradientBytes) {
  PlacedValue value;
  value.bytes = bytes;
  value.gradientBytes = gradientBytes;
  problem.values.push_back(value);
  return static_cast<uint32_t>(problem.values.size() - 1);
}

/// A parameter that is best held in parts, of which there are two kinds.
uint32_t addMatrix(PlacementProblem &problem, double price) {
  const uint32_t matrix = addValue(problem, 0, 0);
  problem.values[matrix].mayMove = false;
  problem.ops.push_back({{},
                         {matrix},
                         {{{}, {kWhole}, price},
                          {{}, {kFirstPart}, price / problem.ranks},
                          {{}, {kFirstPart + 1}, price / problem.ranks}}});
  return matrix;
}

/// result = left * right, [m, k] x [k, n]: part 0 of a matrix is of its rows, part 1 of its columns.
void addProduct(PlacementProblem &problem, uint32_t left, uint32_t right, uint32_t result, double seconds) {
  const double part = seconds / problem.ranks;
  problem.ops.push_back({{left, right},
                         {result},
                         {{{kWhole, kWhole}, {kWhole}, seconds},
                          {{kCopy, kFirstPart + 1}, {kFirstPart + 1}, part},
                          {{kFirstPart + 1, kFirstPart}, {kAddends}, part},
                          {{kFirstPart, kCopy}, {kFirstPart}, part}}});
}

void addSink(PlacementProblem &problem, uint32_t value) {
  problem.ops.push_back({{value}, {}, {{{kWhole}, {}, 0}}});
}

/// The seconds of the best of all combinations of ways.
double bestOfAll(const PlacementProblem &problem) {
  double best = std::numeric_limits<double>::infinity();
  PlacementSolution trial;
  trial.held.resize(problem.values.size(), kWhole);
  std::vector<uint32_t> made(problem.values.size(), 0);
  std::function<void(size_t, double)> go = [&](size_t index, double seconds) {
    if (seconds >= best)
      return;
    if (index == problem.ops.size()) {
      best = seconds;
      return;
    }
    const PlacedOp &op = problem.ops[index];
    for (const PlacedWay &way : op.ways) {
      double now = seconds + way.seconds;
      const std::vector<uint32_t> before = made;
      for (size_t k = 0; k < op.operands.size(); ++k) {
        const uint32_t value = op.operands[k];
        now +=
            exchangeSeconds(problem, problem.values[value], trial.held[value], way.operands[k], made[value]);
        if (way.operands[k] != trial.held[value])
          made[value] |= 1u << way.operands[k];
      }
      for (size_t k = 0; k < op.results.size(); ++k)
        trial.held[op.results[k]] = way.results[k];
      if (now < std::numeric_limits<double>::infinity())
        go(index + 1, now);
      made = before;
    }
  };
  go(0, 0);
  return best;
}

TEST(Placement, CutsColumnsThenRows) {
  PlacementProblem problem = makeProblem(2);
  const uint32_t x = addValue(problem, 100, 100);
  problem.ops.push_back({{}, {x}, {{{}, {kWhole}, 0}}});
  const uint32_t a = addMatrix(problem, 1000), b = addMatrix(problem, 1000);
  const uint32_t y = addValue(problem, 400, 400), z = addValue(problem, 100, 100);
  addProduct(problem, x, a, y, 10);
  addProduct(problem, y, b, z, 10);
  addSink(problem, z);
  const PlacementSolution solution = placeValues(problem);
  ASSERT_TRUE(solution.isFound());
  EXPECT_EQ(findMistake(problem, solution), "");
  EXPECT_EQ(solution.held[a], kFirstPart + 1);
  EXPECT_EQ(solution.held[b], kFirstPart);
  EXPECT_EQ(solution.held[z], kAddends);
  // Two matrices and two products in halves; z is added up forward and x's gradient backward, 100 bytes each.
  EXPECT_DOUBLE_EQ(solution.seconds, 1000 + 10 + 2 * 100 * kSecondsPerByte);
}

TEST(Placement, ExchangesOnceForAllThatReadAlike) {
  PlacementProblem problem = makeProblem(4);
  const uint32_t x = addValue(problem, 80, 80);
  problem.ops.push_back({{}, {x}, {{{}, {kFirstPart}, 0}}}); // rows
  for (int k = 0; k < 3; ++k) {
    const uint32_t matrix = addMatrix(problem, 1000), y = addValue(problem, 80, 80);
    problem.ops.push_back({{x, matrix}, {y}, {{{kCopy, kFirstPart + 1}, {kFirstPart + 1}, 1}}});
  }
  const PlacementSolution solution = placeValues(problem);
  EXPECT_EQ(findMistake(problem, solution), "");
  // One gather forward and one scattered sum backward, three quarters of 80 bytes each.
  EXPECT_NEAR(solution.seconds, 3 * 250 + 3 + 2 * 60 * kSecondsPerByte, 1e-9);
}

TEST(Placement, LeavesSumsInPartsWhereThatIsAsked) {
  for (double weight : {1.0, 64.0}) {
    PlacementProblem problem = makeProblem(2);
    problem.partsWeight = weight;
    const uint32_t x = addValue(problem, 100, 100), y = addValue(problem, 100, 100);
    problem.ops.push_back({{}, {x}, {{{}, {kAddends}, 0}}});
    problem.ops.push_back({{x}, {y}, {{{kWhole}, {kWhole}, 1}, {{kFirstPart}, {kFirstPart}, 0.5}}});
    addSink(problem, y);
    const PlacementSolution solution = placeValues(problem);
    EXPECT_EQ(findMistake(problem, solution), "");
    EXPECT_EQ(solution.held[y], weight > 1 ? kWhole : kFirstPart);
  }
}

TEST(Placement, ExchangesPartsForOthersWhereThatMayBe) {
  for (bool exchanges : {false, true}) {
    PlacementProblem problem = makeProblem(4);
    problem.exchangesParts = exchanges;
    const uint32_t x = addValue(problem, 160, 160), y = addValue(problem, 160, 160);
    problem.ops.push_back({{}, {x}, {{{}, {kFirstPart}, 0}}});
    problem.ops.push_back({{x}, {y}, {{{kFirstPart + 1}, {kFirstPart + 1}, 0}}});
    const PlacementSolution solution = placeValues(problem);
    EXPECT_EQ(findMistake(problem, solution), "");
    // Of a rank's 40 bytes three quarters are those of others, or three times 40 are gathered; and back.
    EXPECT_NEAR(solution.seconds, 2 * (exchanges ? 30 : 120) * kSecondsPerByte, 1e-9);
  }
}

TEST(Placement, KeepsWhatMayNotMove) {
  PlacementProblem problem = makeProblem(2);
  const uint32_t matrix = addMatrix(problem, 1000);
  problem.ops.push_back({{matrix}, {}, {{{kWhole}, {}, 0}}});
  const PlacementSolution solution = placeValues(problem);
  EXPECT_EQ(solution.held[matrix], kWhole);
  EXPECT_DOUBLE_EQ(solution.seconds, 1000);
}

TEST(Placement, FindsNothingWhereNoWayFits) {
  PlacementProblem problem = makeProblem(2);
  const uint32_t x = addValue(problem, 8, 0);
  problem.values[x].mayMove = false;
  problem.ops.push_back({{}, {x}, {{{}, {kFirstPart}, 0}}});
  problem.ops.push_back({{x}, {}, {{{kWhole}, {}, 0}}});
  const PlacementSolution solution = placeValues(problem);
  EXPECT_FALSE(solution.isFound());
  EXPECT_EQ(solution.stuckAt, 1u);
}

/// Chains with a second path around every other product, as layers have.
PlacementProblem makeRandom(std::mt19937 &random) {
  std::uniform_real_distribution<double> amount(1, 100);
  PlacementProblem problem = makeProblem(1 + static_cast<double>(1u << (random() % 3)));
  // Gradients have the size of their value, where there are any.
  auto addSome = [&] {
    const double bytes = amount(random);
    return addValue(problem, bytes, random() % 3 ? bytes : 0);
  };
  uint32_t x = addSome();
  problem.ops.push_back({{}, {x}, {{{}, {kWhole}, 0}, {{}, {kFirstPart}, amount(random) / 100}}});
  for (int layer = 0; layer < 2; ++layer) {
    const uint32_t a = addMatrix(problem, amount(random)), y = addSome();
    addProduct(problem, x, a, y, amount(random) / 10);
    const uint32_t sum = addSome();
    PlacedOp add{{x, y}, {sum}, {}};
    for (Form form : {kWhole, kAddends, kFirstPart, static_cast<Form>(kFirstPart + 1)})
      add.ways.push_back({{form, form}, {form}, amount(random) / 100});
    problem.ops.push_back(std::move(add));
    x = sum;
  }
  addSink(problem, x);
  return problem;
}

TEST(Placement, IsTheBestOfAllButForChains) {
  std::mt19937 random(7);
  double lost = 0;
  constexpr int kTrials = 1000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const PlacementProblem problem = makeRandom(random);
    const PlacementSolution solution = placeValues(problem);
    ASSERT_TRUE(solution.isFound());
    ASSERT_EQ(findMistake(problem, solution), "") << trial;
    const double best = bestOfAll(problem);
    ASSERT_GE(solution.seconds, best * (1 - 1e-9)) << trial;
    ASSERT_LE(solution.seconds, best * 1.001) << trial;
    lost += solution.seconds / best - 1;
  }
  EXPECT_LE(lost / kTrials, 1e-6);
}

TEST(Placement, StaysWithinItsStates) {
  std::mt19937 random(11);
  PlacementProblem problem = makeRandom(random);
  problem.maxStates = 2;
  const PlacementSolution solution = placeValues(problem);
  ASSERT_TRUE(solution.isFound());
  EXPECT_FALSE(solution.isExact);
  EXPECT_EQ(findMistake(problem, solution), "");
  EXPECT_GE(solution.seconds, bestOfAll(problem) - 1e-9);
}

TEST(CheckPlacement, SeesWhatIsWrong) {
  PlacementProblem problem = makeProblem(2);
  const uint32_t x = addValue(problem, 8, 0);
  problem.ops.push_back({{}, {x}, {{{}, {kWhole}, 1}}});
  addSink(problem, x);
  PlacementSolution solution = placeValues(problem);
  EXPECT_EQ(findMistake(problem, solution), "");
  solution.seconds += 1;
  EXPECT_NE(findMistake(problem, solution).find("take"), std::string::npos);
  solution.seconds -= 1;
  solution.held[x] = kFirstPart;
  EXPECT_NE(findMistake(problem, solution).find("held otherwise"), std::string::npos);
  solution.held[x] = kWhole;
  solution.ways[0] = 5;
  EXPECT_NE(findMistake(problem, solution).find("no way 5"), std::string::npos);
}

/// A stack of equal layers, random ones; with `more` each takes that much more than the one before.
PlacementProblem makeStack(unsigned seed, int layers, double more) {
  PlacementProblem problem = makeProblem(4);
  const uint32_t table = addMatrix(problem, 100); // read by the first and the last op
  uint32_t x = addValue(problem, 40, 40);
  problem.ops.push_back({{table}, {x}, {{{kWhole}, {kWhole}, 1}, {{kFirstPart}, {kAddends}, 0.5}}});
  double factor = 1;
  for (int layer = 0; layer < layers; ++layer, factor *= 1 + more) {
    std::mt19937 random(seed); // the same for each
    std::uniform_real_distribution<double> amount(1, 100);
    const size_t first = problem.ops.size();
    uint32_t y = x;
    for (int half = 0; half < 2; ++half) {
      const uint32_t matrix = addMatrix(problem, amount(random)), z = addValue(problem, 60, 60);
      addProduct(problem, y, matrix, z, amount(random) / 10);
      y = z;
    }
    const uint32_t sum = addValue(problem, 40, 40);
    PlacedOp add{{x, y}, {sum}, {}};
    for (Form form : {kWhole, kAddends, kFirstPart, static_cast<Form>(kFirstPart + 1)})
      add.ways.push_back({{form, form}, {form}, amount(random) / 100});
    problem.ops.push_back(std::move(add));
    for (size_t index = first; index < problem.ops.size(); ++index)
      for (PlacedWay &way : problem.ops[index].ways)
        way.seconds *= factor;
    x = sum;
  }
  problem.ops.push_back({{x, table}, {}, {{{kWhole, kWhole}, {}, 1}, {{kCopy, kFirstPart}, {}, 0.5}}});
  return problem;
}

TEST(Placement, PlacesLayersAsThoseBefore) {
  constexpr int kLayers = 30;
  constexpr double kMore = 1e-7; // so that no layer is the one before
  for (unsigned seed = 0; seed < 100; ++seed) {
    const PlacementProblem equal = makeStack(seed, kLayers, 0), rising = makeStack(seed, kLayers, kMore);
    const PlacementSolution once = placeValues(equal), each = placeValues(rising);
    ASSERT_TRUE(once.isFound() && each.isFound());
    EXPECT_EQ(findMistake(equal, once), "") << seed;
    EXPECT_NEAR(once.seconds, each.seconds, once.seconds * 2 * kLayers * kMore) << seed;
  }
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

/// The most values that are held between two ops of `problem` in this order, which is one of its orders.
size_t mostHeld(const PlacementProblem &problem, const std::vector<uint32_t> &order) {
  std::vector<int> left(problem.values.size(), 0);
  std::vector<bool> isThere(problem.values.size(), false);
  for (const PlacedOp &op : problem.ops)
    for (uint32_t value : op.operands)
      ++left[value];
  size_t most = 0;
  for (uint32_t index : order) {
    for (uint32_t value : problem.ops[index].operands) {
      EXPECT_TRUE(isThere[value] || problem.values[value].isGiven) << "op " << index << ", value " << value;
      --left[value];
    }
    for (uint32_t value : problem.ops[index].results)
      isThere[value] = true;
    size_t held = 0;
    for (size_t value = 0; value < problem.values.size(); ++value)
      held += isThere[value] && left[value] > 0;
    most = std::max(most, held);
  }
  return most;
}

/// A chain of gradients, each of which is added to what was accumulated of it when all are made.
PlacementProblem makeAccumulation(int layers) {
  PlacementProblem problem = makeProblem(2);
  uint32_t gradient = addValue(problem, 8, 0);
  problem.values[gradient].isGiven = true;
  std::vector<uint32_t> all;
  const std::vector<PlacedWay> ways = {{{kWhole}, {kWhole}, 1}, {{kAddends}, {kAddends}, 1}};
  for (int layer = 0; layer < layers; ++layer) {
    const uint32_t next = addValue(problem, 8, 0);
    problem.ops.push_back({{gradient}, {next}, ways});
    all.push_back(gradient = next);
  }
  for (uint32_t each : all) {
    const uint32_t before = addValue(problem, 8, 0), sum = addValue(problem, 8, 0);
    problem.ops.push_back({{}, {before}, {{{}, {kWhole}, 0}, {{}, {kAddends}, 0}}});
    problem.ops.push_back(
        {{each, before}, {sum}, {{{kWhole, kWhole}, {kWhole}, 1}, {{kAddends, kAddends}, {kAddends}, 1}}});
    problem.ops.push_back({{sum}, {}, {{{kWhole}, {}, 0}, {{kAddends}, {}, 0}}});
  }
  return problem;
}

TEST(PlacementOrder, EndsValuesEarly) {
  const PlacementProblem problem = makeAccumulation(12);
  std::vector<uint32_t> given(problem.ops.size());
  std::iota(given.begin(), given.end(), 0);
  EXPECT_EQ(mostHeld(problem, given), 13u);
  const std::vector<uint32_t> order = orderOps(problem);
  // What was accumulated, and four gradients: the first three wait for the fourth, as made of what is given.
  EXPECT_EQ(mostHeld(problem, order), 5u);
  ASSERT_EQ(order.size(), given.size());
  std::vector<uint32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, given);
}

TEST(PlacementOrder, LetsSourcesWait) {
  PlacementProblem problem = makeProblem(2);
  std::vector<uint32_t> parameters;
  for (int k = 0; k < 5; ++k)
    parameters.push_back(addMatrix(problem, 10));
  uint32_t x = addValue(problem, 8, 8);
  problem.values[x].isGiven = true;
  for (uint32_t parameter : parameters) {
    const uint32_t y = addValue(problem, 8, 8);
    addProduct(problem, x, parameter, y, 1);
    x = y;
  }
  EXPECT_EQ(mostHeld(problem, orderOps(problem)), 2u);
}

TEST(PlacementOrder, IsOneOfRandomProblems) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    PlacementProblem problem = makeRandom(random);
    const std::vector<uint32_t> order = orderOps(problem);
    ASSERT_EQ(order.size(), problem.ops.size());
    mostHeld(problem, order);
    PlacementProblem sorted = problem;
    for (size_t k = 0; k < order.size(); ++k)
      sorted.ops[k] = problem.ops[order[k]];
    const PlacementSolution solution = placeValues(sorted);
    EXPECT_EQ(findMistake(sorted, solution), "");
    EXPECT_LE(solution.seconds, bestOfAll(problem) * 1.001) << trial;
  }
}

} // namespace
