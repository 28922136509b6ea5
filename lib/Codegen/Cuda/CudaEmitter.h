//===- CudaEmitter.h - One CUDA kernel per region ------------------------------===//
#ifndef DS_LIB_CODEGEN_CUDA_CUDAEMITTER_H
#define DS_LIB_CODEGEN_CUDA_CUDAEMITTER_H

#include "CudaMapping.h"
#include "CudaThread.h"

namespace mlir::ds::codegen {

/// What is known of a kernel's operands.
struct CudaOperands {
  SmallVector<unsigned> alignments; ///< bytes of which each address is a multiple
  SmallVector<bool> isScalar;       ///< of rank 0
  int64_t items = 0;                ///< of one launch at most; 0: launches have none

  /// True when the function is given the address; others stand in the table of items.
  bool isGiven(unsigned number) const { return items == 0 || isScalar[number]; }
  unsigned countGiven() const { return items == 0 ? isScalar.size() : llvm::count(isScalar, true); }
  unsigned countInTable() const { return isScalar.size() - countGiven(); }
};

/// The operands of `kernel`, whose addresses are multiples of `alignments`.
CudaOperands describeOperands(KernelOp kernel, ArrayRef<uint32_t> alignments);

/// Adds `symbol`, the kernel over `nest`, to `module`: arith, math and LLVM ops and the primitives of
/// `thread`.
void emitCudaKernel(const LoopNest &nest, const Body &body, const Layout &layout, const CudaMapping &mapping,
                    const CudaOperands &operands, StringRef symbol, CudaThread &thread, ModuleOp module);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_CUDA_CUDAEMITTER_H
