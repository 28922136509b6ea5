//===- OpenLoss.h - The loss as elementwise ops and sums ---------------------------===//
#ifndef DS_LIB_PASSES_SHARD_OPENLOSS_H
#define DS_LIB_PASSES_SHARD_OPENLOSS_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Writes the losses of `func`, and their gradients, as elementwise ops and reductions, so that ranks can have classes
/// each. `existing` are the classes of logits that there are: columns behind them are padding, and count as minus infinity; nothing where
/// all of a loss's are.
void openLosses(func::FuncOp func, std::optional<int64_t> existing);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_OPENLOSS_H
