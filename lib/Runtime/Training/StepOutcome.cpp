//===- StepOutcome.cpp - What a step has computed, and whether to go on ---------===//
#include "StepOutcome.h"

#include "Program/Stages.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace ds::rt {

/// The value of "skipped" with which a program says that it cannot scale the loss any lower.
static constexpr double kGivesUp = 2;
/// The one with which it says that the loss was beyond its limit.
static constexpr double kSpiked = 3;

/// The program's own output of that name; null without.
static const Output *findOutput(const Program &program, std::string_view name) {
  for (const Output &output : program.outputs)
    if (output.name == name)
      return &output;
  return nullptr;
}

namespace {
/// What a stage gives for a name.
struct Given {
  uint32_t stage;
  double value;
};
} // namespace

/// The one value that stages give for `name`; a NaN is as good as another.
static Result<std::optional<double>> agreedValue(const char *name, const std::vector<Given> &given) {
  for (const Given &each : given)
    if (each.value != given[0].value && !(std::isnan(each.value) && std::isnan(given[0].value)))
      return Error{ExitCode::Diverged,
                   fmt::format("stages {} and {} give '{}' as {} and {}, expected one value", given[0].stage,
                               each.stage, name, given[0].value, each.value),
                   "compile the model again with ds-opt: what several stages give is summed up over them, or "
                   "given by one"};
  return given.empty() ? std::optional<double>() : std::optional(given[0].value);
}

Result<std::vector<std::optional<double>>> readOutputs(const Executor &executor, Team &team,
                                                       std::span<const char *const> names) {
  const Program &whole = executor.whole();
  std::vector<double> mine;
  std::vector<std::optional<double>> values;
  for (const char *name : names) {
    const Output *output = findOutput(executor.program(), name);
    values.push_back(output ? std::optional(readOutput(executor, *output)) : std::nullopt);
    mine.push_back(values.back().value_or(0));
  }
  if (whole.stages.size() == 1)
    return values;
  std::vector<double> all(mine.size() * team.world());
  if (Status status =
          team.own()->allGather(mine.data(), all.data(), mine.size() * sizeof(double), kStageValues);
      !status)
    return status.error();
  const StageGrid stages(whole);
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<Given> given;
    for (const Output &output : whole.outputs)
      if (output.name == names[i])
        given.push_back({output.stage, all[stages.firstRank(output.stage) * names.size() + i]});
    const Result<std::optional<double>> value = agreedValue(names[i], given);
    if (!value)
      return value.error();
    values[i] = *value;
  }
  return values;
}

Result<StepRecord> readStep(const Executor &executor, Team &team, uint64_t step) {
  static constexpr const char *kNames[] = {"loss", "grad_norm", "lr", "loss_scale", "skipped"};
  const Result<std::vector<std::optional<double>>> values = readOutputs(executor, team, kNames);
  if (!values)
    return values.error();
  StepRecord record;
  record.step = step;
  record.loss = (*values)[0];
  record.gradNorm = (*values)[1];
  record.lr = (*values)[2];
  record.lossScale = (*values)[3];
  if (const std::optional<double> skipped = (*values)[4]) {
    record.skipped = *skipped != 0;
    record.givesUp = *skipped == kGivesUp;
    record.spiked = *skipped == kSpiked;
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
