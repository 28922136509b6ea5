//===- CudnnCommands.cpp - What cuDNN runs where it can, else kernels of the runtime -===//
#include "CudnnCommands.h"

#include "CudnnEngines.h"

#include "ds/Runtime/ConvForm.h"

#include <fmt/format.h>

namespace ds::rt::cuda {

CudnnCommands::CudnnCommands() = default;
CudnnCommands::~CudnnCommands() = default;

Result<std::unique_ptr<CudaTask>> CudnnCommands::bindEngine(const Binding &binding, const Command &command) {
  if (!engines)
    engines = std::make_unique<CudnnEngines>(binding.hardware);
  return engines->bind(binding, command);
}

Result<std::unique_ptr<CudaTask>> CudnnCommands::bind(const Binding &binding, const Command &command) {
  Tally &tally = isConvolution(static_cast<LibraryFn>(command.callee)) ? convolutions : attention;
  Result<std::unique_ptr<CudaTask>> task = bindEngine(binding, command);
  if (task) {
    ++tally.byCudnn;
    return task;
  }
  if (tally.byKernels++ == 0)
    tally.reason = task.error().message;
  return bindLibraryKernel(binding, command);
}

std::string CudnnCommands::describe(const char *what, const Tally &tally) const {
  if (tally.byCudnn + tally.byKernels == 0)
    return "";
  if (tally.byCudnn == 0)
    return fmt::format("{} by the runtime's kernels ({})", what, tally.reason);
  const std::string all = fmt::format("{} by cuDNN {}", what, engines->version());
  return tally.byKernels == 0 ? all
                              : fmt::format("{} in {} of {} commands ({})", all, tally.byCudnn,
                                            tally.byCudnn + tally.byKernels, tally.reason);
}

std::string CudnnCommands::describe() const {
  const std::string first = describe("convolutions", convolutions), second = describe("attention", attention);
  return first + (first.empty() || second.empty() ? "" : "; ") + second;
}

} // namespace ds::rt::cuda
