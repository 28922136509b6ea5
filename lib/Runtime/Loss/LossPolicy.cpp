//===- LossPolicy.cpp - Judges what a step has computed ------------------------===//
#include "LossPolicy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ds::rt {

/// What of a step is not finite; empty if nothing is. An activation may hide a NaN from the loss: the
/// gradients still have it.
static std::string describeLostNumber(const StepRecord &record) {
  if (record.loss && !std::isfinite(*record.loss))
    return fmt::format("the loss is {}", *record.loss);
  if (record.gradNorm && !std::isfinite(*record.gradNorm))
    return fmt::format("the gradient norm is {}", *record.gradNorm);
  return {};
}

std::string spell(const LossRules &rules) {
  static constexpr const char *kActions[] = {"continue", "skip", "rollback", "stop"};
  const auto word = [](LossAction action) { return kActions[static_cast<uint8_t>(action)]; };
  if (rules.spikeFactor == 0)
    return fmt::format("{}, no spikes", word(rules.onNan));
  return fmt::format("{}, {} at {} times the median of {}", word(rules.onNan), word(rules.onSpike),
                     rules.spikeFactor, rules.spikeWindow);
}

Judgement LossPolicy::judge(const StepRecord &record) {
  if (record.targets == 0)
    return judgeWithoutTargets(record);
  withoutTargets = 0;
  if (record.skipped.value_or(false))
    return judgeSkipped(record);
  skips = 0;
  if (const std::string lost = describeLostNumber(record); !lost.empty()) {
    // Gradients that the program has found finite have changed the states: there is nothing to skip.
    const LossAction action = rules.onNan == LossAction::Skip ? LossAction::Stop : rules.onNan;
    return answer(action, record.step, lost);
  }
  if (record.loss && isSpike(*record.loss))
    return answer(rules.onSpike, record.step,
                  fmt::format("the loss is {:g}, more than {:g} times {:g}, the median of the last {}",
                              *record.loss, rules.spikeFactor, median(), losses.size()));
  keep(record);
  return {};
}

float LossPolicy::limit() const {
  constexpr float kNone = std::numeric_limits<float>::max();
  if (rules.onSpike != LossAction::Skip || rules.spikeFactor == 0 || losses.size() < rules.spikeWindow)
    return kNone;
  const double bound = rules.spikeFactor * median();
  if (!(bound > 0) || bound >= kNone)
    return kNone;
  const auto rounded = static_cast<float>(bound); // upwards it would let a spike pass
  return rounded > bound ? std::nextafter(rounded, 0.0f) : rounded;
}

Judgement LossPolicy::judgeSkipped(const StepRecord &record) {
  const double now = record.lossScale.value_or(1);
  const bool fell = skips > 0 && now < scale;
  scale = now;
  skips = fell ? 1 : skips + 1;
  const std::string reason =
      fmt::format("{} steps in a row were skipped for {}", skips,
                  record.spiked ? "losses that are spikes" : "gradients that are not finite");
  if (skips < kMostSkips)
    return {LossAction::Skip, fmt::format("step {}: {}", record.step, reason)};
  skips = 0;
  return answer(rules.onNan == LossAction::Skip ? LossAction::Stop : rules.onNan, record.step, reason);
}

/// Such a step is none of the skipped ones in a row: it says nothing of gradients. Going back would help
/// nothing.
Judgement LossPolicy::judgeWithoutTargets(const StepRecord &record) {
  const std::string reason =
      fmt::format("step {}: {} steps in a row had no target that counts", record.step, ++withoutTargets);
  if (withoutTargets < kMostSkips || rules.onNan == LossAction::Continue)
    return {LossAction::Skip, reason};
  return {LossAction::Stop, reason,
          "look at the data's loss_mask or labels, and at --document-token: what leaves a target out"};
}

Judgement LossPolicy::answer(LossAction action, uint64_t step, std::string reason) {
  reason = fmt::format("step {}: {}", step, reason);
  if (action != LossAction::Rollback)
    return {action, std::move(reason)};
  furthest = std::max(furthest, step);
  if (++rollbacks > kMostRollbacks)
    return {LossAction::Stop, fmt::format("{}, and {} rollbacks have not helped", reason, kMostRollbacks)};
  return {LossAction::Rollback, std::move(reason)};
}

/// Takes a good step's loss into the window.
void LossPolicy::keep(const StepRecord &record) {
  if (record.step > furthest)
    rollbacks = 0;
  if (!record.loss || rules.spikeFactor == 0)
    return;
  if (losses.size() < rules.spikeWindow) {
    losses.push_back(*record.loss);
    return;
  }
  losses[oldest] = *record.loss;
  oldest = (oldest + 1) % losses.size();
}

/// Only against a full window, and only above 0: a factor says nothing of other losses.
bool LossPolicy::isSpike(double loss) const {
  if (rules.spikeFactor == 0 || losses.size() < rules.spikeWindow)
    return false;
  const double usual = median();
  return usual > 0 && loss > rules.spikeFactor * usual;
}

double LossPolicy::median() const {
  std::vector<double> sorted = losses;
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

} // namespace ds::rt
