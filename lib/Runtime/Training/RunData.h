//===- RunData.h - What a run reads ----------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_RUNDATA_H
#define DS_LIB_RUNTIME_TRAINING_RUNDATA_H

#include "RunStart.h"

#include "ds/Runtime/Data/DataSource.h"

#include <optional>
#include <vector>

namespace ds::rt {

/// Where `executor` wants the data of a micro-batch, by the inputs of all stages (inputSpecs); null for those
/// that only others have.
std::vector<void *> destinationsOf(const Executor &executor, uint32_t microBatch);

/// Data whose loss is asked for, by their name.
struct HeldOut {
  std::string name; ///< EvalData::name
  DataSource source;
};

class RunData {
public:
  RunData(const TrainOptions &options, Team &team) : options(options), team(team) {}

  /// Opens what `options` name, for a run that begins at `start`.
  Status open(const Program &program, const RunStart &start);

  /// The data of the steps; not there for an evaluation alone.
  DataSource &training() { return *data; }
  const DataSource &training() const { return *data; }
  /// In the order of the command line; for an evaluation alone without any the data themselves.
  std::vector<HeldOut> &heldOut() { return held; }

  /// Fills the inputs of a micro-batch of batch `batch`.
  Status fill(Executor &executor, uint64_t batch, uint32_t microBatch);

  /// Adds what the data are, and their first micro-batch of the first ranks behind `step` steps, whichever
  /// rank this is.
  Status addFacts(const Executor &executor, uint64_t step, Facts &facts);

private:
  Status openHeldOut(const EvalData &which, const Program &program);
  Result<std::string> signOf(DataSource &source, uint64_t batch, const Executor &executor) const;

  const TrainOptions &options;
  Team &team;
  std::optional<DataSource> data;
  std::vector<HeldOut> held;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_RUNDATA_H
