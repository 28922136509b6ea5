//===- Run.h - One run of one rank ------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_RUN_H
#define DS_LIB_RUNTIME_TRAINING_RUN_H

#include "Job/Team.h"
#include "Loss/Diagnostics.h"
#include "Loss/LossGuard.h"
#include "Monitor/Monitors.h"
#include "ReplicaCheck.h"
#include "Saving/Checkpointer.h"
#include "Saving/Resume.h"
#include "StepLine.h"
#include "Targets.h"

#include "ds/Runtime/Data/DataSource.h"
#include "ds/Runtime/Engine/Device.h"
#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Files/StorageWatch.h"
#include "ds/Runtime/Formats/ChromeTrace.h"
#include "ds/Runtime/Formats/JsonLog.h"

#include <memory>
#include <optional>
#include <string>

namespace ds::rt {

/// One run of one rank: the open files and the loaded program.
/// Size: setting up, the loop over steps and what is told of them are still one class.
class Run {
public:
  Run(const TrainOptions &options, Team &team);

  Status prepare();
  Status explain();
  Status steps();
  /// What `--eval-only` asks for.
  Status evaluateAlone();
  Status finish();
  Status writeTrace() const { return trace ? trace->write(tracePath(options.trace, team.rank())) : Status(); }

private:
  Result<Program> open();
  Status prepareFrom(Program program);
  Status goOn(const Program &program);
  Status openFiles(const Program &program);
  Status openData(const Program &program);
  Status openHeldOut(const Program &program);
  Status load(Program program);
  Status loadStates();
  Status layOutSchedule();
  Status initialize();
  Status openLog(const std::string &path);
  Status openLogs();
  Status agree();
  Result<std::string> sampleSign(DataSource &source);
  void startTrace();
  void startReplicaCheck();
  Status step(uint64_t index);
  Result<StepRecord> make(uint64_t index);
  Result<StepRecord> makeOnly(uint64_t index, int64_t begin);
  Status endStep(StepRecord &record, uint64_t index);
  /// What there is to do about checkpoints after a step, as some rank sees it.
  struct SaveNeeds {
    bool isDue = false;  ///< one is to be begun
    bool isBusy = false; ///< one is still being written
  };
  Status agreeToStop();
  Result<SaveNeeds> agreeAfterStep();
  Status saveIfDue(const SaveNeeds &needs);
  /// What LossGuard::restore does.
  Status goBack(uint64_t &step);
  RunPosition position() const;
  uint64_t samplesSeen() const { return data->position(guard.batchOf(stepsDone)); }
  uint64_t tokensSeen() const { return tokensBefore + tokens * (guard.batchOf(stepsDone) - firstStep); }
  uint64_t stepsToMake() const;
  std::string spellNothingLeft() const;
  void addCommunication(StepRecord &record);
  void diagnose(const Error &why) const;
  Status nameLostNumber(const StepRecord &record, uint64_t index);
  Result<bool> restoreBefore(const StepRecord &record, uint64_t index);
  void addGraph(StepRecord &record);
  void addPosition(StepRecord &record) const;
  void tell(const StepRecord &record);
  bool isProfiled(uint64_t index) const;
  void profile(uint64_t index, double seconds, const std::vector<Timing> &timings) const;
  Status evaluateInto(std::optional<double> &loss);
  Error interruption() const;
  Status fill(DataSource &source, uint64_t step, uint32_t microBatch) {
    const StorageOperation reading("reading", options.data);
    return source.fill(step, microBatch, executor->dataPosition(), executor->inputs(microBatch));
  }
  bool evaluatesAfter(uint64_t index) const {
    const bool last = index + 1 == numSteps;
    return evalData && !stopping && (last || (options.evalEvery > 0 && (index + 1) % options.evalEvery == 0));
  }

  const TrainOptions &options;
  Team &team;
  Resume resume;
  std::unique_ptr<Checkpointer> checkpointer; ///< null without --save
  std::unique_ptr<Device> device;             ///< null: the CPU
  std::unique_ptr<Executor> executor;
  std::optional<DataSource> data, evalData;
  std::optional<JsonLog> log;
  std::optional<Monitors> monitors;
  std::optional<StepLine> line;        ///< on rank 0
  std::optional<PrintedSteps> printed; ///< likewise
  std::optional<ChromeTrace> trace;
  std::string programSign; ///< digest; empty with one rank
  std::string weights;     ///< where they come from, for the head
  std::string weightsPath; ///< empty: from the seed
  uint64_t seed = 0;
  uint64_t numSteps = 0;
  uint64_t tokens = 0, tokensBefore = 0; ///< of a step; of runs before this one
  uint64_t firstStep = 0, stepsDone = 0; ///< those of runs before this one included
  CommTotals communicated;               ///< until the last step's end
  LossGuard guard;
  std::optional<Targets> targets; ///< once the program is loaded
  std::optional<ReplicaCheck> replicas;
  Diagnostics diagnostics;
  bool stopping = false; ///< some rank was asked to end
  bool toldOfGraph = false, toldOfLoss = false;
  std::optional<float> lossLimit; ///< that was set last
  std::optional<double>
      lossScale; ///< that the next step begins with; none: not known, or the program has none
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_RUN_H
