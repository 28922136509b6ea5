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

#include "BestLosses.h"
#include "Job/Team.h"
#include "SaveFolder.h"
#include "SaveWorker.h"
#include "SavedFiles.h"

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Job/TrainOptions.h"

#include <chrono>
#include <memory>
#include <optional>

namespace ds::rt {

/// What a checkpoint says of its run besides the states.
struct RunPosition {
  uint64_t step = 0; ///< finished
  uint64_t seed = 0;
  DataCursor data;
  std::vector<EvalLoss> evaluations; ///< of these states; empty: not evaluated
};

/// What all ranks do together for a save: this rank's files are SavedFiles', the directory SaveFolder's.
class Checkpointer {
public:
  /// Saves that fail one after another until a run is ended.
  static constexpr unsigned kMostFailures = 3;

  /// Prepares to save `program`, the whole of it, as `options` say, for a run that goes on from `from` (null:
  /// from nothing); refuses a directory that is in use or of another run, and what has no memory for the
  /// copy. Collective.
  static Result<std::unique_ptr<Checkpointer>> open(const TrainOptions &options, const Program &program,
                                                    const Checkpoint *from, Team &team);

  /// Whether a save is due after `step`, as this rank sees it: rank 0 has the clock.
  bool isDue(uint64_t step) const;
  /// Whether states of these held-out losses are among the best ones that --keep-best asks for, so that a
  /// save is due. The same on every rank.
  bool isAmongBest(std::span<const EvalLoss> losses) const { return best.admits(losses); }
  /// Whether this rank still works on a save.
  bool isBusy() const { return worker.isBusy(); }

  /// At the end of a step: goes on with the save that is under way unless some rank `anyBusy`, and begins one
  /// if it is due on some rank. Collective. Io after kMostFailures.
  Status endStep(const Executor &executor, const RunPosition &position, bool anyDue, bool anyBusy);

  /// Waits until no save is under way. Collective; ranks ask each other, so that none is silent for long.
  Status settle();

  /// Ends with a checkpoint of `position`, whatever it takes. Io: it could not be saved. Collective.
  Status finish(const Executor &executor, const RunPosition &position);

  /// The path of the newest checkpoint that this run has saved or gone on from; empty without.
  const std::string &newest() const { return newestSave.path; }
  /// That the run goes on from this one. Where it lies in the directory of saves it need not be saved again.
  void continuesFrom(const Checkpoint &checkpoint);

private:
  /// Staging and Pruning are of several nodes.
  enum class Stage { Idle, Writing, Staging, Committing, Pruning };

  /// What is under way, or was last.
  struct Save {
    Stage stage = Stage::Idle;
    std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
    std::string directory;                                      ///< where it is written
    uint64_t bytes = 0;                                         ///< by all ranks
    std::optional<Result<std::vector<CheckpointFile>>> written; ///< by the worker
    std::optional<Result<std::string>> done;                    ///< likewise, of who leads; others: empty
  };
  /// The newest one that can be gone on from.
  struct Newest {
    std::string path;
    std::optional<uint64_t> step; ///< where it lies in the directory of saves
  };

  Checkpointer(const TrainOptions &options, Team &team) : options(options), team(team) {}
  Status prepare(const Program &program, const Checkpoint *from);
  Status describeRun(const Program &program);
  Status findBest(const Checkpoint *from);
  Status begin(const Executor &executor, const RunPosition &position, bool atOnce);
  Status advance();
  Status collectFiles();
  Status collectManifests();
  Status collectOutcome();
  Status giveUp(const Error &error);
  Status noteFailure(const std::string &why);

  const TrainOptions &options;
  Team &team;
  SaveFolder folder{options, systemFiles()};
  SavedFiles files{systemFiles()};
  Manifest manifest; ///< what all saves of the run say alike
  Save save;
  Newest newestSave;
  BestLosses best{options.keep};
  unsigned failures = 0; ///< in a row
  bool toldOfWaiting = false;
  SaveWorker worker; ///< uses what is above
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_CHECKPOINTER_H
