//===- CudaEmitter.h - One CUDA kernel per region ------------------------------===//
#ifndef DS_LIB_CODEGEN_CUDA_CUDAEMITTER_H
#define DS_LIB_CODEGEN_CUDA_CUDAEMITTER_H

#include "CudaMapping.h"
#include "CudaThread.h"
#include "KernelBody.h"

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

/// A kernel that is to be written.
struct CudaKernel {
  SmallVector<KernelBody, 2> sources;              ///< of its stages
  SmallVector<std::unique_ptr<LoopNest>, 2> nests; ///< as many
  SmallVector<CudaMapping, 2> mappings;            ///< as many; the first is the launch's
  CudaOperands operands;
};

/// Reads and maps `kernel`, the addresses of whose operands are multiples of `alignments`.
::ds::Result<CudaKernel> planCudaKernel(KernelOp kernel, ArrayRef<uint32_t> alignments);

/// Adds `kernel` to `module` as `symbol`: arith, math and LLVM ops and the primitives of `thread`.
void emitCudaKernel(const CudaKernel &kernel, StringRef symbol, CudaThread &thread, ModuleOp module);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_CUDA_CUDAEMITTER_H
