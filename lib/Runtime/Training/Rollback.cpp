//===- Rollback.cpp - Back to the last checkpoint, in the middle of a run -----------===//
#include "Restore.h"
#include "Run.h"

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
  return {};
}

} // namespace ds::rt
