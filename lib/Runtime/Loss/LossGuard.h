//===- LossGuard.h - Acts on what is judged of a step's loss -------------------===//
//
// After a rollback the same data would end in the same place, for a run repeats its bits. So the data go on
// behind the step that was judged: from then on step n reads the batch of step n + passedOver.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_LOSS_LOSSGUARD_H
#define DS_LIB_RUNTIME_LOSS_LOSSGUARD_H

#include "LossPolicy.h"

#include <functional>

namespace ds::rt {

class LossGuard {
public:
  /// Brings all states back to those of a checkpoint and says after which step that was made. Every rank
  /// calls it at the same point of its run.
  using Restore = std::function<Status(uint64_t &step)>;
  using Tell = std::function<void(const std::string &line)>;

  /// `tell` takes lines for the log; one rank has one.
  LossGuard(const LossRules &rules, Tell tell) : policy(rules), tell(std::move(tell)) {}

  /// Acts on a finished step: returns how many steps the states have behind them now, which are those of
  /// `record` unless it went back; ExitCode::Diverged where the run ends.
  Result<uint64_t> act(const StepRecord &record);

  /// What LossPolicy::limit says.
  float limit() const { return policy.limit(); }

  /// Which batch of the data step `index`, from 0, reads.
  uint64_t batchOf(uint64_t index) const { return index + passedOver; }

  Restore restore; ///< not empty where rules ask for rollbacks
  /// Batches that rollbacks have left behind. Checkpoints keep it: their position in the data is that of a
  /// batch.
  uint64_t passedOver = 0;

private:
  Result<uint64_t> goBack(const StepRecord &record, const std::string &reason);

  LossPolicy policy;
  Tell tell;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_LOSS_LOSSGUARD_H
