//===- OpenLoss.h - The loss as elementwise ops and sums ---------------------------===//
#ifndef DS_LIB_PASSES_SHARD_OPENLOSS_H
#define DS_LIB_PASSES_SHARD_OPENLOSS_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Writes the losses of `func`, and their gradients, as elementwise ops and reductions, so that ranks can
/// have classes each. `existing` says of logits of so many columns how many classes there are, where that is
/// fewer (PadClasses.h): columns behind them count as minus infinity.
void openLosses(func::FuncOp func, const DenseMap<int64_t, int64_t> &existing);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_OPENLOSS_H
