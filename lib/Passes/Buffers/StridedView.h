//===- StridedView.h - Views as shapes and strides -------------------------------===//
//
// What reshapes, transposes, slices and splits of a buffer look like as (offset, shape, strides), or that
// strides cannot say them. No IR is built here.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_STRIDEDVIEW_H
#define DS_LIB_PASSES_BUFFERS_STRIDEDVIEW_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// True for ops whose results are windows of their first operand, and cost nothing where strides can say
/// them.
inline bool isView(Operation *op) {
  return isa<ReshapeOp, TransposeOp, SliceOp, SplitOp, LocalShardOp, AfterOp>(op);
}

/// Whether what reads `use` reads it through a window: an ds.after's event is read once, where it stands.
inline bool isWindowed(OpOperand &use) { return isView(use.getOwner()) && use.getOperandNumber() == 0; }

/// A window of a buffer, relative to the buffer's first element.
struct StridedView {
  int64_t offset = 0;
  SmallVector<int64_t> shape, strides;
  ShiftsAttr shifts = {}; ///< where ranks see windows of their own
};

/// The whole of `type`.
StridedView viewOf(BufferType type);

/// `view` in another shape with the same number of elements in row-major order; nullopt when its strides
/// cannot say it (after "How to compute the strides of a reshaped view" in every array library: groups of
/// dimensions that are contiguous among themselves may be regrouped).
std::optional<StridedView> reshapeView(const StridedView &view, ArrayRef<int64_t> shape);

/// Dimension k of the result is dimension perm[k] of `view`.
StridedView transposeView(const StridedView &view, ArrayRef<int64_t> perm);

/// Elements offsets + steps * i of `view`.
StridedView sliceView(const StridedView &view, ArrayRef<int64_t> offsets, ArrayRef<int64_t> steps,
                      ArrayRef<int64_t> shape);

/// Each rank's part of `view`, of `shape`, where those of a group along `axes` lie one after the other along
/// dimension 0.
StridedView shardView(const StridedView &view, ArrayRef<int64_t> shape, MeshOp mesh, AxesAttr axes);

/// What windows in windows are shifted by; either may be null.
ShiftsAttr addShifts(ShiftsAttr outer, ShiftsAttr inner);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_STRIDEDVIEW_H
