//===- Run.h - The steps of one run of one rank -----------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_RUN_H
#define DS_LIB_RUNTIME_TRAINING_RUN_H

#include "Evaluation.h"
#include "LossKeeper.h"
#include "ReplicaCheck.h"
#include "RunParts.h"
#include "RunReport.h"

#include <optional>

namespace ds::rt {

class Run {
public:
  /// Of what prepareRun has made, which outlives the run.
  explicit Run(RunParts &parts) : parts(parts), report(parts), losses(parts), stepsDone(parts.start.step()) {
    if (const Checkpoint *from = parts.start.checkpoint())
      evaluations = from->manifest().evaluations;
  }

  /// All steps and what follows them, or what `--eval-only` asks for.
  Status make();

private:
  Status steps();
  Status evaluateAlone();
  Status finish();
  void startReplicaCheck();
  Status step(uint64_t index);
  Result<StepRecord> makeStep(uint64_t index);
  Result<StepRecord> compute(uint64_t index, int64_t begin);
  Status endStep(StepRecord &record, uint64_t index);
  /// What there is to do about checkpoints after a step, as some rank sees it.
  struct SaveNeeds {
    bool isDue = false;  ///< one is to be begun
    bool isBusy = false; ///< one is still being written
  };
  Status agreeToStop();
  Result<SaveNeeds> agreeAfterStep();
  Status saveIfDue(const SaveNeeds &needs);
  bool evaluatesAfter(uint64_t index) const;
  Status evaluateAfterStep(StepRecord &record, SaveNeeds &needs);
  uint64_t samplesSeen() const { return parts.data.training().position(losses.batchOf(stepsDone)); }
  uint64_t tokensSeen() const {
    return parts.start.tokens() + tokens * (losses.batchOf(stepsDone) - parts.start.step());
  }
  RunPosition position() const;
  void addPosition(StepRecord &record) const;
  Error interruption() const;

  RunParts &parts;
  RunReport report;
  LossKeeper losses;
  std::optional<ReplicaCheck> replicas;
  Evaluation heldOut{parts, [this]() -> Result<bool> {
                       const Status agreed = agreeToStop();
                       return agreed ? Result<bool>(stopping) : Result<bool>(agreed.error());
                     }};
  std::vector<EvalLoss> evaluations; ///< after stepsDone; empty: they were not evaluated
  uint64_t tokens = 0;               ///< of a step
  uint64_t stepsDone;                ///< those of runs before this one included
  bool stopping = false;             ///< some rank was asked to end
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_RUN_H
