//===- Snapshots.h - States as they were when a micro-batch went forward -----------===//
#ifndef DS_LIB_PASSES_STAGES_SNAPSHOTS_H
#define DS_LIB_PASSES_STAGES_SNAPSHOTS_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// An input, and a state that forward changes (the counter of a generator, a buffer), is another by the time
/// that backward reads it, for other micro-batches have gone forward between. So of what `func`, a segment on
/// buffers, reads of them behind forward, forward makes a copy, and what is recomputed and backward read
/// that. Fails where some of a state is read before the change and some after it.
LogicalResult keepSnapshots(func::FuncOp func);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STAGES_SNAPSHOTS_H
