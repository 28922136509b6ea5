//===- ShareSequences.h - A segment whose sequences ranks are to share -------------===//
#ifndef DS_LIB_PASSES_SHARD_SHARESEQUENCES_H
#define DS_LIB_PASSES_SHARD_SHARESEQUENCES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Fails, with a diagnostic that names what would do, where `ranks` cannot share the sequences of `func`:
/// where there are none, and where they do not divide those of attention, or its heads.
LogicalResult checkSequences(func::FuncOp func, int64_t ranks);

/// Prepares `func` for ranks that have parts of its sequences. Losses are divided by the number of targets of
/// all rows, and key heads which `ranks` do not divide are repeated as often as it takes, so that each rank
/// reads those of its queries and no others; gradients of the copies are added up.
void openSequences(func::FuncOp func, int64_t ranks);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_SHARESEQUENCES_H
