//===- BufferTable.h - Where each tensor lies, and until when --------------------------===//
//
// Tensors, the buffers that they were given so far, the allocation, state or input behind each buffer (its
// root), and the last op that reads anything in a root. If %a is made at op 2, %b is a view of it, and op 5
// reads %b, then %a and %b have one root, which dies at op 5: a result of op 5 may overwrite it, and one of
// op 4 may not. States live to the end of the function, but for those that the segment gives up.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_BUFFERTABLE_H
#define DS_LIB_PASSES_BUFFERS_BUFFERTABLE_H

#include "Support/StatePlaces.h"
#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// The tensor type of `value`.
inline RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The buffer type of `value`.
inline BufferType bufferType(Value value) { return cast<BufferType>(value.getType()); }

class BufferTable {
public:
  /// Reads where tensors are used; `spaces` has those that are not on the device.
  BufferTable(func::FuncOp func, DenseMap<Value, Space> spaces);

  /// Gives the function the buffers that it takes beside its tensors: of inputs and states.
  void addArguments(SymbolTable &symbols);

  unsigned positionOf(Operation *op) const { return position.at(op); }
  Space spaceOf(Value value) const { return spaces.lookup(value); } // Device is 0
  /// The buffer of a tensor that has one.
  Value at(Value tensor) const { return buffers.at(tensor); }
  /// The same, or null.
  Value lookup(Value tensor) const { return buffers.lookup(tensor); }
  /// The place of a state.
  Value ofState(Attribute state) const { return stateBuffers.at(state); }
  /// The last op that reads the old value of a state; none where the function is not given it.
  std::optional<unsigned> lastReadOf(Attribute state) const;
  /// The allocation, state or input that `buffer` is a window of.
  Value rootOf(Value buffer) const;

  /// From here on `value` lies in `buffer`.
  void bind(Value value, Value buffer);
  void addView(Value view, Value root) { views[view] = root; }
  /// What lies in `buffer` is read to the end of the function.
  void keep(Value buffer) { rootLastUse[rootOf(buffer)] = UINT_MAX; }

  /// True when writing over `operand`'s buffer at `op` destroys nothing that is still needed.
  bool diesAt(Value operand, Operation *op) const;
  /// True when `operand` dies at its op and no other operand of the op lies in the same memory.
  bool diesAlone(OpOperand &operand) const;

private:
  void findLastUses();

  func::FuncOp func;
  DenseMap<Value, Space> spaces; ///< of the values that are not on the device
  DenseMap<Operation *, unsigned> position;
  DenseMap<Value, unsigned> lastUse;     ///< tensor -> position of its last reader
  DenseMap<Value, Value> buffers;        ///< tensor -> buffer
  DenseMap<Value, unsigned> rootLastUse; ///< root buffer -> last position at which any of its values is read
  DenseMap<Value, Value> views;          ///< view -> root
  DenseMap<Attribute, Value> stateBuffers;     ///< state symbol -> argument
  DenseMap<Attribute, unsigned> stateLastRead; ///< state symbol -> last reader of the old value
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_BUFFERTABLE_H
