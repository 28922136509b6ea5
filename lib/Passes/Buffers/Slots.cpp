//===- Slots.cpp - What a pipeline keeps of several micro-batches at once -----------===//
#include "ds/Passes/Slots.h"

#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

int64_t mlir::ds::slotStride(BufferType type) { return llvm::alignTo(reservedBytes(type), kSlotAlignment); }

int64_t mlir::ds::slotElements(BufferType type) {
  const int64_t elementBytes = std::max(1u, type.getTensor().getElementTypeBitWidth() / 8);
  return slotStride(type) / elementBytes;
}

int64_t mlir::ds::slotsOf(func::FuncOp func, unsigned index) {
  FlatSymbolRefAttr name = getStateOf(func, index);
  auto state = name ? SymbolTable::lookupNearestSymbolFrom<StateOp>(func, name) : StateOp();
  return state ? static_cast<int64_t>(state.getSlots().value_or(1)) : 1;
}
