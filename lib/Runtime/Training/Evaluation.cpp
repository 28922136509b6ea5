//===- Evaluation.cpp - The loss of held-out data -------------------------------===//
#include "Evaluation.h"

namespace ds::rt {

Result<std::optional<double>> evaluate(Executor &executor, DataSource &data,
                                       const std::function<Result<bool>()> &stop) {
  const Program &program = executor.program();
  const Output *output = nullptr;
  for (const Output &candidate : program.outputs)
    if (candidate.name == "eval_loss")
      output = &candidate;
  if (!output)
    return Error{ExitCode::Corrupt, "no output 'eval_loss'", "compile the model again with ds-opt"};
  const uint64_t batches = data.numBatches();
  double sum = 0;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    const Result<bool> stopped = stop();
    if (!stopped)
      return stopped.error();
    if (*stopped)
      return std::optional<double>();
    if (Status status = data.fill(batch, 0, executor.dataPosition(), executor.inputs(0)); !status)
      return status.error();
    if (Status status = executor.run(static_cast<uint32_t>(executor.stage().evaluation)); !status)
      return status.error();
    sum += executor.read(*output);
  }
  return std::optional<double>(sum / static_cast<double>(batches));
}

} // namespace ds::rt
