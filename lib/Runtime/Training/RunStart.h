//===- RunStart.h - Where a run begins ------------------------------------------------===//
//
// A checkpoint, else the weights file given, else the one beside the program, else random numbers. States
// that a checkpoint has no value for start as in a new run.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_RUNSTART_H
#define DS_LIB_RUNTIME_TRAINING_RUNSTART_H

#include "Job/Team.h"
#include "Saving/Resume.h"

#include "ds/Runtime/Engine/Executor.h"

#include <string>

namespace ds::rt {

class RunStart {
public:
  RunStart(const TrainOptions &options, Team &team) : options(options), resume(options, team) {}

  /// Chooses the checkpoint that the run goes on from, older than any that was found damaged, and takes from
  /// it what is not in the states. Without one the run starts from a weights file or the seed.
  Status choose(const Program &program);

  const Checkpoint *checkpoint() const { return resume.checkpoint(); }
  uint64_t seed() const { return seedOfRun; }
  uint64_t step() const { return firstStep; }      ///< those of runs before this one
  uint64_t tokens() const { return tokensBefore; } ///< likewise
  /// Where the weights come from, for the head.
  const std::string &weights() const { return origin; }
  /// The file that has them; empty: they are from a checkpoint or the seed.
  const std::string &weightsPath() const { return path; }
  /// What all ranks have to agree on: the file's digest, or that there is none.
  std::string weightsSign() const;

  /// Gives all states their first values, those that a file gives too.
  Status initialize(Executor &executor);
  /// The same, and what the file has for them: the states of before the first step of a new run.
  Status beginAnew(Executor &executor);
  /// Reads what the checkpoint has for them, or the file. False: the checkpoint is damaged, and may give way
  /// to an older one.
  Result<bool> restore(Executor &executor);

  /// What `--dry-run` prints. Collective.
  Result<std::string> describe(const Program &program) { return resume.describe(program); }

private:
  /// The folder that adapters start from; empty: there is none.
  const std::string &adapter() const;
  /// Reads what files have for the states.
  Status load(Executor &executor);

  const TrainOptions &options;
  Resume resume;
  uint64_t seedOfRun = 0;
  uint64_t firstStep = 0, tokensBefore = 0;
  std::string origin;
  std::string path; ///< of the weights; empty: from the seed
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_RUNSTART_H
