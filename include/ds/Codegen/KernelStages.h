//===- KernelStages.h - Kernels that add up columns in two stages --------------===//
//
// The body of a kernel may yield sums of parts of columns and what is made of these once all parts are there:
//
//     %p = ds.reduce sum %x dims [0] : tensor<256x16x768xf32> -> tensor<16x768xf32>
//     %s = ds.reduce sum %p dims [0] : tensor<16x768xf32> -> tensor<768xf32>
//     ds.yield %p, %s
//
// No nest of loops computes both. On CUDA the block that ends the last part of a strip of columns goes on
// with the second stage, which reads what the first has stored (lib/Codegen/Cuda/CudaColumns.cpp).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_CODEGEN_KERNELSTAGES_H
#define DS_CODEGEN_KERNELSTAGES_H

#include "ds/Dialect/Ds.h"
#include <string>

namespace mlir::ds {

/// Ops of a body, in order, and the values among what it yields that they make.
struct KernelStage {
  SmallVector<Operation *> ops;
  SmallVector<Value> outputs;
};

/// The stages of the body of a ds.kernel: one, or two where it yields sums first that it reduces again. What
/// the first stage yields is memory to the second.
SmallVector<KernelStage, 2> stagesOf(Block &body);

/// Whether one launch on CUDA computes both stages of `kernel`, each with the additions of a launch of its
/// own in their order. `reason` says why not.
bool canLaunchStages(KernelOp kernel, std::string &reason);

} // namespace mlir::ds

#endif // DS_CODEGEN_KERNELSTAGES_H
