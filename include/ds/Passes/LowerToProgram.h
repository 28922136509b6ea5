//===- LowerToProgram.h - From the planned module to the program of all ranks ----===//
//
// The last step of the compiler: nothing is decided here, everything is copied out of the IR into the plain
// struct that the runtime executes. Of a model that is cut into stages, all stages go into one program.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_LOWERTOPROGRAM_H
#define DS_PASSES_LOWERTOPROGRAM_H

#include "ds/Dialect/Ds.h"
#include "ds/Runtime/Program/Program.h"

namespace mlir::ds {

/// What the program says beyond the IR.
struct ProgramOptions {
  uint32_t hostThreads = 1; ///< where there is a host stream
  uint32_t microBatch = 1, accumulation = 1;
  double stepSeconds = 0; ///< that a step is expected to take; 0: not known
};

/// The kernels of the program of `module`, in its order: one of each name, that of the first stage that has
/// it.
SmallVector<KernelOp> getKernels(ModuleOp module);

/// The program of `module` (phase planned), without kernels: `Program::kernels` has one entry for each of
/// getKernels, with its name only. Fails with a diagnostic where the module is not planned. Requires stages
/// that ds-verify-stages accepts, with kernels that ds-share-kernels has named.
FailureOr<::ds::rt::Program> lowerToProgram(ModuleOp module, const ProgramOptions &options);

/// What the program of `module` says of its mesh and states, and nothing else. Fails as above.
FailureOr<::ds::rt::Program> lowerStates(ModuleOp module);

} // namespace mlir::ds

#endif // DS_PASSES_LOWERTOPROGRAM_H
