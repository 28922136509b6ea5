//===- CompileCuda.h - Generated kernels as PTX --------------------------------===//
#ifndef DS_CODEGEN_COMPILECUDA_H
#define DS_CODEGEN_COMPILECUDA_H

#include "ds/Codegen/CompileKernels.h"

namespace mlir::ds {

/// The processors that code is generated for, the oldest first. Later ones run it as well.
ArrayRef<StringRef> cudaProcessors();

/// 90 of "sm_90" and of "cuda:sm_90"; 0 of what is no GPU.
int cudaCapability(StringRef name);

/// The newest of them that a device of `architecture` ("sm_89") runs; nothing where that is older than all.
std::optional<StringRef> nearestProcessor(StringRef architecture);

/// "sm_90" for "cuda:sm_90", and the nearest one for the target of a later device: "sm_80" for "cuda:sm_89".
/// Fails (exit code 3) with the list of targets for what is none.
::ds::Result<std::string> findCudaProcessor(StringRef target);

/// Compiles `kernels`, all of one context, to PTX text that ends in a 0. `alignments` holds, for each kernel
/// and operand, bytes (a power of two) of which the operand's address is a multiple at every launch. Needs no
/// part of CUDA. Equal input gives equal bytes.
::ds::Result<CompiledKernels> compileCudaKernels(ArrayRef<KernelOp> kernels,
                                                 ArrayRef<std::vector<uint32_t>> alignments,
                                                 StringRef processor);

/// `ptx` assembled by ptxas for `processor`; empty where there is no ptxas on PATH or in
/// /usr/local/cuda/bin. An error of one line when ptxas does not run or refuses.
::ds::Result<std::vector<uint8_t>> assemblePtx(ArrayRef<uint8_t> ptx, StringRef processor);

} // namespace mlir::ds

#endif // DS_CODEGEN_COMPILECUDA_H
