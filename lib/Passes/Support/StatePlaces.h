//===- StatePlaces.h - Which values become states, and whose memory those take -------------===//
//
// Read by what counts memory on tensors and by what gives buffers, so that both say the same.
//
// Example, of an update that reads a gradient, a moment that was moved here and a weight: the new moment
// takes the moved one's memory (rank 0), for that moves back to the state from which it came. A result that
// goes nowhere takes the gradient's (rank 2) and leaves the moment's (rank 3) to it.
//
//===---------------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_STATEPLACES_H
#define DS_LIB_PASSES_SUPPORT_STATEPLACES_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// The state of which `func` returns `value` as the new value; null where it is none's.
FlatSymbolRefAttr becomesState(func::FuncOp func, Value value);

/// How well the memory of `operand`, of the same op, suits what `result` gives, from 0, which is best, to 3:
/// a state that was moved here takes its new value back, and other values leave such memory to those. A
/// state's own place, if `isInState`, is there anyway.
unsigned rankOfPlace(Value operand, bool isInState, OpResult result);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_STATEPLACES_H
