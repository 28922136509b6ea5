//===- CudaEmitter.h - One CUDA kernel per region ------------------------------===//
#ifndef DS_LIB_CODEGEN_CUDAEMITTER_H
#define DS_LIB_CODEGEN_CUDAEMITTER_H

#include "CudaMapping.h"
#include "CudaThread.h"

namespace mlir::ds::codegen {

/// Adds `symbol`, the kernel over `nest`, to `module`: arith, math and LLVM ops and the primitives of
/// `thread`. `alignments` are the bytes of which each operand's address is a multiple.
void emitCudaKernel(const LoopNest &nest, const Body &body, const Layout &layout, const CudaMapping &mapping,
                    ArrayRef<unsigned> alignments, StringRef symbol, CudaThread &thread, ModuleOp module);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_CUDAEMITTER_H
