//===- Schedule.cpp - DeepSpeed's learning-rate schedulers --------------------------===//
//
// The arithmetic follows DeepSpeed 0.19.6 operation by operation where the order of roundings shows (stairs,
// the turning points of a cycle), so that a curve can be compared to the last bit of a double.
//
//===---------------------------------------------------------------------------===//
#include "ds/Config/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ds::config {

/// Beta2 under a cycled momentum.
static constexpr double kCycledBeta2 = 0.99;

/// LRRangeTest: grows without bound from the minimum, linearly or in stairs.
static double rangeTestLr(const Schedule &s, int64_t t) {
  if (t < 0)
    return s.minLr;
  double interval = double(t + 1) / double(s.stepSize);
  if (s.staircase)
    interval = std::floor(interval);
  return s.minLr * (1 + s.stepRate * interval);
}

/// OneCycle's position between minimum (0) and maximum (1) while the cycle lasts.
static double cycleScale(const Schedule &s, int64_t t) {
  double first = double(s.firstStepSize), second = double(s.secondStepSize);
  double total = first + second, ratio = first / total;
  double iteration = double(t + 1);
  double cycle = std::floor(1 + iteration / total);
  double x = 1.0 + iteration / total - cycle;
  bool rising = x <= ratio;
  double scale = rising ? x / ratio : (x - 1) / (ratio - 1);
  int64_t stairs = rising ? s.firstStairCount : s.secondStairCount;
  if (stairs <= 0)
    return scale;
  // The stair is counted from the integer offset: the scale above may lie an ulp below an exact stair.
  double offset = std::fmod(iteration, total);
  double position =
      offset <= first ? offset * double(stairs) / first : (total - offset) * double(stairs) / second;
  return std::floor(position) / double(stairs);
}

/// The steps since the cycle ended, from 1; 0 or less while it lasts.
static int64_t stepsAfterCycle(const Schedule &s, int64_t t) {
  return t - (s.firstStepSize + s.secondStepSize) + 1;
}

static double oneCycleLr(const Schedule &s, int64_t t) {
  if (t < 0)
    return s.cycleMinLr;
  int64_t after = stepsAfterCycle(s, t);
  if (after <= 0)
    return s.cycleMinLr + (s.cycleMaxLr - s.cycleMinLr) * cycleScale(s, t);
  if (s.decayStepSize == 0 || s.decayLrRate == 0)
    return s.cycleMinLr;
  return s.cycleMinLr / (1 + s.decayLrRate * (double(after) / double(s.decayStepSize)));
}

/// The warm-up's position between its minimum (0) and maximum (1), for 0 <= t < warmupNumSteps.
static double warmupShare(const Schedule &s, int64_t t) {
  if (s.ramp == Schedule::Ramp::Log)
    return 1.0 / std::log(double(s.warmupNumSteps)) * std::log(double(t + 1));
  return double(t) / double(s.warmupNumSteps);
}

/// WarmupLR and WarmupDecayLR differ in what follows the warm-up.
static double warmupLr(const Schedule &s, int64_t t) {
  if (t < 0)
    return s.warmupMinLr;
  double share = 1;
  if (t < s.warmupNumSteps)
    share = warmupShare(s, t);
  else if (s.kind == Schedule::Kind::WarmupDecayLR)
    share = std::max(0.0,
                     double(s.totalNumSteps - t) / std::max(1.0, double(s.totalNumSteps - s.warmupNumSteps)));
  return s.warmupMinLr + (s.warmupMaxLr - s.warmupMinLr) * share;
}

static double cosineRatio(const Schedule &s, int64_t t) {
  if (t < 0)
    return 0;
  if (t < s.warmupNumSteps)
    return s.warmupMinRatio + warmupShare(s, t) * (1 - s.warmupMinRatio);
  double window = double(std::max<int64_t>(1, s.totalNumSteps - s.warmupNumSteps));
  double progress = std::min(1.0, double(t - s.warmupNumSteps + 1) / window);
  double ratio = (1 + std::cos(std::numbers::pi * progress)) / 2;
  return std::max(0.0, s.cosMinRatio + (1 - s.cosMinRatio) * ratio);
}

double scheduleLr(const Schedule &schedule, double baseLr, int64_t t) {
  switch (schedule.kind) {
  case Schedule::Kind::None:
    return baseLr;
  case Schedule::Kind::LRRangeTest:
    return rangeTestLr(schedule, t);
  case Schedule::Kind::OneCycle:
    return oneCycleLr(schedule, t);
  case Schedule::Kind::WarmupLR:
  case Schedule::Kind::WarmupDecayLR:
    return warmupLr(schedule, t);
  case Schedule::Kind::WarmupCosineLR:
    return baseLr * cosineRatio(schedule, t);
  }
  return baseLr;
}

Betas scheduleBetas(const Schedule &schedule, Betas base, int64_t t) {
  const Schedule &s = schedule;
  if (s.kind != Schedule::Kind::OneCycle || !s.cycleMomentum)
    return base;
  if (t < 0)
    return {s.cycleMinMom, kCycledBeta2};
  int64_t after = stepsAfterCycle(s, t);
  if (after <= 0)
    return {s.cycleMaxMom - (s.cycleMaxMom - s.cycleMinMom) * cycleScale(s, t), kCycledBeta2};
  if (s.decayStepSize == 0 || s.decayMomRate == 0)
    return {s.cycleMaxMom, kCycledBeta2};
  return {s.cycleMaxMom * (1 + s.decayMomRate * (double(after) / double(s.decayStepSize))), kCycledBeta2};
}

} // namespace ds::config
