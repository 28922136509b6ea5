//===- LossRules.h - What a run does about a loss that it should not have ------===//
#ifndef DS_RUNTIME_JOB_LOSSRULES_H
#define DS_RUNTIME_JOB_LOSSRULES_H

#include <cstdint>

namespace ds::rt {

enum class LossAction : uint8_t {
  Continue,
  Skip,     ///< go on with the states of before the step, which the program itself has kept
  Rollback, ///< go back to the last checkpoint, and on with the data behind the step
  Stop,     ///< end the run with ExitCode::Diverged
};

struct LossRules {
  LossAction onNan =
      LossAction::Stop; ///< of a loss or a norm of gradients that is not finite; any but Continue
  LossAction onSpike = LossAction::Stop; ///< any but Continue
  double spikeFactor = 0;     ///< a loss this many times the median of the last ones; 0: none is too large
  uint32_t spikeWindow = 100; ///< the last ones: steps whose updates were kept
};

} // namespace ds::rt

#endif // DS_RUNTIME_JOB_LOSSRULES_H
