//===- BufferEmitter.h - Makes allocations, views and copies ----------------------------===//
//
// What every lowering of an op is written with. Views of views name the root, so that every buffer is one
// step from its memory: elements 4 to 8 of a view that begins at element 100 of %r are a view of %r at 104.
// Each command says of work and layer what the op says that it runs.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_BUFFEREMITTER_H
#define DS_LIB_PASSES_BUFFERS_BUFFEREMITTER_H

#include "BufferTable.h"
#include "StridedView.h"
#include "ds/Dialect/Work.h"

namespace mlir::ds {

/// The stream that works on what lies in `space`.
inline StreamKind streamFor(Space space) {
  return space == Space::Device ? StreamKind::Compute : StreamKind::Host;
}

/// Has storage reach `alloc`: it begins at a unit, and has room for whole ones.
void alignToUnit(AllocOp alloc);

/// Whether `a` and `b` are the same elements of the same memory, in the same shape.
bool isSameWindow(Value a, Value b);

class BufferEmitter {
public:
  BufferEmitter(func::FuncOp func, BufferTable &table)
      : builder(func.getContext(), &listener), table(table) {}

  /// From here on all is made in front of `op`, says what it says, and lies in the space of its first result.
  void begin(Operation *op);
  /// The same, but of `work`, and where it was.
  void follow(Operation *op, Work work) { listener.follow(op, work); }

private:
  WorkListener listener;

public:
  OpBuilder builder;
  Space space = Space::Device; ///< of what the current op works on
  bool hasCopied = false;      ///< some value to be packed, or into the place where it is to be in the end

  Value createView(Value source, const StridedView &view, Location loc);
  /// `buffer`, or a packed copy of it if it is not contiguous.
  Value toContiguous(Value buffer, Location loc);
  /// A contiguous copy of `buffer` in memory of its own.
  Value toPrivate(Value buffer, Location loc);
  void copy(Value from, Value to, Location loc);
  /// Memory in the space of the current op, or in `in`.
  Value allocate(RankedTensorType type, AllocCategory category, Location loc) {
    return allocate(type, category, loc, space);
  }
  Value allocate(RankedTensorType type, AllocCategory category, Location loc, Space in);

private:
  BufferTable &table;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_BUFFEREMITTER_H
