//===- ScheduleTest.cpp - Learning rates against values worked out by hand -------------===//
//
// Every case states the formula's arithmetic beside the expected number.
//
//===---------------------------------------------------------------------------===//
#include "ds/Config/Schedule.h"

#include <gtest/gtest.h>

using namespace ds::config;
using Kind = Schedule::Kind;

TEST(Schedule, NoneKeepsTheBaseRate) {
  EXPECT_EQ(scheduleLr({}, 0.5, -1), 0.5);
  EXPECT_EQ(scheduleLr({}, 0.5, 1000000), 0.5);
}

TEST(Schedule, RangeTestGrowsFromTheMinimum) {
  Schedule s;
  s.kind = Kind::LRRangeTest;
  s.minLr = 0.001;
  s.stepSize = 10;
  s.stepRate = 2;
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, -1), 0.001);      // before the first step
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 0), 0.001 * 1.2); // 1 + 2 * 1/10
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 14), 0.001 * 4);  // 1 + 2 * 15/10
  s.staircase = true;
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 8), 0.001);      // floor(9/10) = 0
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 9), 0.001 * 3);  // floor(10/10) = 1
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 14), 0.001 * 3); // floor(15/10) = 1
}

static Schedule cycle() {
  Schedule s;
  s.kind = Kind::OneCycle;
  s.cycleMinLr = 1;
  s.cycleMaxLr = 5;
  s.firstStepSize = 4;
  s.secondStepSize = 8;
  return s;
}

TEST(Schedule, CycleRisesAndFallsLinearly) {
  Schedule s = cycle();
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, -1), 1);
  EXPECT_NEAR(scheduleLr(s, 9, 0), 2, 1e-14);  // 1/4 of the way up: 1 + 4 * 0.25
  EXPECT_NEAR(scheduleLr(s, 9, 3), 5, 1e-14);  // the top
  EXPECT_NEAR(scheduleLr(s, 9, 5), 4, 1e-14);  // 2/8 of the way down: 5 - 4 * 0.25
  EXPECT_NEAR(scheduleLr(s, 9, 11), 1, 1e-14); // the end
  EXPECT_EQ(scheduleLr(s, 9, 100), 1);         // no decay asked for
}

TEST(Schedule, CycleDecaysAfterwards) {
  Schedule s = cycle();
  s.decayStepSize = 2;
  s.decayLrRate = 0.5;
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 12), 1 / (1 + 0.5 * 1 / 2)); // first step after 12: k = 1
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 15), 1 / (1 + 0.5 * 4 / 2)); // k = 4
}

TEST(Schedule, CycleStairsHoldTheRate) {
  Schedule s = cycle();
  s.firstStairCount = 2; // 4 steps up in 2 stairs
  s.secondStairCount = 4;
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 0), 1); // floor(1 * 2 / 4) / 2 = 0
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 1), 3); // floor(2 * 2 / 4) / 2 = 1/2
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 2), 3);
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 3), 5); // the top is a stair of its own
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 4), 4); // floor((12 - 5) * 4 / 8) / 4 = 3/4
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 5), 4); // floor((12 - 6) * 4 / 8) / 4 = 3/4
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 6), 3); // floor(5 * 4 / 8) / 4 = 2/4
}

TEST(Schedule, CycleMovesBeta1AgainstTheRate) {
  Schedule s = cycle();
  Betas base{0.9, 0.999};
  EXPECT_EQ(scheduleBetas(s, base, 3).beta1, 0.9); // not asked for
  EXPECT_EQ(scheduleBetas(s, base, 3).beta2, 0.999);
  s.cycleMomentum = true;
  EXPECT_EQ(scheduleBetas(s, base, -1).beta1, 0.8);           // DeepSpeed starts at the minimum
  EXPECT_NEAR(scheduleBetas(s, base, 0).beta1, 0.875, 1e-14); // 0.9 - 0.1 * 1/4
  EXPECT_NEAR(scheduleBetas(s, base, 3).beta1, 0.8, 1e-14);   // lowest where the rate is highest
  EXPECT_EQ(scheduleBetas(s, base, 3).beta2, 0.99);
  EXPECT_EQ(scheduleBetas(s, base, 50).beta1, 0.9);
  s.decayStepSize = 10;
  s.decayMomRate = 0.1;
  EXPECT_DOUBLE_EQ(scheduleBetas(s, base, 16).beta1, 0.9 * (1 + 0.1 * 5 / 10)); // k = 16 - 12 + 1
}

static Schedule warmup(Kind kind, Schedule::Ramp ramp) {
  Schedule s;
  s.kind = kind;
  s.ramp = ramp;
  s.warmupMinLr = 0.1;
  s.warmupMaxLr = 1.1;
  s.warmupNumSteps = 4;
  s.totalNumSteps = 8;
  return s;
}

TEST(Schedule, WarmupRampsThenStays) {
  Schedule s = warmup(Kind::WarmupLR, Schedule::Ramp::Linear);
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, -1), 0.1);
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 0), 0.1);        // 0/4
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 3), 0.1 + 0.75); // 3/4
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 4), 1.1);
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 1000), 1.1);
  s.ramp = Schedule::Ramp::Log;
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 0), 0.1);       // ln 1 = 0
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 1), 0.1 + 0.5); // ln 2 / ln 4 = 1/2
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 3), 1.1);       // ln 4 / ln 4
}

TEST(Schedule, WarmupDecayFallsToTheMinimum) {
  Schedule s = warmup(Kind::WarmupDecayLR, Schedule::Ramp::Linear);
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 3), 0.1 + 0.75);
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 4), 1.1);        // (8 - 4) / (8 - 4)
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 7), 0.1 + 0.25); // (8 - 7) / 4
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 8), 0.1);
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 20), 0.1); // never below
  s.totalNumSteps = 4;                         // no window: max(1, 4 - 4)
  EXPECT_DOUBLE_EQ(scheduleLr(s, 9, 4), 0.1);
}

TEST(Schedule, WarmupCosineIsAShareOfTheBaseRate) {
  Schedule s = warmup(Kind::WarmupCosineLR, Schedule::Ramp::Linear);
  s.warmupMinRatio = 0.2;
  s.cosMinRatio = 0.1;
  EXPECT_EQ(scheduleLr(s, 2, -1), 0);                // DeepSpeed starts at zero
  EXPECT_DOUBLE_EQ(scheduleLr(s, 2, 0), 2 * 0.2);    // the minimum
  EXPECT_DOUBLE_EQ(scheduleLr(s, 2, 2), 2 * 0.6);    // 0.2 + 2/4 * 0.8
  EXPECT_NEAR(scheduleLr(s, 2, 5), 2 * 0.55, 1e-15); // progress (5-4+1)/4 = 1/2: 0.1 + 0.9 * 0.5
  EXPECT_NEAR(scheduleLr(s, 2, 7), 2 * 0.1, 1e-15);  // progress 1: the floor
  EXPECT_NEAR(scheduleLr(s, 2, 11), 2 * 0.1, 1e-15); // and it stays there
}
