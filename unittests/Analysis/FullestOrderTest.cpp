//===- FullestOrderTest.cpp - Orders from the fullest moment, and from the last end -===//
#include "Packing/FullestOrder.h"
#include "PackInstances.h"
#include "Packing/PackSearch.h"
#include "Planned.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace ds::analysis;
using namespace ds::analysis::detail;
using namespace ds::analysis::testing;

/// Fullest at time 3, with 12 bytes; second at time 0, with 9.
static const std::vector<Item> kItems = {
    {0, 1, 8, 1}, {0, 5, 1, 1}, {2, 4, 5, 1}, {3, 4, 6, 1}, {4, 6, 3, 1}};

TEST(FullestOrder, BeginsWithTheFullestMoment) {
  using Order = std::vector<int32_t>;
  EXPECT_EQ(orderByFullest(kItems, 6, AtFullest::Largest), (Order{3, 2, 1, 0, 4}));
  // From time 3 the second lives 3 to the left, the third 1 and 1, the fourth 0 and 1.
  EXPECT_EQ(orderByFullest(kItems, 6, AtFullest::Widest), (Order{1, 2, 3, 0, 4}));
  EXPECT_EQ(orderByFullest(kItems, 6, AtFullest::First), (Order{1, 2, 3, 0, 4}));
}

TEST(FullestOrder, BeginsWithWhatBeginsFirstOrEndsLast) {
  const std::vector<Item> items = {{0, 4, 1, 1}, {2, 6, 1, 1}, {3, 5, 1, 1}}; // all live at time 3
  using Order = std::vector<int32_t>;
  EXPECT_EQ(orderByFullest(items, 6, AtFullest::First), (Order{0, 1, 2}));
  EXPECT_EQ(orderByFullest(items, 6, AtFullest::Last), (Order{1, 2, 0}));
}

TEST(FullestOrder, SaysNothingOfFullRectangles) {
  EXPECT_TRUE(hasFullestMoments(kItems, 6));
  EXPECT_FALSE(hasFullestMoments({{0, 4, 5, 1}, {4, 8, 5, 1}}, 8));
}

/// A step whose products of weights come last: each layer saves something for its backward and something for
/// its product, backward leaves a gradient for that too, the product takes a workspace and leaves another
/// gradient, and all that stays until the end. Fullest at the end; nearly as full where forward ends.
static PackProblem productsLast(int64_t layers, uint64_t seed) {
  ds::analysis::testing::Random random(seed);
  PackProblem problem;
  auto add = [&](int64_t units, int64_t begin, int64_t end) {
    problem.buffers.push_back({.bytes = 64 * units, .begin = begin, .end = end});
  };
  const int64_t forward = 10 * layers, backward = 2 * forward, end = backward + 2 * layers + 2;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t made = 10 * layer, read = backward - 10 * layer, product = backward + 2 * (layers - layer);
    for (int64_t op = 0; op < 5; ++op) {
      add(random.between(8, 40), made + op, read - op);
      add(random.between(50, 120), made + 2 * op, made + 2 * op + 2);
      add(random.between(50, 120), read - 2 * op - 2, read - 2 * op);
    }
    add(12, made, product), add(8, read - 5, product), add(200, product, product + 1);
    add(100, product, end), add(3, read - 1, end);
  }
  add(900, forward - 3, forward + 3), add(600, forward - 1, backward + 1), add(700, backward, end);
  return problem;
}

TEST(FullestOrder, PacksStepsThatAreFullestTwiceAtOnce) {
  for (int64_t layers : {12, 24, 48})
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const MemoryPlan plan = planned(productsLast(layers, seed));
      EXPECT_EQ(plan.arenaBytes, plan.lowerBound);
      EXPECT_LE(plan.steps, 500 * layers * layers); // more than twice as many without
    }
}

/// What short items leave free when they have filled up random mountains.
static Component mountain(uint64_t seed) {
  constexpr int32_t kHalf = 100;
  ds::analysis::testing::Random random(seed);
  Component component;
  component.horizon = 2 * kHalf;
  auto between = [&](int64_t low, int64_t high) { return int32_t(random.between(low, high)); };
  for (int i = 0; i < 30; ++i)
    component.items.push_back({between(0, kHalf - 1), between(kHalf + 1, 2 * kHalf), between(1, 100), 1});
  for (int32_t begin = 0; begin + 8 <= 2 * kHalf; begin += 4)
    if (begin + 8 <= kHalf - 20 || begin >= kHalf + 20)
      component.items.push_back({begin, begin + 8, between(1, 200), 1});
  return component;
}

