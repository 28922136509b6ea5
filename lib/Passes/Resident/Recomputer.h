//===- Recomputer.h - Recomputes in backward what is not kept -----------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_RECOMPUTER_H
#define DS_LIB_PASSES_RESIDENT_RECOMPUTER_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Lets all that comes behind forward in `func` read copies of what forward makes, but for `kept`. Requires
/// that what is not kept can be made of what is, by pure ops.
void recomputeInBackward(func::FuncOp func, DenseSet<Value> kept);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_RECOMPUTER_H
