//===- LossScaleGuard.cpp - Ends a run whose loss scale can fall no lower ------===//
#include "LossScaleGuard.h"

#include "Convert.h"

#include <fmt/format.h>

namespace ds::rt {

/// The value of the scalar state `name`, if the program has it.
static std::optional<double> readScalar(const Executor &executor, std::string_view name) {
  const Program &program = executor.program();
  for (const State &state : program.states)
    if (state.role == Role::Scalar && state.name == name && numElements(program.buffers[state.buffer]) == 1)
      return loadElement(static_cast<const std::byte *>(executor.data(state.buffer)),
                         program.buffers[state.buffer].dtype);
  return std::nullopt;
}

LossScaleGuard::LossScaleGuard(const Executor &executor)
    : scale(readScalar(executor, "loss_scale")), hysteresis(readScalar(executor, "hysteresis")) {}

Status LossScaleGuard::check(const Executor &executor, const StepRecord &record) const {
  if (!record.skipped.value_or(false) || !scale || !hysteresis || *hysteresis > 1 ||
      readScalar(executor, "loss_scale") != scale)
    return {};
  return Error{ExitCode::Diverged,
               fmt::format("step {}: the gradients overflow at a loss scale of {:g}, the minimum",
                           record.step, *scale),
               "train in bf16, lower the learning rate, or look for bad samples in this batch"};
}

} // namespace ds::rt
