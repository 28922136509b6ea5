//===- Rollback.cpp - Back to the last checkpoint, in the middle of a run -----------===//
#include "Loss/LostNumber.h"
#include "Process/Messages.h"
#include "Run.h"
#include "Saving/Restore.h"
#include "StepOutcome.h"

#include "ds/Runtime/State/Weights.h"

#include <fmt/format.h>

namespace ds::rt {

/// Reads what `rank` holds of a checkpoint of its own program; returns the step behind which it was made.
static Result<uint64_t> readBack(Executor &executor, const std::string &path) {
  const Result<Checkpoint> checkpoint = Checkpoint::open(path);
  if (!checkpoint)
    return checkpoint.error();
  const Result<RestorePlan> plan = planRestore(executor.program(), executor.rank(), *checkpoint);
  if (!plan)
    return plan.error();
  if (Status status = restoreStates(executor, *checkpoint, *plan); !status)
    return status.error();
  return checkpoint->manifest().step;
}

Status Run::goBack(uint64_t &step) {
  if (Status status = checkpointer->settle(); !status) // what is being written is of a good step
    return status;
  const std::string path = checkpointer->newest();
  if (path.empty())
    return Error{ExitCode::Diverged, "no checkpoint has been saved yet", "save more often with --save-every"};
  const Result<uint64_t> read = readBack(*executor, path);
  const Result<bool> anyFailed = team.anyOf(!read);
  if (!anyFailed)
    return anyFailed.error();
  if (!read)
    return read.error();
  if (*anyFailed)
    return Error{ExitCode::Peer, fmt::format("another rank cannot read '{}'", path), ""};
  step = *read;
  lossScale = readOutputs(*executor, step).lossScale;
  lossLimit.reset();
  return {};
}

/// Whether the states are those of before the step `index`: a skipped one has kept them, and those of a new
/// run's first step can be had again where the run cannot go on with what it has.
Result<bool> Run::restoreBefore(const StepRecord &record, uint64_t index) {
  if (record.skipped.value_or(false))
    return true;
  if (index != firstStep || resume.checkpoint())
    return false;
  if (Status status = initialize(); !status)
    return status.error();
  if (weightsPath.empty())
    return true;
  Status status = loadWeights(*executor, weightsPath);
  return status ? Result<bool>(true) : Result<bool>(status.error());
}

/// Tells once, and again when the run ends for it, where a step's first number was lost. Every rank comes
/// here with the same record.
Status Run::nameLostNumber(const StepRecord &record, uint64_t index) {
  const std::optional<double> before = std::exchange(lossScale, record.lossScale);
  if (!hasLostNumbers(record) || (std::exchange(toldOfLoss, true) && !record.givesUp))
    return {};
  const Result<bool> restored = restoreBefore(record, index);
  if (!restored)
    return restored.error();
  std::string text = "where it was lost first is not known: the step has changed the states; a program with "
                     "skip_bad_steps keeps them";
  if (*restored) {
    const Result<std::string> found =
        findLostNumber(*executor,
                       {[&](uint32_t microBatch) { return fill(*data, guard.batchOf(index), microBatch); },
                        before, record.skipped.value_or(false)},
                       team);
    if (!found)
      return found.error();
    diagnostics.lostNumber = *found;
    text = found->empty() ? "repeated, the step has neither a NaN nor an infinity: a memory or a processor "
                            "may have failed"
                          : "the first number that is not finite: " + *found;
    executor->takeTimings(); // the trace shows training
  }
  if (team.leads())
    logLine(fmt::format("step {}: {}", record.step, text));
  return {};
}

} // namespace ds::rt
