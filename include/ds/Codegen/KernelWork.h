//===- KernelWork.h - The arithmetic of a fused body ------------------------------===//
#ifndef DS_CODEGEN_KERNELWORK_H
#define DS_CODEGEN_KERNELWORK_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// What the generated code of `kernel` computes, in additions: an exponential counts 40, as long as it takes,
/// and what several passes over a row compute counts in each.
/// `extent` is the number of elements of a body over `tensor<?x...>`. What ops are made of is asked of
/// ScalarBodyOpInterface; ops without a body count what CostOpInterface says.
double kernelWork(KernelOp kernel, int64_t extent = 1);

} // namespace mlir::ds

#endif // DS_CODEGEN_KERNELWORK_H
