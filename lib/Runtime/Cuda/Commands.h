//===- Commands.h - Commands bound to a GPU ----------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_COMMANDS_H
#define DS_LIB_RUNTIME_CUDA_COMMANDS_H

#include "Cuda/Binding/Binding.h"

#include "../../../kernels/CudaCommands.h"

namespace ds::rt::cuda {

/// The task of program.commands[index], which is no event. Errors do not name the command: the caller does.
Result<std::unique_ptr<CudaTask>> bindCommand(const Binding &binding, uint32_t index);

Result<std::unique_ptr<CudaTask>> bindKernel(const Binding &binding, const Command &command);
Result<std::unique_ptr<CudaTask>> bindMatmul(const Binding &binding, uint32_t index);
/// Embeddings, cross-entropy, attention and convolutions where no library does them, and fills and copies
/// that need a kernel.
Result<std::unique_ptr<CudaTask>> bindLibraryKernel(const Binding &binding, const Command &command);
/// One launch of a kernel of the runtime.
Result<std::unique_ptr<CudaTask>> bindLaunch(const Binding &binding, CudaLaunch what);
Result<std::unique_ptr<CudaTask>> bindCollective(const Binding &binding, uint32_t index);
/// Fills and copies that need no kernel; null for those that do.
Result<std::unique_ptr<CudaTask>> bindTransfer(const Binding &binding, const Command &command);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_COMMANDS_H
