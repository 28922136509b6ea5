//===- CudnnEngines.h - The engines of cuDNN that a program's commands run on -----===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNENGINES_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNENGINES_H

#include "Cuda/Binding/Binding.h"
#include "Cuda/Binding/Choices.h"

namespace ds::rt::cuda {

/// A command that an engine can run, once the engine is chosen.
struct EngineWork {
  std::unique_ptr<CudaTask> task;
  Choice choice; ///< refuses with the reason; `what` is empty
};

/// Commands of the same sizes share an engine. Without cuDNN's headers when the runtime was built, no command
/// can be bound (NoCudnn.cpp).
class CudnnEngines {
public:
  explicit CudnnEngines(const Hardware &hardware);
  ~CudnnEngines();

  /// What an attention command or a convolution becomes. Fails where it cannot be described to cuDNN: the
  /// message says why.
  Result<EngineWork> bind(const Binding &binding, const Command &command);

  /// Of the library; requires that a command was bound.
  std::string version() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNENGINES_H
