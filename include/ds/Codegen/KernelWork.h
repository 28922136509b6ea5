//===- KernelWork.h - The arithmetic of a fused body ------------------------------===//
#ifndef DS_CODEGEN_KERNELWORK_H
#define DS_CODEGEN_KERNELWORK_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Operations on single elements, and rows to be added up.
struct KernelWork {
  double additions = 0; ///< and what takes as long; an exponential counts 40
  double divisions = 0, roots = 0;
  double rows = 0; ///< reductions of a row that something waits for, once for each level of them

  KernelWork &operator+=(const KernelWork &other);
  friend KernelWork operator*(KernelWork work, double times);
  bool operator==(const KernelWork &) const = default;
};

/// What the generated code of `kernel` computes, what several passes over a row compute counted in each.
/// `extent` is the number of elements of a body over `tensor<?x...>`. What ops are made of is asked of
/// ScalarBodyOpInterface; ops without a body count what CostOpInterface says.
KernelWork kernelWork(KernelOp kernel, int64_t extent = 1);

} // namespace mlir::ds

#endif // DS_CODEGEN_KERNELWORK_H
