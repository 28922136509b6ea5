//===- Commands.cpp - Binds commands to a GPU --------------------------------------===//
#include "Commands.h"

#include "BlasLt.h"
#include "Cuda/Binding/Choices.h"
#include "CudnnCommands.h"

#include "ds/Runtime/Program/ConvForm.h"

#include <fmt/format.h>

namespace ds::rt::cuda {

Libraries::Libraries() : cudnn(std::make_unique<CudnnCommands>()), choices(std::make_unique<Choices>()) {}
Libraries::~Libraries() = default;

std::string Libraries::describe() const {
  std::string all;
  for (const std::string &part : {cudnn->describe(), blas ? blas->describe() : "", notice})
    all += (part.empty() ? "" : "; ") + part;
  return all;
}

/// By the copy engine where it can, else by a kernel.
static Result<std::unique_ptr<CudaTask>> bindMove(const Binding &binding, const Command &command) {
  Result<std::unique_ptr<CudaTask>> task = bindTransfer(binding, command);
  return !task || *task ? std::move(task) : bindLibraryKernel(binding, command);
}

Result<std::unique_ptr<CudaTask>> bindCommand(const Binding &binding, uint32_t index) {
  const Command &command = binding.program.commands[index];
  const auto function = static_cast<LibraryFn>(command.callee);
  switch (command.kind) {
  case CommandKind::Kernel:
    return bindKernel(binding, command);
  case CommandKind::Copy:
    return bindMove(binding, command);
  case CommandKind::Library:
    if (function == LibraryFn::Matmul)
      return bindMatmul(binding, index);
    if (function == LibraryFn::AttentionForward || function == LibraryFn::AttentionBackward ||
        isConvolution(function))
      return binding.libraries.cudnn->bind(binding, index);
    if (function == LibraryFn::Fill || function == LibraryFn::Copy)
      return bindMove(binding, command);
    return bindLibraryKernel(binding, command);
  case CommandKind::Collective:
    return bindCollective(binding, index);
  case CommandKind::RecordEvent:
  case CommandKind::WaitEvent:
  case CommandKind::Storage: // the host's
    break;
  }
  return Error{ExitCode::Internal, "a command of unknown kind", ""};
}

} // namespace ds::rt::cuda
