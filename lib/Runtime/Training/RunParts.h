//===- RunParts.h - What a run works with ---------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_RUNPARTS_H
#define DS_LIB_RUNTIME_TRAINING_RUNPARTS_H

#include "Engine/LateUpdates.h"
#include "Process/PhaseClock.h"
#include "RunData.h"
#include "RunStart.h"
#include "Saving/Checkpointer.h"
#include "Targets.h"

#include "ds/Runtime/Engine/Device.h"
#include "ds/Runtime/Engine/Executor.h"

#include <memory>
#include <optional>

namespace ds::rt {

/// Open files and the loaded program, as preparation leaves them.
struct RunParts {
  RunParts(const TrainOptions &options, Team &team)
      : options(options), team(team), start(options, team), data(options, team) {}

  const Program &program() const { return executor->program(); }

  const TrainOptions &options;
  Team &team;
  RunStart start;
  RunData data;
  std::unique_ptr<Checkpointer> checkpointer; ///< null without --save
  std::unique_ptr<Device> device;             ///< null: the CPU
  PhaseClock clock;                           ///< of what comes before the first step
  std::unique_ptr<Executor> executor;
  LateUpdates late;               ///< that its steps leave
  std::optional<Targets> targets; ///< once the program is loaded
  uint64_t numSteps = 0;          ///< that the run ends behind, those of runs before it included
};

/// The stage of `program` that this rank of the team runs, on `device`; null: the CPU. Both outlive it.
/// `clock`, if there is one, is told what loading consists of.
Result<std::unique_ptr<Executor>> loadExecutor(Program program, const TrainOptions &options, Team &team,
                                               Device *device, PhaseClock *clock = nullptr);

/// Opens, loads and checks everything before the first step, and agrees on it with all ranks.
Status prepareRun(RunParts &run);

/// What `--dry-run` asks for.
Status explainRun(RunParts &run);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_RUNPARTS_H
