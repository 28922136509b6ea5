//===- Attention.cpp - Attention by cuDNN, or by kernels of the runtime -------------===//
#include "Attention.h"

#include "CudnnEngines.h"

#include <fmt/format.h>

namespace ds::rt::cuda {

Attention::Attention() = default;
Attention::~Attention() = default;

Result<std::unique_ptr<CudaTask>> Attention::bindEngine(const Binding &binding, const Command &command) {
  if (!engines)
    engines = std::make_unique<CudnnEngines>(binding.hardware);
  return engines->bind(binding, command);
}

Result<std::unique_ptr<CudaTask>> Attention::bind(const Binding &binding, const Command &command) {
  Result<std::unique_ptr<CudaTask>> task = bindEngine(binding, command);
  if (task) {
    ++byCudnn;
    return task;
  }
  if (byKernels++ == 0)
    reason = task.error().message;
  return bindLibraryKernel(binding, command);
}

std::string Attention::describe() const {
  if (byCudnn + byKernels == 0)
    return "";
  if (byCudnn == 0)
    return fmt::format("attention by the runtime's kernels ({})", reason);
  const std::string all = "attention by cuDNN " + engines->version();
  return byKernels == 0
             ? all
             : fmt::format("{} in {} of {} commands ({})", all, byCudnn, byCudnn + byKernels, reason);
}

} // namespace ds::rt::cuda
