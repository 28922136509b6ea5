//===- PostOrder.h - What a value is computed from, operands first --------------===//
//
// Whoever copies or collects what makes a value goes to its operands first, and by way of these as far back
// as the model is long. A function that calls itself for each operand is as deep as that and runs out of
// stack; here the way back is a list.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_POSTORDER_H
#define DS_LIB_PASSES_SUPPORT_POSTORDER_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Calls `visit` with `value` and what it is computed from, each behind all operands of its op, in the order
/// in which a recursion over operands would. `isOpen` says of a value whether it is to be visited; it is
/// asked each time that one reads it, must say no of what `visit` was called with, and of values without op.
void visitPostOrder(Value value, function_ref<bool(Value)> isOpen, function_ref<void(Value)> visit);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_POSTORDER_H
