//===- WasteSearchTest.cpp - Packing below a given height ---------------------------===//
#include "Packing/WasteSearch.h"

#include "PackInstances.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace ds::analysis;
using namespace ds::analysis::detail;
using namespace ds::analysis::testing;

namespace {

constexpr int64_t kNoEnd = int64_t(1) << 60;

std::vector<Item> itemsOf(const PackProblem &problem) {
  std::vector<Item> items;
  for (const PackBuffer &buffer : problem.buffers)
    items.push_back({int32_t(buffer.begin), int32_t(buffer.end), buffer.bytes, 1});
  return items;
}

/// What is wrong with the addresses, or nothing.
std::string fault(const std::vector<Item> &items, const std::vector<int64_t> &offsets, int64_t floor,
                  int64_t top) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (offsets[i] < floor || offsets[i] + items[i].size > top || offsets[i] % items[i].align != 0)
      return "item " + std::to_string(i) + " at " + std::to_string(offsets[i]);
    for (size_t j = 0; j < i; ++j)
      if (items[i].begin < items[j].end && items[j].begin < items[i].end &&
          offsets[i] < offsets[j] + items[j].size && offsets[j] < offsets[i] + items[i].size)
        return "items " + std::to_string(j) + " and " + std::to_string(i) + " overlap";
  }
  return {};
}

std::optional<std::vector<int64_t>> search(const std::vector<Item> &items, int64_t floor, int64_t top,
                                           uint32_t seed = 0) {
  int64_t steps = 0;
  return packBelow(items, floor, top, seed, kNoEnd, steps);
}

TEST(WasteSearch, FillsAFullRectangleAboveItsFloor) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Item> items = itemsOf(perfectPacking(40, 1 << 20, 640, seed, true));
    std::optional<std::vector<int64_t>> offsets;
    for (uint32_t order = 0; !offsets && order < 16; ++order)
      offsets = search(items, 4096, 4096 + (1 << 20), order);
    ASSERT_TRUE(offsets) << "seed " << seed;
    EXPECT_EQ(fault(items, *offsets, 4096, 4096 + (1 << 20)), "");
    EXPECT_FALSE(search(items, 4096, 4095 + (1 << 20))) << "a byte less than live at once";
  }
}

TEST(WasteSearch, PacksRandomItemsALittleAboveTheirBound) {
  const PackProblem problem = randomProblem(1000, 1 << 20, 4000, 400, 4);
  const std::vector<Item> items = itemsOf(problem);
  for (int percent : {100, 101}) { // nothing was found at the bound so far
    const int64_t top = *lowerBound(problem) / 100 * percent;
    std::optional<std::vector<int64_t>> offsets = search(items, 0, top);
    EXPECT_TRUE(offsets || percent == 100);
    EXPECT_EQ(offsets ? fault(items, *offsets, 0, top) : "", "");
  }
}

TEST(WasteSearch, CountsWhatAlignmentLoses) {
  // Either order of two items that live together loses 63 bytes or none.
  const std::vector<Item> items = {{0, 2, 1, 1}, {0, 2, 64, 64}};
  std::optional<std::vector<int64_t>> offsets = search(items, 0, 65);
  ASSERT_TRUE(offsets);
  EXPECT_EQ(*offsets, (std::vector<int64_t>{64, 0}));
  const std::vector<Item> both = {{0, 2, 1, 64}, {0, 2, 64, 64}, {0, 2, 1, 64}};
  EXPECT_FALSE(search(both, 0, 128)); // 66 bytes in 129
  EXPECT_TRUE(search(both, 0, 129));
}

TEST(WasteSearch, LosesBytesUnderAnItemThatSpansAGap) {
  // The long item lies on the two short ones of which one is lower.
  const std::vector<Item> items = {{0, 1, 30, 1}, {1, 2, 10, 1}, {0, 2, 5, 1}, {1, 2, 15, 1}};
  std::optional<std::vector<int64_t>> offsets = search(items, 0, 35);
  ASSERT_TRUE(offsets);
  EXPECT_EQ(fault(items, *offsets, 0, 35), "");
  EXPECT_FALSE(search(items, 0, 34));
}

