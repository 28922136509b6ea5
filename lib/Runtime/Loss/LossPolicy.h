//===- LossPolicy.h - Judges what a step has computed --------------------------===//
//
// Losses and norms are the same bits on every rank, so that every rank comes to the same judgement without
// asking.
//
// A program with loss scaling, or in bf16, keeps its states where gradients are not finite. That is no
// divergence, however the run was started: the scale falls, or the next batch is better. Where neither comes
// true for kMostSkips steps in a row, the run would go on for ever without learning anything, and is treated
// as one that has diverged. So are kMostSkips steps in a row without a target: the data are not what the user
// thinks they are.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_LOSS_LOSSPOLICY_H
#define DS_LIB_RUNTIME_LOSS_LOSSPOLICY_H

#include "ds/Runtime/Formats/JsonLog.h"
#include "ds/Runtime/Job/LossRules.h"

#include <string>
#include <vector>

namespace ds::rt {

/// What to do, and why where that is not to go on.
struct Judgement {
  LossAction action = LossAction::Continue;
  std::string reason; ///< "step 3: the loss is nan"
  /// For a run that ends.
  std::string hint = "lower the learning rate, clip gradients, or look for bad samples in this batch";
};

/// The rules in a line, which is the same where they are.
std::string spell(const LossRules &rules);

class LossPolicy {
public:
  /// Steps in a row that the program may skip while its loss scale does not fall.
  static constexpr uint32_t kMostSkips = 50;
  /// Rollbacks without a step in between that comes further than the one that was judged.
  static constexpr uint32_t kMostRollbacks = 3;

  explicit LossPolicy(const LossRules &rules) : rules(rules) {}

  /// The largest loss of the next step that is no spike, where spikes are to be skipped; else that of f32.
  float limit() const;

  /// Judges a finished step. Asks for no Rollback beyond kMostRollbacks, but for Stop.
  Judgement judge(const StepRecord &record);

private:
  Judgement judgeSkipped(const StepRecord &record);
  Judgement judgeWithoutTargets(const StepRecord &record);
  Judgement answer(LossAction action, uint64_t step, std::string reason);
  void keep(const StepRecord &record);
  bool isSpike(double loss) const;
  double median() const;

  const LossRules rules;
  std::vector<double> losses;  ///< the last ones, at most spikeWindow, in no order
  size_t oldest = 0;           ///< of losses, once they are spikeWindow
  uint32_t skips = 0;          ///< in a row
  uint32_t withoutTargets = 0; ///< steps in a row
  double scale = 0;            ///< at the last of them
  uint32_t rollbacks = 0;      ///< without progress
  uint64_t furthest = 0;       ///< the last step that one was for
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_LOSS_LOSSPOLICY_H
