//===- DeferProducts.h - Products behind exchanges that do not need them -------------===//
//
// In backward the gradient of a weight stands before that of what the layer has read, for what it reads is
// free then. The other is exchanged, and nothing hides that:
//
//   compute    W X . . R            with W deferred    X W R
//   exchange       E E                                   E E
//
// It is deferred where its operands' memory is there anyway: where what is live between, with them, is no
// more than what is live elsewhere in the function.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STREAMS_DEFERPRODUCTS_H
#define DS_LIB_PASSES_STREAMS_DEFERPRODUCTS_H

#include "ds/Passes/CommandCost.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Seconds of compute behind `from` and before `to`, or the end where that is null.
double secondsBetween(CommandCosts &costs, Operation *from, Operation *to, ArrayRef<CallOp> without = {});

/// Moves products of `func` behind sums over ranks that do not depend on them, as many as hide the sum.
/// Returns whether it has moved any; places of buffers are to be found again then.
bool deferProducts(func::FuncOp func, CommandCosts &costs);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STREAMS_DEFERPRODUCTS_H
