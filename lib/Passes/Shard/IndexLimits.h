//===- IndexLimits.h - Which indices inputs may hold ------------------------------===//
#ifndef DS_LIB_PASSES_SHARD_INDEXLIMITS_H
#define DS_LIB_PASSES_SHARD_INDEXLIMITS_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Says in the module's `ds.indices` what its ops show of the indices in its inputs: those below the number
/// of rows of each table in which they are looked up, or of classes, and the target that a loss ignores. For
/// a pass that is about to cut tables, behind which no op shows the whole's size.
void keepIndexLimits(ModuleOp module);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_INDEXLIMITS_H
