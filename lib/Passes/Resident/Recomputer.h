//===- Recomputer.h - Recomputes in backward what is not kept -----------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_RECOMPUTER_H
#define DS_LIB_PASSES_RESIDENT_RECOMPUTER_H

#include "Fusing/OpenRegions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Lets all that comes behind forward in `func`, whose regions are `open`, read copies of what forward makes,
/// but for `kept`. Requires that what is not kept can be made of what is, by pure ops.
void recomputeInBackward(func::FuncOp func, const OpenRegions &open, DenseSet<Value> kept);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_RECOMPUTER_H
