//===- CudnnCommands.h - What cuDNN runs where it can, else kernels of the runtime --===//
//
// cuDNN is optional. An engine is looked for when the program is loaded; where there is none that runs, or it
// needs more memory than the plan has for it, the runtime's own kernels compute the same, on all ranks. Which
// engine it was is kept on disk, so that every later run of the same program takes the same one and gives the
// same bits.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNNCOMMANDS_H
#define DS_LIB_RUNTIME_CUDA_CUDNNCOMMANDS_H

#include "Commands.h"

namespace ds::rt::cuda {

class CudnnEngines;

/// What the attention commands and convolutions of a program run on.
class CudnnCommands {
public:
  CudnnCommands();
  ~CudnnCommands();

  /// The task of an attention command or a convolution, which may wait for a choice.
  Result<std::unique_ptr<CudaTask>> bind(const Binding &binding, uint32_t index);

  /// "convolutions by cuDNN 9.19.0; attention by cuDNN 9.19.0", for the head of a run; empty without such
  /// commands. Says why where cuDNN does not run all of a kind.
  std::string describe() const;

private:
  /// What became of the commands of one kind.
  struct Tally {
    uint32_t byCudnn = 0, byKernels = 0; ///< commands
    uint32_t fast = 0;                   ///< of the former, gradients that are added up in any order
    std::string reason;                  ///< why the first of the latter is not by cuDNN
  };
  Result<std::unique_ptr<CudaTask>> bindKernel(const Binding &binding, const Command &command, Tally &tally,
                                               const Error &why);
  std::string describe(const char *what, const Tally &tally) const;

  std::unique_ptr<CudnnEngines> engines; ///< null until the first command asks
  Tally attention, convolutions;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNNCOMMANDS_H
