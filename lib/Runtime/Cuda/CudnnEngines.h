//===- CudnnEngines.h - The engines of cuDNN that a program's commands run on -----===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNNENGINES_H
#define DS_LIB_RUNTIME_CUDA_CUDNNENGINES_H

#include "Commands.h"

namespace ds::rt::cuda {

/// Commands of the same sizes share an engine. Without cuDNN's headers when the runtime was built, no command
/// can be bound (NoCudnn.cpp).
class CudnnEngines {
public:
  explicit CudnnEngines(const Hardware &hardware);
  ~CudnnEngines();

  /// The task of an attention command or a convolution. Fails where cuDNN cannot run it: the message says
  /// why.
  Result<std::unique_ptr<CudaTask>> bind(const Binding &binding, const Command &command);

  /// Of the library; requires that a command was bound.
  std::string version() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNNENGINES_H
