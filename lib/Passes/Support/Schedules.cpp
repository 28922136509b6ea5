//===- Schedules.cpp - The learning rate of a step ------------------------------===//
//
// DeepSpeed's engine steps the optimizer first and the scheduler after it, and a scheduler's constructor sets
// the rate of the first step. With s finished steps, the next one therefore uses the scheduler's formula at t
// = s - 1, and for s = 0 what the constructor set: the minimum of the warm-ups, the range test and the cycle,
// but 0 for WarmupCosineLR. A warm-up from 0 thus spends two steps at 0. Stair counts of OneCycle are read by
// DeepSpeed but used nowhere; they are not modelled.
//
//===----------------------------------------------------------------------------===//
#include "Schedules.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ds;

namespace {
/// The formulas, over the number of finished steps `s` and t = s - 1.
class ScheduleBuilder {
public:
  ScheduleBuilder(ScalarMath &math, const TrainingOptions &options, Scalar finished, Scalar total)
      : math(math), schedule(options.schedule), optimizer(options.optimizer), s(finished),
        t(math.sub(finished, 1.0)), total(total) {}

  StepRates build();

private:
  /// from + (to - from) * share.
  Scalar between(double from, double to, Scalar share) { return math.add(math.mul(to - from, share), from); }
  int64_t warmupLength() const { return std::max<int64_t>(schedule.warmupSteps, 2); }

  Scalar warmupShare(Scalar afterwards);
  Scalar warmupDecay();
  Scalar warmupCosine();
  Scalar rangeTest();
  void oneCycle(StepRates &rates);
  Scalar cycleHeight(double first, double second);
  Scalar decay(double total, double rate);

  ScalarMath &math;
  const ScheduleOptions &schedule;
  const OptimizerOptions &optimizer;
  Scalar s, t, total;
};
} // namespace

/// log(t + 1) / log N or t / N while t < N, then `afterwards`; 0 before the first step is finished.
Scalar ScheduleBuilder::warmupShare(Scalar afterwards) {
  double length = warmupLength();
  Scalar share = schedule.logarithmic ? math.mul(math.log(math.max(s, 1.0)), 1.0 / std::log(length))
                                      : math.div(math.max(t, 0.0), length);
  return math.choose(Predicate::LT, t, length, share, afterwards);
}

/// (T - t) / (T - N), not below 0.
Scalar ScheduleBuilder::warmupDecay() {
  Scalar length = math.max(math.sub(total, static_cast<double>(warmupLength())), 1.0);
  return warmupShare(math.max(math.div(math.sub(total, t), length), 0.0));
}

/// A ratio of the optimizer's rate: warm-up from the minimum ratio to 1, then half a cosine down to the
/// floor.
Scalar ScheduleBuilder::warmupCosine() {
  double warmup = warmupLength();
  Scalar length = math.max(math.sub(total, warmup), 1.0);
  double floor = schedule.cosineMinRatio;
  Scalar progress = math.min(math.div(math.sub(t, warmup - 1), length), 1.0);
  Scalar wave = math.div(math.add(math.cos(math.mul(progress, M_PI)), 1.0), 2.0);
  Scalar falling = math.max(between(floor, 1.0, wave), 0.0);
  Scalar rising = between(schedule.warmupMinRatio, 1.0, warmupShare(1.0));
  Scalar ratio = math.choose(Predicate::LT, t, warmup, rising, falling);
  return math.choose(Predicate::GT, s, 0.0, math.mul(ratio, optimizer.rate), 0.0);
}

/// min (1 + rate x), x being the finished steps in units of the step size.
Scalar ScheduleBuilder::rangeTest() {
  Scalar x = math.div(s, static_cast<double>(schedule.rangeSteps));
  if (schedule.rangeStaircase)
    x = math.floor(x);
  return math.mul(math.add(math.mul(x, schedule.rangeRate), 1.0), schedule.rangeMinRate);
}

/// How far up the cycle is: 0 at its ends, 1 at its peak.
Scalar ScheduleBuilder::cycleHeight(double first, double second) {
  double total = first + second;
  Scalar place = math.sub(s, math.mul(math.floor(math.div(s, total)), total));
  auto share = [&](Scalar position, double length, int64_t stairs) {
    if (stairs <= 0)
      return math.div(position, length);
    Scalar stair = math.floor(math.div(math.mul(position, static_cast<double>(stairs)), length));
    return math.div(stair, static_cast<double>(stairs));
  };
  return math.choose(Predicate::LE, place, first, share(place, first, schedule.firstStairs),
                     share(math.sub(total, place), second, schedule.secondStairs));
}

/// 1 + rate * intervals since the cycle's end; 1 where the decay is switched off.
Scalar ScheduleBuilder::decay(double total, double rate) {
  if (rate == 0 || schedule.decaySteps == 0)
    return 1.0;
  return math.add(math.mul(math.sub(s, total), rate / schedule.decaySteps), 1.0);
}

/// The rate goes up and down; beta1, of optimizers with betas, down and up, and their beta2 is DeepSpeed's
/// 0.99.
void ScheduleBuilder::oneCycle(StepRates &rates) {
  double first = schedule.firstSteps, second = schedule.secondSteps ? schedule.secondSteps : first;
  double total = first + second;
  Scalar height = cycleHeight(first, second);
  rates.rate =
      math.choose(Predicate::LT, t, total, between(schedule.cycleMinRate, schedule.cycleMaxRate, height),
                  math.div(schedule.cycleMinRate, decay(total, schedule.decayRate)));
  if (!schedule.cycleMomentum)
    return;
  double low = schedule.cycleMinMomentum, high = schedule.cycleMaxMomentum;
  Scalar cycled = math.choose(Predicate::LT, t, total, between(high, low, height),
                              math.mul(high, decay(total, schedule.decayMomentumRate)));
  rates.beta1 = math.choose(Predicate::GT, s, 0.0, cycled, low);
  rates.beta2 = 0.99;
}

StepRates ScheduleBuilder::build() {
  StepRates rates{optimizer.rate, optimizer.beta1, optimizer.beta2};
  switch (schedule.kind) {
  case ScheduleOptions::Kind::Constant:
    break;
  case ScheduleOptions::Kind::RangeTest:
    rates.rate = rangeTest();
    break;
  case ScheduleOptions::Kind::OneCycle:
    oneCycle(rates);
    break;
  case ScheduleOptions::Kind::Warmup:
    rates.rate = between(schedule.warmupMinRate, schedule.warmupMaxRate, warmupShare(1.0));
    break;
  case ScheduleOptions::Kind::WarmupDecay:
    rates.rate = between(schedule.warmupMinRate, schedule.warmupMaxRate, warmupDecay());
    break;
  case ScheduleOptions::Kind::WarmupCosine:
    rates.rate = warmupCosine();
    break;
  }
  return rates;
}

StepRates mlir::ds::buildStepRates(ScalarMath &math, const TrainingOptions &options, Scalar finished,
                                   Scalar total) {
  return ScheduleBuilder(math, options, finished, total).build();
}
