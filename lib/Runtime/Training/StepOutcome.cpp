//===- StepOutcome.cpp - What a step has computed, and whether to go on ---------===//
#include "StepOutcome.h"

#include <fmt/format.h>

#include <cstring>

namespace ds::rt {

/// The value of "skipped" with which a program says that it cannot scale the loss any lower.
static constexpr double kGivesUp = 2;
/// The one with which it says that the loss was beyond its limit.
static constexpr double kSpiked = 3;

StepRecord readOutputs(const Executor &executor, uint64_t step) {
  StepRecord record;
  record.step = step;
  for (const Output &output : executor.program().outputs) {
    const double value = executor.read(output);
    if (output.name == "loss")
      record.loss = value;
    else if (output.name == "grad_norm")
      record.gradNorm = value;
    else if (output.name == "lr")
      record.lr = value;
    else if (output.name == "loss_scale")
      record.lossScale = value;
    else if (output.name == "skipped") {
      record.skipped = value != 0;
      record.givesUp = value == kGivesUp;
      record.spiked = value == kSpiked;
    }
  }
  record.peakBytes = executor.stage().arenas;
  return record;
}

/// The rank-0 state of that name and type; null where the program has none.
static const State *findNumber(const Program &program, std::string_view name, DType dtype) {
  for (const State &state : program.states)
    if (state.role == Role::Scalar && state.name == name && state.logicalShape.empty() &&
        program.buffers[state.buffer].dtype == dtype)
      return &state;
  return nullptr;
}

/// Gives the state a value, if there is one.
template <class Number>
static Status setNumber(Executor &executor, const State *state, Number number) {
  if (!state)
    return {};
  return executor.change(static_cast<std::byte *>(executor.data(state->buffer)), sizeof number,
                         [&](std::byte *host) {
                           std::memcpy(host, &number, sizeof number);
                           return Status();
                         });
}

const State *findLossLimit(const Program &program) { return findNumber(program, "loss_limit", DType::F32); }

Status setLossLimit(Executor &executor, float limit) {
  return setNumber(executor, findLossLimit(executor.program()), limit);
}

Result<std::optional<double>> totalSteps(const Executor &executor) {
  const State *state = findNumber(executor.program(), "total_steps", DType::F64);
  if (!state)
    return std::optional<double>();
  double steps = 0;
  const Status read = executor.inspect(static_cast<const std::byte *>(executor.data(state->buffer)),
                                       sizeof steps, [&](const std::byte *host) {
                                         std::memcpy(&steps, host, sizeof steps);
                                         return Status();
                                       });
  return read ? Result<std::optional<double>>(std::optional(steps)) : read.error();
}

const State *findMeanTargets(const Program &program) {
  return findNumber(program, "mean_targets", DType::F32);
}

Status setMeanTargets(Executor &executor, float targets) {
  return setNumber(executor, findMeanTargets(executor.program()), targets);
}

Status setTotalSteps(Executor &executor, uint64_t steps) {
  return setNumber(executor, findNumber(executor.program(), "total_steps", DType::F64),
                   static_cast<double>(steps));
}

Status checkLossScale(const StepRecord &record) {
  if (!record.givesUp)
    return {};
  return Error{ExitCode::Diverged,
               fmt::format("step {}: the gradients overflow at a loss scale of {:g}, the smallest",
                           record.step, record.lossScale.value_or(1)),
               "train in bf16, lower the learning rate, or look for bad samples in this batch"};
}

} // namespace ds::rt
