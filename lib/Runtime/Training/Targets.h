//===- Targets.h - How many targets of a step the loss counts -----------------------===//
//
// A mask, the end of a document or a label that is the ignore index leaves targets out of the loss. How many
// are left is known from the data alone, so the host counts them before a step begins, and the ranks add up
// what they have found. Three things follow from the count:
//   - A step without any is not made: it could update states by nothing but old moments and decay.
//   - A program compiled with loss_normalization "tokens" divides the sum of each micro-batch's losses by the
//     mean number of targets that a micro-batch of a rank has in the step, its state "mean_targets". With 5
//     and 3 targets in two micro-batches that is 4, and (s1 / 4 + s2 / 4) / 2 is the mean over all 8. The
//     host sets it between steps; the step itself stays one sequence of commands, and no gradient is scaled
//     twice.
//   - Else each micro-batch's mean weighs the same, as DeepSpeed has it. The user is told of the first step
//   in
//     which that is another number than the mean over targets.
// Data that cannot leave a target out are not counted: nothing is read twice, and no rank waits for another.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_TARGETS_H
#define DS_LIB_RUNTIME_TRAINING_TARGETS_H

#include "Job/Team.h"

#include "ds/Runtime/Data/DataSource.h"
#include "ds/Runtime/Engine/Executor.h"

#include <optional>
#include <span>
#include <string>

namespace ds::rt {

/// The targets that count in several micro-batches: those of a step or of an evaluation's batch, on all
/// ranks.
struct TargetCounts {
  uint64_t total = 0;
  uint64_t least = UINT64_MAX, most = 0; ///< in one micro-batch of one rank
  uint64_t parts = 0;                    ///< micro-batches of ranks that have a target

  /// Counts a micro-batch, or the micro-batches of another rank.
  void add(uint64_t targets);
  void add(const TargetCounts &other);
};

/// Counts targets for one program on one rank. `counts` is collective.
class Targets {
public:
  /// Both outlive it.
  Targets(const Executor &executor, Team &team);

  /// Whether losses are means over the targets of a step, and not over micro-batches.
  bool normalizes() const { return normalizer != nullptr; }

  /// What counts in a batch of `data`, which has `accumulation` micro-batches a rank; none where the data
  /// cannot leave any target out. Fails as DataSource::fill does, and as collectives do.
  Result<std::optional<TargetCounts>> count(DataSource &data, uint64_t batch, uint32_t accumulation);

  /// Tells the program by how many targets to divide, if it asks: those of `counts` by `microBatches`, which
  /// is of all ranks; without counts all that a micro-batch of `data` has.
  Status setMean(Executor &executor, const DataSource &data, const std::optional<TargetCounts> &counts,
                 uint64_t microBatches) const;

  /// What to tell of step `step`: empty, but for the first one in which losses that are means over
  /// micro-batches are not the mean over targets.
  std::string notice(const TargetCounts &counts, uint64_t step);

private:
  Result<TargetCounts> ofAllRanks(const TargetCounts &mine);

  const Executor &executor;
  Team &team;
  const State *normalizer; ///< "mean_targets"; null where the program has none
  bool isTold = false;
};

/// Whether the loss counts any target of `data`, on any rank; true where none can be left out. Reads until
/// the first one. Not collective.
Result<bool> hasTargets(DataSource &data, uint32_t ranks);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_TARGETS_H