TEST(WasteSearch, TurnsBackBeforeItLosesMoreThanItMay) {
  // Left of an item that does not begin at its valley's begin. 9 items, and 36 moves are enough only for a
  // search that does not follow moves into nothing.
  const std::vector<Item> items = {{5, 7, 7, 1}, {3, 7, 5, 1}, {1, 5, 3, 1}, {0, 2, 8, 1}, {2, 4, 6, 1},
                                   {0, 1, 4, 1}, {4, 6, 9, 1}, {0, 4, 7, 1}, {4, 5, 5, 1}};
  std::optional<std::vector<int64_t>> offsets = search(items, 0, 22);
  ASSERT_TRUE(offsets);
  EXPECT_EQ(fault(items, *offsets, 0, 22), "");
}

TEST(WasteSearch, LosesNothingAboveALowWall) {
  // What is free before an item is lost up to the valley's left wall, though the item may be higher.
  const std::vector<Item> items = {{0, 2, 4, 1}, {3, 6, 1, 1}, {0, 2, 6, 1},
                                   {3, 5, 8, 1}, {2, 4, 7, 1}, {1, 3, 7, 1}};
  std::optional<std::vector<int64_t>> offsets = search(items, 0, 17);
  ASSERT_TRUE(offsets);
  EXPECT_EQ(fault(items, *offsets, 0, 17), "");
}

TEST(WasteSearch, FindsTheOptimumOfTinyProblemsAndNothingBelow) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    PackProblem problem = randomProblem(3 + int(seed % 5), 9, 8, 5, seed);
    problem.alignment = 1;
    const int64_t optimum = planMemory(problem)->arenaBytes; // by all orders
    const std::vector<Item> items = itemsOf(problem);
    bool found = false;
    for (uint32_t order = 0; order < 8; ++order) {
      EXPECT_FALSE(search(items, 0, optimum - 1, order)) << "seed " << seed;
      std::optional<std::vector<int64_t>> offsets = search(items, 0, optimum, order);
      found |= offsets.has_value();
      if (offsets)
        EXPECT_EQ(fault(items, *offsets, 0, optimum), "") << "seed " << seed;
    }
    EXPECT_TRUE(found) << "seed " << seed;
  }
}

TEST(WasteSearch, FindsNothingWrongWhereThereIsNothingToLose) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    PackProblem problem = randomProblem(30, 9, 12, 6, seed);
    problem.alignment = 1;
    const std::vector<Item> items = itemsOf(problem);
    std::optional<std::vector<int64_t>> offsets = search(items, 0, *lowerBound(problem));
    if (!offsets)
      continue;
    ++found;
    EXPECT_EQ(fault(items, *offsets, 0, *lowerBound(problem)), "") << "seed " << seed;
  }
  EXPECT_GT(found, 100);
}

TEST(WasteSearch, GivesUpWhenItsStepsAreSpent) {
  const std::vector<Item> items = itemsOf(perfectPacking(40, 1 << 20, 640, 1, true));
  int64_t steps = 0;
  EXPECT_FALSE(packBelow(items, 0, 1 << 20, 0, 100, steps));
  EXPECT_LT(steps, 1000);
  const int64_t before = steps;
  EXPECT_TRUE(packBelow(items, 0, 1 << 20, 0, kNoEnd, steps));
  EXPECT_GT(steps, before);
}

TEST(WasteSearch, FindsTheSameTwice) {
  const std::vector<Item> items = itemsOf(randomProblem(200, 1 << 20, 800, 80, 9));
  const int64_t top = *lowerBound(randomProblem(200, 1 << 20, 800, 80, 9)) / 100 * 104;
  for (uint32_t seed : {0u, 1u, 2u})
    EXPECT_EQ(search(items, 0, top, seed), search(items, 0, top, seed));
}

} // namespace
