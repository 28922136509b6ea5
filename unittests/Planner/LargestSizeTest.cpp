//===- LargestSizeTest.cpp - The largest size that fits, by few plans --------------===//
#include "LargestSize.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ds::planner {
namespace {

/// What sizes take, and how often that was asked.
struct Sizes {
  std::function<double(int64_t)> bytes;
  int64_t limit = 1000;
  int64_t refusedFrom = int64_t{1} << 40; ///< the model takes fewer
  int plans = 0;

  LargestSize search() {
    return LargestSize(
        [this](int64_t size, report::PlanChoice &choice) -> Status {
          ++plans;
          if (size >= refusedFrom)
            return Error{ExitCode::Invalid, "too long", ""};
          choice.deviceBytes = static_cast<int64_t>(bytes(size));
          choice.fits = choice.deviceBytes <= limit;
          return {};
        },
        limit);
  }
};

double line(int64_t size) { return 100 + 7 * static_cast<double>(size); } // 128 fit

TEST(LargestSize, OneGuessNearbyFindsTheBound) {
  for (int64_t guess : {120, 127, 128, 129, 140}) {
    Sizes sizes{line};
    LargestSize search = sizes.search();
    Result<int64_t> found = search.findNear(16, guess, 4);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, 128) << guess;
    EXPECT_EQ(search.gap(), std::nullopt) << guess;
    EXPECT_LE(sizes.plans, 5) << guess;
  }
}

TEST(LargestSize, StartsFromAPresentSizeThatDoesNotFit) {
  Sizes sizes{line};
  LargestSize search = sizes.search();
  Result<int64_t> found = search.findNear(200, 128, 4);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 128);
}

TEST(LargestSize, SaysWhatItLeftOpen) {
  Sizes sizes{[](int64_t size) { return std::exp(static_cast<double>(size) / 100); }}; // 690 fit
  LargestSize search = sizes.search();
  Result<int64_t> found = search.findNear(1, 2, 3);
  ASSERT_TRUE(found);
  EXPECT_EQ(sizes.plans, 4);
  EXPECT_LE(*found, 690);
  if (search.gap()) {
    EXPECT_GT(*search.gap(), 690);
  }
}

/// What is pressed under the limit while it can be: 128 fit, of which 42 need no pressing.
double pressed(int64_t size) {
  return std::max(line(size), std::min(999.0, 100 + 21 * static_cast<double>(size)));
}

TEST(LargestSize, WhatIsPressedUnderTheLimitSaysNothingOfTheNext) {
  for (int64_t guess : {100, 127, 135, 160, 230}) {
    Sizes sizes{pressed};
    LargestSize search = sizes.search();
    Result<int64_t> found = search.findNear(16, guess, 4);
    ASSERT_TRUE(found);
    EXPECT_LE(*found, 128);
    EXPECT_GE(*found, 120) << guess;
    EXPECT_LE(sizes.plans, 5);
  }
}

TEST(LargestSize, NothingFits) {
  Sizes sizes{[](int64_t) { return 2000.0; }};
  Result<int64_t> found = sizes.search().findNear(8, 4, 4);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 0);
}

TEST(LargestSize, TheModelMayBeTheBound) {
  Sizes sizes{line, 1000, /*refusedFrom=*/65};
  LargestSize search = sizes.search();
  Result<int64_t> found = search.findNear(16, 64, 4);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 64);
  EXPECT_EQ(search.refusal(), "too long");
}

TEST(LargestSize, AllPlansFindTheBoundFromAnywhere) {
  for (int64_t start : {1, 5, 128, 129, 5000}) {
    Sizes sizes{line};
    Result<int64_t> found = sizes.search().find(start);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, 128) << start;
  }
}

} // namespace
} // namespace ds::planner
