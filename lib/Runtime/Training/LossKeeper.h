//===- LossKeeper.h - What a run does about its losses ----------------------------------===//
//
// Rules decide (LossGuard.h); here is what they need of a run: the way back to a checkpoint, the limit that
// the program is told, the first number that was lost, and what is left behind when the run ends for it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_LOSSKEEPER_H
#define DS_LIB_RUNTIME_TRAINING_LOSSKEEPER_H

#include "Loss/Diagnostics.h"
#include "Loss/LossGuard.h"
#include "RunParts.h"

#include <optional>

namespace ds::rt {

class LossKeeper {
public:
  /// `run` outlives the keeper.
  explicit LossKeeper(RunParts &run);

  /// Before the first step, behind `step` others. Collective.
  Status begin(uint64_t step);
  /// What the loss scale is before the next step; none: not known, or the program has none.
  std::optional<double> scale() const { return lossScale; }
  /// Which batch of the data step `index`, from 0, reads.
  uint64_t batchOf(uint64_t index) const { return guard.batchOf(index); }

  /// Tells the program the limit of the next step, where it has changed.
  Status setLimit();
  /// Acts on the finished step `index`: returns how many steps the states have behind them now.
  Result<uint64_t> act(const StepRecord &record, uint64_t index);
  /// Writes down what can be known of numbers that end the run. That it cannot be written is no other end.
  void diagnose(const Error &why) const;

private:
  Status goBack(uint64_t &step);
  Result<bool> restoreBefore(const StepRecord &record, uint64_t index);
  Status nameLostNumber(const StepRecord &record, uint64_t index);

  RunParts &run;
  LossGuard guard;
  Diagnostics diagnostics;
  bool toldOfLoss = false;
  std::optional<float> lossLimit; ///< that was set last
  std::optional<double> lossScale;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_LOSSKEEPER_H
