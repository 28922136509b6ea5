//===- BufferAccess.h - Which bytes a command touches ---------------------------===//
//
// Two commands must keep their order when they touch a common byte and one of them writes it. Before planning
// only what has one root (allocation, state or input) can share bytes; a window that differs from rank to
// rank counts with the windows of all ranks.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_BUFFERACCESS_H
#define DS_PASSES_BUFFERACCESS_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Bytes [begin, end) of a root that a command reads or writes.
struct BufferAccess {
  Value root;
  int64_t begin = 0, end = 0;
  bool isRead = false, isWrite = false;

  bool conflictsWith(const BufferAccess &other) const {
    return root == other.root && begin < other.end && other.begin < end && (isWrite || other.isWrite);
  }
};

/// True for commands that compute, on the compute stream.
bool isComputeCommand(Operation *op);

/// The allocation, state or input that `buffer` is a window of.
Value rootOfBuffer(Value buffer);
/// Bytes of its root that `buffer` spans, on any rank.
BufferAccess windowOf(Value buffer);

/// What `command` touches, a window once; none for events.
SmallVector<BufferAccess> accessesOf(Operation *command);

/// True when one of `first` conflicts with one of `second`.
bool conflict(ArrayRef<BufferAccess> first, ArrayRef<BufferAccess> second);

/// Moves the allocations and views of `func` to their first uses, after commands were moved.
void placeBuffers(func::FuncOp func);

} // namespace mlir::ds

#endif // DS_PASSES_BUFFERACCESS_H
