//===- StagePartitionTest.cpp - Layers are divided among stages ------------------------===//
#include "ds/Analysis/Pipelines/StagePartition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ds::analysis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<PartitionUnit> ofCosts(const std::vector<double> &costs, double border = 0) {
  std::vector<PartitionUnit> units;
  for (double cost : costs)
    units.push_back({cost, border});
  return units;
}

/// What each stage of `counts` takes.
std::vector<double> stagesOf(const std::vector<PartitionUnit> &units, const std::vector<uint32_t> &counts) {
  std::vector<double> costs;
  size_t at = 0;
  for (uint32_t count : counts) {
    double cost = at > 0 ? units[at - 1].borderCost : 0;
    for (uint32_t i = 0; i < count; ++i)
      cost += units[at++].cost;
    costs.push_back(at < units.size() ? cost + units[at - 1].borderCost : cost);
  }
  return costs;
}

/// The least slowest stage of all divisions of `units` behind `at`, one by one.
double leastSlowest(const std::vector<PartitionUnit> &units, size_t at, uint32_t stages) {
  double least = 1e300;
  double cost = at > 0 ? units[at - 1].borderCost : 0;
  for (size_t end = at + 1; end + stages - 1 <= units.size(); ++end) {
    cost += units[end - 1].cost;
    if (stages == 1 && end < units.size())
      continue;
    const double own = end < units.size() ? cost + units[end - 1].borderCost : cost;
    least = std::min(least, stages == 1 ? own : std::max(own, leastSlowest(units, end, stages - 1)));
  }
  return least;
}

/// The example of StagePartition.h.
TEST(StagePartition, MakesTheSlowestAsFastAsCanBe) {
  EXPECT_THAT(partitionUnits(ofCosts({1, 3, 3, 3, 3, 2}), 3), ElementsAre(2, 2, 2));
  EXPECT_THAT(partitionUnits(ofCosts({9, 1, 1, 1}), 2), ElementsAre(1, 3));
}

TEST(StagePartition, IsEvenAmongEquals) {
  // The slowest has 10 either way: what is left is divided evenly.
  EXPECT_THAT(partitionUnits(ofCosts({10, 1, 1, 1, 1}), 3), ElementsAre(1, 2, 2));
  EXPECT_THAT(partitionUnits(ofCosts(std::vector<double>(14, 1)), 4),
              testing::UnorderedElementsAre(4, 4, 3, 3));
}

TEST(StagePartition, CountsWhatIsSent) {
  std::vector<PartitionUnit> units = ofCosts({2, 2, 2, 2});
  units[1].borderCost = 5; // the middle, where it is widest
  EXPECT_THAT(partitionUnits(units, 2), testing::AnyOf(ElementsAre(1, 3), ElementsAre(3, 1)));
}

TEST(StagePartition, HasNoAnswerForTooFewUnits) {
  EXPECT_THAT(partitionUnits(ofCosts({1, 1}), 3), IsEmpty());
  EXPECT_THAT(partitionUnits(ofCosts({1, 1}), 0), IsEmpty());
  EXPECT_THAT(partitionUnits(ofCosts({0, 0, 0}), 3), ElementsAre(1, 1, 1));
}

TEST(StagePartition, IsAsGoodAsTheBestOfAll) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<PartitionUnit> units(1 + random() % 9);
    for (PartitionUnit &unit : units)
      unit = {double(random() % 7), double(random() % 4)};
    const auto stages = uint32_t(1 + random() % units.size());
    const std::vector<uint32_t> counts = partitionUnits(units, stages);
    ASSERT_EQ(counts.size(), stages);
    const std::vector<double> costs = stagesOf(units, counts);
    EXPECT_EQ(*std::max_element(costs.begin(), costs.end()), leastSlowest(units, 0, stages));
  }
}

} // namespace
} // namespace ds::analysis
