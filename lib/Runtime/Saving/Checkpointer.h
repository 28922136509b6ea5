//===- Checkpointer.h - Saves a run while it trains ---------------------------------===//
//
// A save has four parts. All ranks begin it together: rank 0 makes the directory and names it. Each writes
// its files (ShardPlan.h), from a copy of its states and on a thread of its own, or at once. When all are
// done, which they learn at the end of a step, rank 0 has everybody's digests and makes the checkpoint
// visible, on that thread too. Then all learn how it went. Where each node has a directory of its own
// (SaveNode.h) one rank of each does so: all write their manifests first, and only when all have they rename;
// who goes on takes what all nodes have, whenever the run was killed. Older ones go last. Nothing of this
// waits in a step but the copy; what must wait (the last save, or one that is due while another is under way)
// asks again and again, so that no time-out of the ranks can end a slow disk's save.
//
// A save that fails is told and leaves nothing but the checkpoints that were there; training goes on.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_SAVING_CHECKPOINTER_H
#define DS_LIB_RUNTIME_SAVING_CHECKPOINTER_H

#include "Job/Team.h"
#include "SaveNode.h"
#include "Snapshot.h"

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Checkpoint/ShardPlan.h"
#include "ds/Runtime/Checkpoint/StagedWriter.h"
#include "ds/Runtime/Checkpoint/Store.h"
#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Files/FileLayer.h"
#include "ds/Runtime/Job/TrainOptions.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

namespace ds::rt {

/// What a checkpoint says of its run besides the states.
struct RunPosition {
  uint64_t step = 0; ///< finished
  uint64_t seed = 0;
  DataCursor data;
};

/// Size: the save under way, its thread and the list of older ones are still one class.
class Checkpointer {
public:
  /// Saves that fail one after another until a run is ended.
  static constexpr unsigned kMostFailures = 3;

  /// Prepares to save `program`, the whole of it, as `options` say, for a run that goes on from `from` (null:
  /// from nothing); refuses a directory that is in use or of another run, and what has no memory for the
  /// copy. Collective.
  static Result<std::unique_ptr<Checkpointer>> open(const TrainOptions &options, const Program &program,
                                                    const Checkpoint *from, Team &team);
  ~Checkpointer();

  /// Whether a save is due after `step`, as this rank sees it: rank 0 has the clock.
  bool isDue(uint64_t step) const;
  /// Whether this rank still works on a save.
  bool isBusy() const { return busy; }

  /// At the end of a step: goes on with the save that is under way unless some rank `anyBusy`, and begins one
  /// if it is due on some rank. Collective. Io after kMostFailures.
  Status endStep(const Executor &executor, const RunPosition &position, bool anyDue, bool anyBusy);

  /// Waits until no save is under way. Collective; ranks ask each other, so that none is silent for long.
  Status settle();

  /// Ends with a checkpoint of `position`, whatever it takes. Io: it could not be saved. Collective.
  Status finish(const Executor &executor, const RunPosition &position);

  /// The path of the newest checkpoint that this run has saved or gone on from; empty without.
  const std::string &newest() const { return newestPath; }
  /// That the run goes on from this one. Where it lies in the directory of saves it need not be saved again.
  void continuesFrom(const Checkpoint &checkpoint);

private:
  /// Staging and Pruning are of several nodes.
  enum class Stage { Idle, Writing, Staging, Committing, Pruning };

  Checkpointer(const TrainOptions &options, Team &team) : options(options), team(team) {}
  Status prepare(const Program &program, const Checkpoint *from);
  Status takeDirectory(const Checkpoint *from);
  Status describeRun(const Program &program);
  Status begin(const Executor &executor, const RunPosition &position, bool atOnce);
  Status advance();
  Status collectFiles();
  Status collectManifests();
  Status collectOutcome();
  Result<std::vector<CheckpointFile>> writeFiles(const Executor *executor) const;
  Status writeFile(size_t number, const Executor *executor, class ShardWriter &writer) const;
  Result<std::string> commit(const Manifest &whole);
  Result<std::string> publish();
  void prune(const std::set<std::string> *everywhere);
  Status giveUp(const Error &error);
  Status noteFailure(const std::string &why);
  void work(std::function<void()> job);

  const TrainOptions &options;
  Team &team;
  FileLayer &layer = systemFiles();
  SaveNode node;
  std::optional<StoreLock> lock;        ///< of who leads
  std::vector<ShardFile> files;         ///< of this rank
  std::unique_ptr<StagedWriter> staged; ///< of all its files, one after another
  std::optional<Snapshot> copy;         ///< what is written while training goes on; none: written at once
  Manifest manifest;                    ///< what all saves of the run say alike

  Stage stage = Stage::Idle;
  std::string unfinished; ///< directory of the save that is under way
  std::thread worker;
  std::atomic<bool> busy{false};
  std::optional<Result<std::vector<CheckpointFile>>> written; ///< by the worker
  std::optional<Result<std::string>> done;                    ///< likewise, of who leads; others: empty
  std::string newestPath;
  std::optional<uint64_t> newestStep;
  std::optional<uint64_t> begunAt; ///< step of the checkpoint that the run goes on from; none: it is new
  bool hasSetAside = false;        ///< of the worker: what the run has gone back before is set aside
  unsigned failures = 0;           ///< in a row
  uint64_t savedBytes = 0;         ///< of the save that is under way, by all ranks
  bool toldOfWaiting = false;
  std::set<std::string> toldOfStays; ///< of the worker: why something in the directory is not removed
  std::chrono::steady_clock::time_point lastBegun = std::chrono::steady_clock::now();
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_CHECKPOINTER_H
