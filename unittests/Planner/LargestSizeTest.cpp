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

  LargestSize::Plan planBy(const std::function<double(int64_t)> &of) {
    return [this, of](int64_t size, report::PlanChoice &choice) -> Status {
      if (size >= refusedFrom)
        return Error{ExitCode::Invalid, "too long", ""};
      ++plans;
      choice.deviceBytes = static_cast<int64_t>(of(size));
      choice.fits = choice.deviceBytes <= limit;
      return {};
    };
  }
  LargestSize search() { return LargestSize(planBy(bytes), limit); }
};

double line(int64_t size) { return 100 + 7 * static_cast<double>(size); } // 128 fit

TEST(LargestSize, FewPlansConfirmAGoodGuess) {
  for (int64_t guess : {128, 129}) {
    Sizes sizes{line};
    LargestSize search = sizes.search();
    Result<int64_t> found = search.findByLeast({16, true, guess, 100}, sizes.planBy(sizes.bytes), 6);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, 128) << guess;
    EXPECT_EQ(search.gap(), std::nullopt) << guess;
    EXPECT_LE(sizes.plans, guess == 128 ? 2 : 3) << guess;
  }
}

TEST(LargestSize, FourPlansCorrectABadGuess) {
  for (int64_t guess : {1, 20, 127, 140, 5000}) {
    Sizes sizes{line};
    Result<int64_t> found = sizes.search().findByLeast({16, true, guess, 100}, sizes.planBy(sizes.bytes), 6);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, 128) << guess;
    EXPECT_LE(sizes.plans, 4) << guess;
  }
}

// What all sizes take is said to be nothing: the line through two plans is right all the same.
TEST(LargestSize, TwoPlansSayWhatAllSizesTake) {
  Sizes sizes{line};
  Result<int64_t> found = sizes.search().findByLeast({16, true, 40, 0}, sizes.planBy(sizes.bytes), 6);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 128);
  EXPECT_LE(sizes.plans, 4);
}

TEST(LargestSize, StartsFromAPresentSizeThatDoesNotFit) {
  Sizes sizes{line};
  LargestSize search = sizes.search();
  Result<int64_t> found = search.findByLeast({129, false, 500, 100}, sizes.planBy(sizes.bytes), 6);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 128);
  EXPECT_EQ(sizes.plans, 1); // the present one is the least that does not
}

// Holding least at all moments is not to hold least at the fullest: 128 fit so, and 130 as plans are made.
TEST(LargestSize, LooksBeyondTheLastThatFitsWithLeastHeld) {
  for (int64_t guess : {100, 128, 129, 140}) {
    Sizes sizes{[](int64_t size) { return size <= 130 ? 999.0 : line(size); }};
    LargestSize search = sizes.search();
    Result<int64_t> found = search.findByLeast({16, true, guess, 100}, sizes.planBy(line), 7);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, 130) << guess;
    EXPECT_EQ(search.gap(), std::nullopt) << guess;
  }
}

TEST(LargestSize, SaysWhatItLeftOpen) {
  Sizes sizes{[](int64_t size) { return std::exp(static_cast<double>(size) / 100); }}; // 690 fit
  LargestSize search = sizes.search();
  Result<int64_t> found = search.findByLeast({1, true, 2000, 0}, sizes.planBy(sizes.bytes), 3);
  ASSERT_TRUE(found);
  EXPECT_EQ(sizes.plans, 3);
  EXPECT_LE(*found, 690);
  ASSERT_TRUE(search.gap());
  EXPECT_GT(*search.gap(), 690);
}

/// What is pressed under the limit while it can be: 128 fit, of which 42 need no pressing.
double pressed(int64_t size) {
  return std::max(line(size), std::min(999.0, 100 + 21 * static_cast<double>(size)));
}

TEST(LargestSize, WhatIsPressedUnderTheLimitSaysNothingOfTheNext) {
  for (int64_t start : {16, 100, 127, 135, 230}) {
    Sizes sizes{pressed};
    Result<int64_t> found = sizes.search().find(start);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, 128) << start;
  }
}

TEST(LargestSize, NothingFits) {
  Sizes sizes{[](int64_t) { return 2000.0; }};
  Result<int64_t> found = sizes.search().findByLeast({8, false, 4, 0}, sizes.planBy(sizes.bytes), 6);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 0);
}

// Refusals are no plans, and do not count as such.
TEST(LargestSize, TheModelMayBeTheBound) {
  for (int64_t guess : {64, 200}) {
    Sizes sizes{line, 1000, /*refusedFrom=*/65};
    LargestSize search = sizes.search();
    Result<int64_t> found = search.findByLeast({16, true, guess, 100}, sizes.planBy(sizes.bytes), 6);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, 64) << guess;
    EXPECT_EQ(search.gap(), std::nullopt) << guess;
    EXPECT_EQ(search.refusal(), "too long");
  }
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
