//===- PlacerTest.cpp - First fit climbs no stack anew ----------------------------===//
#include "Packing/Placer.h"
#include "Packing/Random.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace ds::analysis::detail;

/// What lives from forward to backward in so many layers, the outermost first: 8 values each, in two sizes.
static std::vector<Item> nestedItems(int32_t layers) {
  std::vector<Item> items;
  for (int32_t i = 0; i < 8 * layers; ++i)
    items.push_back({i, 16 * layers - i, i % 2 ? 4096 : 1024, 64});
  return items;
}

/// What a step on so many layers looks at one by one.
static int64_t examined(int32_t layers) {
  const std::vector<Item> items = nestedItems(layers);
  Placer placer(items, 16 * layers, 0);
  int64_t top = 0;
  for (const Item &item : items) {
    EXPECT_EQ(placer.place(item, Fit::First), top);
    top += item.size;
  }
  return placer.examined();
}

TEST(Placer, LooksAtAsMuchInALayerHoweverManyThereAre) {
  // Each of 3,840 items above all those before it: 7.4 million without the lowest holes.
  EXPECT_LE(examined(480), 12 * examined(48));
  EXPECT_LE(examined(480), 32 * 3840);
}

/// The lowest address, or that of the tightest gap, by looking at all that is placed.
static int64_t placeSlowly(const Item &item, Fit fit, int64_t floor, const std::vector<Placed> &all) {
  std::vector<Placed> live;
  for (const Placed &placed : all)
    if (placed.begin < item.end && placed.end > item.begin)
      live.push_back(placed);
  std::sort(live.begin(), live.end(), [](const Placed &a, const Placed &b) { return a.lo < b.lo; });
  auto up = [&](int64_t address) { return (address + item.align - 1) / item.align * item.align; };
  int64_t top = up(floor), best = -1, bestGap = INT64_MAX;
  for (const Placed &placed : live) {
    if (const int64_t gap = placed.lo - top;
        gap >= item.size && gap < bestGap && (best < 0 || fit == Fit::Best))
      best = top, bestGap = gap;
    top = std::max(top, up(placed.hi));
  }
  return best >= 0 ? best : top;
}

TEST(Placer, FindsThePlaceThatASearchOfAllFinds) {
  constexpr int32_t kHorizon = 3000;
  constexpr int64_t kFloor = 192;
  for (Fit fit : {Fit::First, Fit::Best})
    for (uint32_t longest : {20u, 300u, 2999u}) {
      Random random;
      std::vector<Item> items(1200);
      for (Item &item : items) {
        const auto life = int32_t(1 + random.below(longest));
        item.begin = int32_t(random.below(uint32_t(kHorizon - life + 1)));
        item.end = item.begin + life;
        item.align = int64_t(64) << random.below(4);
        item.size = item.align * (1 + random.below(40));
      }
      Placer placer(items, kHorizon, kFloor);
      for (int round = 0; round < 2; ++round) { // what was kept is forgotten with what was placed
        placer.clear();
        std::vector<Placed> all;
        for (const Item &item : items) {
          const int64_t lo = placeSlowly(item, fit, kFloor, all);
          ASSERT_EQ(placer.place(item, fit), lo) << longest;
          all.push_back({item.begin, item.end, lo, lo + item.size});
        }
        std::reverse(items.begin(), items.end());
      }
    }
}
