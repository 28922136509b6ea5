//===- Attention.h - Attention on a GPU: by cuDNN, or by kernels of the runtime ---===//
//
// cuDNN is optional. An engine is looked for when the program is loaded; where there is none, or it needs
// more memory than the plan has for it, the runtime's own kernels compute the same. Which engine it was is
// kept on disk, so that every later run of the same program takes the same one and gives the same bits.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_ATTENTION_H
#define DS_LIB_RUNTIME_CUDA_ATTENTION_H

#include "Commands.h"

namespace ds::rt::cuda {

class CudnnEngines;

/// What the attention commands of a program run on.
class Attention {
public:
  Attention();
  ~Attention();

  /// The task of an attention command.
  Result<std::unique_ptr<CudaTask>> bind(const Binding &binding, const Command &command);

  /// "attention by cuDNN 9.19.0", for the head of a run; empty without attention. Says why where cuDNN does
  /// not run all of it.
  std::string describe() const;

private:
  Result<std::unique_ptr<CudaTask>> bindEngine(const Binding &binding, const Command &command);

  std::unique_ptr<CudnnEngines> engines; ///< null until the first command asks
  uint32_t byCudnn = 0, byKernels = 0;   ///< commands
  std::string reason;                    ///< why the first of the latter is not by cuDNN
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_ATTENTION_H
