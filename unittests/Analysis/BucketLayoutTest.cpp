//===- BucketLayoutTest.cpp - Which parameters lie side by side -------------------===//
#include "ds/Analysis/Packing/BucketLayout.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>

using namespace ds::analysis;

namespace {

using Members = std::vector<uint32_t>;
using Offsets = std::vector<int64_t>;

TEST(BucketLayout, AlignsMembersAndPadsForAllRanks) {
  std::vector<BucketPlan> plan = layOutBuckets({{1, 100, 0}, {1, 3, 0}}, {.ranks = 4});
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].members, (Members{0, 1}));
  EXPECT_EQ(plan[0].offsets, (Offsets{0, 128}));
  EXPECT_EQ(plan[0].elements, 256); // 128 + 32 = 160, up to a multiple of 4 * 32
}

TEST(BucketLayout, MixesNeitherLayersNorKinds) {
  std::vector<BucketPlan> plan =
      layOutBuckets({{0, 32, 0}, {1, 32, 0}, {1, 32, 1}, {1, 32, 0}, {2, 32, 0}, {0, 32, 0}}, {});
  ASSERT_EQ(plan.size(), 5u);
  EXPECT_EQ(plan[0].members, (Members{0}));
  EXPECT_EQ(plan[1].members, (Members{1, 3}));
  EXPECT_EQ(plan[2].members, (Members{2}));
  EXPECT_EQ(plan[3].members, (Members{4}));
  EXPECT_EQ(plan[4].members, (Members{5})); // used after the layers: not with what is used before them
}

TEST(BucketLayout, BoundsBucketsButNotParameters) {
  std::vector<BucketPlan> plan =
      layOutBuckets({{1, 64, 0}, {1, 33, 0}, {1, 999, 0}, {1, 32, 0}}, {.maxElements = 128});
  ASSERT_EQ(plan.size(), 3u);
  EXPECT_EQ(plan[0].members, (Members{0, 1})); // 64 + 64
  EXPECT_EQ(plan[1].members, (Members{2}));
  EXPECT_EQ(plan[1].elements, 1024);
  EXPECT_EQ(plan[2].members, (Members{3}));
}

TEST(BucketLayout, KeepsSmallParametersWholeAcrossLayers) {
  std::vector<BucketPlan> plan = layOutBuckets(
      {{1, 8, 0}, {1, 640, 0}, {1, 9, 0}, {2, 8, 0}, {2, 640, 0}, {2, 8, 1}}, {.parameterThreshold = 8});
  ASSERT_EQ(plan.size(), 4u);
  EXPECT_EQ(plan[0].members, (Members{0, 3}));
  EXPECT_TRUE(plan[0].isPersistent);
  EXPECT_EQ(plan[1].members, (Members{1, 2})); // 9 is above the threshold; persistent ones end no layer
  EXPECT_FALSE(plan[1].isPersistent);
  EXPECT_EQ(plan[2].members, (Members{4}));
  EXPECT_EQ(plan[3].members, (Members{5}));
  EXPECT_TRUE(plan[3].isPersistent);
}

TEST(BucketLayout, BoundsWhatIsKeptWhole) {
  std::vector<BucketPlan> plan =
      layOutBuckets({{0, 6, 0}, {0, 6, 0}, {0, 4, 0}}, {.parameterThreshold = 8, .modelThreshold = 10});
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].members, (Members{0, 2})); // 6 + 6 > 10, but 6 + 4 fits
  EXPECT_TRUE(plan[0].isPersistent);
  EXPECT_EQ(plan[1].members, (Members{1}));
}

TEST(BucketLayout, HoldsForRandomModels) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<BucketParameter> parameters(1 + random() % 40);
    for (size_t index = 0; index < parameters.size(); ++index)
      parameters[index] = {uint32_t(index / 7), int64_t(random() % 5000), uint32_t(random() % 3)};
    BucketLimits limits{1 + int64_t(random() % 1024), 1 + int64_t(random() % 8000), int64_t(random() % 500),
                        int64_t(random() % 2000)};
    std::vector<unsigned> seen(parameters.size());
    for (const BucketPlan &bucket : layOutBuckets(parameters, limits)) {
      int64_t end = 0;
      ASSERT_EQ(bucket.members.size(), bucket.offsets.size());
      ASSERT_EQ(bucket.elements % (limits.ranks * kBucketAlignment), 0);
      for (size_t member = 0; member < bucket.members.size(); ++member) {
        const BucketParameter &parameter = parameters[bucket.members[member]];
        ++seen[bucket.members[member]];
        ASSERT_EQ(bucket.offsets[member] % kBucketAlignment, 0);
        ASSERT_GE(bucket.offsets[member], end);
        end = bucket.offsets[member] + parameter.elements;
        ASSERT_LE(end, bucket.elements);
        ASSERT_EQ(parameter.kind, parameters[bucket.members[0]].kind);
        if (!bucket.isPersistent) {
          ASSERT_EQ(parameter.layer, parameters[bucket.members[0]].layer);
        } else {
          ASSERT_LE(parameter.elements, limits.parameterThreshold);
        }
      }
      ASSERT_TRUE(bucket.members.size() == 1 || end <= limits.maxElements);
    }
    ASSERT_TRUE(std::all_of(seen.begin(), seen.end(), [](unsigned count) { return count == 1; }));
  }
}

} // namespace
