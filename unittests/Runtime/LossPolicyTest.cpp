//===- LossPolicyTest.cpp - When a run goes on, back, or ends ------------------===//
#include "Loss/LossGuard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace ds::rt {
namespace {

using testing::HasSubstr;

StepRecord stepOf(uint64_t step, double loss, double norm = 1) {
  StepRecord record;
  record.step = step;
  record.loss = loss;
  record.gradNorm = norm;
  return record;
}

StepRecord skippedStep(uint64_t step, std::optional<double> scale = {}) {
  StepRecord record = stepOf(step, NAN, NAN);
  record.skipped = true;
  record.lossScale = scale;
  return record;
}

LossRules onNan(LossAction action) {
  LossRules rules;
  rules.onNan = action;
  return rules;
}

/// Spikes are twice the median of the last four.
LossRules onSpike(LossAction action) {
  LossRules rules;
  rules.onSpike = action;
  rules.spikeFactor = 2;
  rules.spikeWindow = 4;
  return rules;
}

/// Feeds losses as steps 1, 2, ...; the first judgement that is not to go on.
Judgement feed(LossPolicy &policy, const std::vector<double> &losses) {
  Judgement judgement;
  for (size_t i = 0; i < losses.size() && judgement.action == LossAction::Continue; ++i)
    judgement = policy.judge(stepOf(i + 1, losses[i]));
  return judgement;
}

TEST(LossPolicy, LimitsTheLossWhereSpikesAreSkipped) {
  constexpr float kNone = std::numeric_limits<float>::max();
  LossPolicy policy(onSpike(LossAction::Skip)), stops(onSpike(LossAction::Stop));
  for (uint64_t step = 1; step <= 3; ++step) {
    policy.judge(stepOf(step, 3));
    EXPECT_EQ(policy.limit(), kNone) << "no window yet, behind step " << step;
  }
  feed(stops, {3, 3, 3, 3});
  policy.judge(stepOf(4, 0.1));
  EXPECT_EQ(policy.limit(), 6.0f); // twice the median of 3, 3, 3, 0.1
  EXPECT_EQ(stops.limit(), kNone);
  StepRecord spike = stepOf(5, 7);
  spike.skipped = spike.spiked = true;
  EXPECT_EQ(policy.judge(spike).action, LossAction::Skip);
  EXPECT_EQ(policy.limit(), 6.0f) << "a skipped loss is none of the last ones";
}

TEST(LossPolicy, RoundsItsLimitDown) {
  LossPolicy policy(onSpike(LossAction::Skip));
  for (uint64_t step = 1; step <= 4; ++step)
    policy.judge(stepOf(step, 0.1)); // 0.2 as f32 is above 0.2
  EXPECT_LE(double(policy.limit()), 2 * 0.1);
  EXPECT_GT(double(std::nextafter(policy.limit(), 1.0f)), 2 * 0.1);
}

TEST(LossPolicy, EndsWhenEveryLossIsASpike) {
  LossPolicy policy(onSpike(LossAction::Skip));
  StepRecord spike = stepOf(1, 7);
  spike.skipped = spike.spiked = true;
  for (uint32_t i = 1; i < LossPolicy::kMostSkips; ++i)
    EXPECT_EQ(policy.judge(spike).action, LossAction::Skip);
  const Judgement last = policy.judge(spike);
  EXPECT_EQ(last.action, LossAction::Stop);
  EXPECT_THAT(last.reason, HasSubstr("50 steps in a row were skipped for losses that are spikes"));
}

TEST(LossPolicy, StopsAtTheFirstLostNumber) {
  for (double lost : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    LossPolicy ofLoss({}), ofNorm({});
    EXPECT_EQ(ofLoss.judge(stepOf(1, 2)).action, LossAction::Continue);
    const Judgement byLoss = ofLoss.judge(stepOf(2, lost)), byNorm = ofNorm.judge(stepOf(1, 2, lost));
    EXPECT_EQ(byLoss.action, LossAction::Stop);
    EXPECT_THAT(byLoss.reason, HasSubstr("step 2: the loss is "));
    EXPECT_EQ(byNorm.action, LossAction::Stop);
    EXPECT_THAT(byNorm.reason, HasSubstr("step 1: the gradient norm is "));
  }
}

TEST(LossPolicy, GoesOnAfterASkippedStepWhateverItIsToDo) {
  for (LossAction action : {LossAction::Stop, LossAction::Skip, LossAction::Rollback}) {
    LossPolicy policy(onNan(action));
    EXPECT_EQ(policy.judge(skippedStep(1)).action, LossAction::Skip);
    EXPECT_EQ(policy.judge(stepOf(2, 3)).action, LossAction::Continue);
  }
}

/// The update has been made: the program found the gradients finite.
TEST(LossPolicy, CannotSkipALossThatIsLostWithoutItsGradients) {
  LossPolicy policy(onNan(LossAction::Skip));
  EXPECT_EQ(policy.judge(stepOf(1, NAN)).action, LossAction::Stop);
}

TEST(LossPolicy, EndsARunThatOnlySkips) {
  LossPolicy policy(onNan(LossAction::Skip));
  for (uint64_t step = 1; step < LossPolicy::kMostSkips; ++step)
    ASSERT_EQ(policy.judge(skippedStep(step)).action, LossAction::Skip) << step;
  const Judgement last = policy.judge(skippedStep(LossPolicy::kMostSkips));
  EXPECT_EQ(last.action, LossAction::Stop);
  EXPECT_THAT(last.reason, HasSubstr("step 50: 50 steps in a row were skipped"));
}

TEST(LossPolicy, CountsNoSkipsAcrossAGoodStep) {
  LossPolicy policy({});
  for (uint64_t step = 1; step < 4 * LossPolicy::kMostSkips; ++step) {
    const bool good = step % (LossPolicy::kMostSkips - 1) == 0;
    const Judgement judgement = policy.judge(good ? stepOf(step, 1) : skippedStep(step));
    ASSERT_EQ(judgement.action, good ? LossAction::Continue : LossAction::Skip) << step;
  }
}

/// Such a step has no numbers, and is none of those that are skipped for theirs.
TEST(LossPolicy, EndsARunThatFindsNoTargets) {
  StepRecord empty;
  empty.skipped = true;
  empty.targets = 0;
  LossPolicy policy({}), goesOn(onNan(LossAction::Continue));
  for (uint64_t step = 1; step < LossPolicy::kMostSkips; ++step) {
    empty.step = step;
    ASSERT_EQ(policy.judge(empty).action, LossAction::Skip) << step;
    ASSERT_EQ(goesOn.judge(empty).action, LossAction::Skip) << step;
  }
  StepRecord full = stepOf(LossPolicy::kMostSkips, 2);
  full.targets = 7;
  EXPECT_EQ(policy.judge(full).action, LossAction::Continue);
  for (uint32_t i = 1; i < LossPolicy::kMostSkips; ++i)
    ASSERT_EQ(policy.judge(empty).action, LossAction::Skip);
  const Judgement last = policy.judge(empty);
  EXPECT_EQ(last.action, LossAction::Stop);
  EXPECT_THAT(last.reason, HasSubstr("50 steps in a row had no target that counts"));
  EXPECT_THAT(last.hint, HasSubstr("loss_mask"));
  EXPECT_EQ(goesOn.judge(empty).action, LossAction::Skip);
}

/// From 2^127 down to 1 with hysteresis 2: DeepSpeed goes on as well.
TEST(LossPolicy, LetsALossScaleFall) {
  LossPolicy policy({});
  for (uint64_t step = 1; step <= 256; ++step)
    ASSERT_EQ(policy.judge(skippedStep(step, std::ldexp(1.0, 127 - int(step / 2)))).action, LossAction::Skip)
        << step;
}

TEST(LossPolicy, FindsASpikeAmongTheLastLosses) {
  LossPolicy policy(onSpike(LossAction::Stop));
  const Judgement judgement = feed(policy, {9, 1, 1, 1.1, 1.2, 2.2, 2.5});
  EXPECT_EQ(judgement.action, LossAction::Stop); // the last four are 1, 1.1, 1.2 and 2.2
  EXPECT_EQ(judgement.reason, "step 7: the loss is 2.5, more than 2 times 1.2, the median of the last 4");
}

TEST(LossPolicy, JudgesNoSpikeBeforeTheWindowIsFull) {
  LossPolicy policy(onSpike(LossAction::Stop));
  EXPECT_EQ(feed(policy, {1, 1, 1, 100}).action, LossAction::Continue);
}

TEST(LossPolicy, JudgesNoSpikeOfLossesBelowZero) {
  LossPolicy policy(onSpike(LossAction::Stop));
  EXPECT_EQ(feed(policy, {-1, -1, -1, -1, 5, -1}).action, LossAction::Continue);
}

TEST(LossPolicy, KnowsNoSpikesUnlessAsked) {
  LossPolicy policy({});
  EXPECT_EQ(feed(policy, std::vector<double>(200, 1)).action, LossAction::Continue);
  EXPECT_EQ(policy.judge(stepOf(201, 1e30)).action, LossAction::Continue);
}

TEST(LossPolicy, KeepsNoSpikeInItsWindow) {
  LossPolicy policy(onSpike(LossAction::Rollback));
  EXPECT_EQ(feed(policy, {1, 1, 1, 1, 50}).action, LossAction::Rollback);
  EXPECT_EQ(policy.judge(stepOf(6, 2.5)).action, LossAction::Rollback);
}

TEST(LossPolicy, EndsARunThatGoesBackToNoAvail) {
  LossPolicy policy(onNan(LossAction::Rollback));
  for (uint32_t i = 0; i < LossPolicy::kMostRollbacks; ++i) {
    ASSERT_EQ(policy.judge(stepOf(10, NAN)).action, LossAction::Rollback);
    ASSERT_EQ(policy.judge(stepOf(9, 1)).action, LossAction::Continue) << "no progress: 9 was there before";
  }
  const Judgement last = policy.judge(stepOf(10, NAN));
  EXPECT_EQ(last.action, LossAction::Stop);
  EXPECT_THAT(last.reason, HasSubstr("step 10: the loss is nan, and 3 rollbacks have not helped"));
}

TEST(LossPolicy, AllowsNewRollbacksAfterProgress) {
  LossPolicy policy(onNan(LossAction::Rollback));
  for (uint64_t step = 10; step < 100; step += 2) {
    ASSERT_EQ(policy.judge(stepOf(step, NAN)).action, LossAction::Rollback) << step;
    ASSERT_EQ(policy.judge(stepOf(step + 1, 1)).action, LossAction::Continue);
  }
}

TEST(LossGuard, GoesBackAndPassesOverTheDataOfTheStep) {
  std::vector<std::string> told;
  LossGuard guard(onNan(LossAction::Rollback), [&](const std::string &line) { told.push_back(line); });
  guard.restore = [](uint64_t &step) -> Status {
    step = 4;
    return {};
  };
  EXPECT_EQ(guard.batchOf(4), 4u);
  EXPECT_EQ(*guard.act(stepOf(6, 1)), 6u);
  EXPECT_EQ(*guard.act(stepOf(7, NAN)), 4u);
  // Steps 5, 6 and 7 were batches 4, 5 and 6: step 5 now reads batch 7.
  EXPECT_EQ(guard.batchOf(4), 7u);
  EXPECT_THAT(told, testing::ElementsAre("step 7: the loss is nan: back to the checkpoint of step 4; the "
                                         "data continue after step 7's"));
}

TEST(LossGuard, EndsARunThatCannotGoBack) {
  LossGuard guard(onNan(LossAction::Rollback), {});
  guard.restore = [](uint64_t &) -> Status { return Error{ExitCode::Io, "no checkpoint", ""}; };
  const Result<uint64_t> done = guard.act(stepOf(3, NAN));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ExitCode::Io);
  EXPECT_EQ(done.error().message, "step 3: the loss is nan; going back: no checkpoint");
  EXPECT_EQ(guard.passedOver, 0u);
}

TEST(LossGuard, EndsWithTheCodeOfADivergedRun) {
  LossGuard guard({}, {});
  const Result<uint64_t> done = guard.act(stepOf(3, NAN));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ExitCode::Diverged);
}

} // namespace
} // namespace ds::rt
