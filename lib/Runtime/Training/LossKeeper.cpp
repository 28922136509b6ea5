//===- LossKeeper.cpp - What a run does about its losses --------------------------------===//
#include "LossKeeper.h"

#include "Loss/LostNumber.h"
#include "Process/Messages.h"
#include "Saving/Restore.h"
#include "StepOutcome.h"

#include <fmt/format.h>

#include <utility>

namespace ds::rt {

/// Reads what `rank` holds of a checkpoint of its own program; returns the step behind which it was made.
static Result<uint64_t> readBack(Executor &executor, const std::string &path) {
  const Result<Checkpoint> checkpoint = Checkpoint::open(path);
  if (!checkpoint)
    return checkpoint.error();
  const Result<RestorePlan> plan = planRestore(executor.whole(), executor.rank(), *checkpoint);
  if (!plan)
    return plan.error();
  if (Status status = restoreStates(executor, *checkpoint, *plan); !status)
    return status.error();
  return checkpoint->manifest().step;
}

LossKeeper::LossKeeper(RunParts &run)
    : run(run), guard(run.options.loss, run.team.leads() ? logLine : LossGuard::Tell()) {
  guard.restore = [this](uint64_t &step) { return goBack(step); };
}

Status LossKeeper::begin(uint64_t step) {
  const Result<StepRecord> record = readStep(*run.executor, run.team, step);
  if (!record)
    return record.error();
  lossScale = record->lossScale;
  return {};
}

Status LossKeeper::setLimit() {
  const float limit = guard.limit();
  return std::exchange(lossLimit, limit) != limit ? setLossLimit(*run.executor, limit) : Status();
}

Result<uint64_t> LossKeeper::act(const StepRecord &record, uint64_t index) {
  diagnostics.keep(record, batchOf(index));
  if (record.targets != 0)
    if (Status named = nameLostNumber(record, index); !named)
      return named.error();
  return guard.act(record);
}

void LossKeeper::diagnose(const Error &why) const {
  const TrainOptions &options = run.options;
  const std::string &directory = options.diagnostics.empty() ? options.save : options.diagnostics;
  if (directory.empty())
    return;
  const Result<std::string> path = diagnostics.write(directory, *run.executor, why);
  if (!path)
    logLine("no diagnostics: " + path.error().message);
  else if (run.team.leads())
    logLine(fmt::format("diagnostics are in '{}'{}", *path,
                        run.team.world() > 1 ? ", and beside it those of the other ranks" : ""));
}

Status LossKeeper::goBack(uint64_t &step) {
  if (Status status = run.checkpointer->settle(); !status) // what is being written is of a good step
    return status;
  const std::string path = run.checkpointer->newest();
  if (path.empty())
    return Error{ExitCode::Diverged, "no checkpoint has been saved yet", "save more often with --save-every"};
  run.late.drop();
  const Result<uint64_t> read = readBack(*run.executor, path);
  const Result<bool> anyFailed = run.team.anyOf(!read);
  if (!anyFailed)
    return anyFailed.error();
  if (!read)
    return read.error();
  if (*anyFailed)
    return Error{ExitCode::Peer, fmt::format("another rank cannot read '{}'", path), ""};
  step = *read;
  lossLimit.reset();
  return begin(step);
}

/// Whether the states are those of before the step `index`: a skipped one has kept them, and those of a new
/// run's first step can be had again where the run cannot go on with what it has.
Result<bool> LossKeeper::restoreBefore(const StepRecord &record, uint64_t index) {
  if (record.skipped.value_or(false))
    return true;
  if (index != run.start.step() || run.start.checkpoint())
    return false;
  run.late.drop();
  Status status = run.start.beginAnew(*run.executor);
  return status ? Result<bool>(true) : Result<bool>(status.error());
}

/// Tells once, and again when the run ends for it, where a step's first number was lost. Every rank comes
/// here with the same record.
Status LossKeeper::nameLostNumber(const StepRecord &record, uint64_t index) {
  const std::optional<double> before = std::exchange(lossScale, record.lossScale);
  if (!hasLostNumbers(record) || (std::exchange(toldOfLoss, true) && !record.givesUp))
    return {};
  const Result<bool> restored = restoreBefore(record, index);
  if (!restored)
    return restored.error();
  std::string text = "where it was lost first is not known: the step has changed the states; a program with "
                     "skip_bad_steps keeps them";
  if (*restored) {
    const auto fill = [&](uint32_t microBatch) {
      return run.data.fill(*run.executor, batchOf(index), microBatch);
    };
    const Result<std::string> found =
        findLostNumber(*run.executor, {fill, before, record.skipped.value_or(false)}, run.team);
    if (!found)
      return found.error();
    diagnostics.lostNumber = *found;
    text = found->empty() ? "repeated, the step has neither a NaN nor an infinity: a memory or a processor "
                            "may have failed"
                          : "the first number that is not finite: " + *found;
    run.executor->takeTimings(); // the trace shows training
  }
  if (run.team.leads())
    logLine(fmt::format("step {}: {}", record.step, text));
  return {};
}

} // namespace ds::rt
