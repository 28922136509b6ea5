//===- LossGuard.cpp - Acts on what is judged of a step's loss -----------------===//
#include "LossGuard.h"

#include <fmt/format.h>

namespace ds::rt {

Result<uint64_t> LossGuard::act(const StepRecord &record) {
  Judgement judgement = policy.judge(record);
  if (judgement.action == LossAction::Stop)
    return Error{ExitCode::Diverged, std::move(judgement.reason), std::move(judgement.hint)};
  if (judgement.action == LossAction::Rollback)
    return goBack(record, judgement.reason);
  return record.step;
}

Result<uint64_t> LossGuard::goBack(const StepRecord &record, const std::string &reason) {
  if (!restore)
    return Error{ExitCode::Internal, reason + ", and nothing to go back to", ""};
  uint64_t step = 0;
  if (Status status = restore(step); !status)
    return Error{status.error().code, fmt::format("{}; going back: {}", reason, status.error().message),
                 status.error().hint};
  if (step >= record.step)
    return Error{ExitCode::Internal,
                 fmt::format("{}; the checkpoint to go back to is of step {}", reason, step), ""};
  passedOver += record.step - step;
  if (tell)
    tell(fmt::format("{}: back to the checkpoint of step {}; the data continue after step {}'s", reason, step,
                     record.step));
  return step;
}

} // namespace ds::rt
