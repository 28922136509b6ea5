//===- Slots.h - What a pipeline keeps of several micro-batches at once -------------===//
//
// A state with `slots` is a matrix: a row for each micro-batch that it is kept of at one time, with the
// elements of one value and padding to kSlotAlignment. Functions have an argument of the value's own type,
// which is the row of the micro-batch that they run for.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_SLOTS_H
#define DS_PASSES_SLOTS_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Bytes of which a slot is a multiple.
inline constexpr int64_t kSlotAlignment = 64;

/// Bytes from one slot of a value of `type` to the next.
int64_t slotStride(BufferType type);

/// The same in elements.
int64_t slotElements(BufferType type);

/// The slots of the state that argument `index` of `func` is; 1 where it is none that has any.
int64_t slotsOf(func::FuncOp func, unsigned index);

} // namespace mlir::ds

#endif // DS_PASSES_SLOTS_H