TEST(FullestOrder, PressesWhatSticksOut) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Component component = mountain(seed);
    Search search(component, component.items);
    search.tryOrder(search.fullest(AtFullest::Largest), Fit::First);
    const int64_t before = search.best.top, steps = search.steps();
    search.press(search.fullest(AtFullest::Largest), component.floor, 1'000'000);
    EXPECT_LT(search.best.top, before);
    EXPECT_LE(search.steps() - steps, 1'100'000);
  }
}

TEST(FullestOrder, HastensWhatSticksOut) {
  int below = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Component component = mountain(seed);
    Search search(component, component.items);
    search.tryOrder(search.fullest(AtFullest::Widest), Fit::First);
    const int64_t before = search.best.top, steps = search.steps();
    search.hasten(search.fullest(AtFullest::Widest), before - 1, 1'000'000);
    below += search.best.top < before;
    EXPECT_LE(search.steps() - steps, 1'100'000);
    search.hasten(search.fullest(AtFullest::Widest), component.floor, 1'000'000); // the first sticks out
    EXPECT_LE(search.steps() - steps, 1'200'000);
  }
  EXPECT_GE(below, 12); // it found 15
}

TEST(Backwards, LetsLargeItemsLead) {
  // Ends 4, 6, 7 and 9; of 5120 bytes an item of more than 10 is large.
  Component component;
  component.items = {{0, 4, 11, 1}, {1, 6, 10, 1}, {2, 7, 5, 1}, {3, 9, 8, 1}};
  component.horizon = 10;
  const Search search(component, component.items);
  using Order = std::vector<int32_t>;
  EXPECT_EQ(search.backwards(0, 5120), (Order{3, 2, 1, 0}));
  EXPECT_EQ(search.backwards(2, 5120), (Order{3, 2, 0, 1})); // at 6 the larger one
  EXPECT_EQ(search.backwards(6, 5120), (Order{0, 3, 2, 1}));
}

/// Forward and backward of `layers` that save small values, with a large one for each layer in each pass that
/// is there ahead of its use, and longer, wherever that leaves the step no fuller than it is anyway.
static PackProblem filledStep(int64_t layers, uint64_t seed) {
  ds::analysis::testing::Random random(seed);
  PackProblem problem;
  const int64_t end = 20 * layers;
  std::vector<int64_t> live(static_cast<size_t>(end));
  auto add = [&](int64_t bytes, int64_t from, int64_t to) {
    problem.buffers.push_back({.bytes = bytes, .begin = from, .end = to});
    for (int64_t time = from; time < to; ++time)
      live[static_cast<size_t>(time)] += bytes;
  };
  for (int64_t layer = 0; layer < layers; ++layer)
    for (int64_t op = 0; op < 10; ++op) {
      add(64 * random.between(1, 8), 10 * layer + op, end - 10 * layer - op);
      add(64 * random.between(8, 24), 10 * layer + op, 10 * layer + op + 1 + random.between(0, 1));
    }
  const int64_t large = 64 * 150;
  const int64_t most = *std::max_element(live.begin(), live.end()) + 3 * large;
  for (int64_t use = 0; use < end; use += 10) {
    int64_t from = use, to = use + 10;
    auto isFree = [&](int64_t time) { return live[static_cast<size_t>(time)] + large <= most; };
    while (from > 0 && use - from < 60 && isFree(from - 1))
      --from;
    while (to < end && to - use < 200 && isFree(to))
      ++to;
    add(large, from, to);
  }
  return problem;
}

TEST(Backwards, PacksStepsThatAreFullAllTheTime) {
  const MemoryPlan plan = planned(filledStep(350, 1), {.maxSteps = 300'000'000});
  EXPECT_LE(double(plan.arenaBytes), 1.012 * double(plan.lowerBound)); // 1.017 without
}
