//===- CudnnEngines.h - The engines of cuDNN that a program's commands run on -----===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNENGINES_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNENGINES_H

#include "Cuda/Binding/Binding.h"
#include "Cuda/Binding/Choices.h"

#include "../../../../kernels/CudaCommands.h"

#include <functional>
#include <memory>
#include <vector>

namespace ds::rt::cuda {

/// A command that engines can run, once they are chosen.
struct EngineWork {
  std::unique_ptr<CudaTask> task;
  std::vector<Choice> choices; ///< of each engine: they refuse with the reason; `what` is empty
};

/// The task of a launch of the runtime's kernels.
using LaunchBinder = std::function<Result<std::unique_ptr<CudaTask>>(CudaLaunch)>;

/// Commands of the same sizes share an engine. Without cuDNN's headers when the runtime was built, no command
/// can be bound (NoCudnn.cpp).
class CudnnEngines {
public:
  explicit CudnnEngines(const Hardware &hardware);
  ~CudnnEngines();

  /// What an attention command or a convolution becomes, with what the runtime's kernels add to it. Fails
  /// where it cannot be described to cuDNN: the message says why.
  Result<EngineWork> bind(const Binding &binding, const Command &command, const LaunchBinder &launch);

  /// Of the library; requires that a command was bound.
  std::string version() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNENGINES_H
