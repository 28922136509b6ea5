//===- FormRegions.h - Makes a ds.fused of ops of a block ------------------------===//
#ifndef DS_LIB_PASSES_FUSING_FORMREGIONS_H
#define DS_LIB_PASSES_FUSING_FORMREGIONS_H

#include "ds/Dialect/Ds.h"

#include "llvm/ADT/DenseSet.h"

namespace mlir::ds {

/// Ops that every reader copies: free ones outside all regions. Asked once, before regions hide what makes an
/// op free.
using CopiedOps = DenseSet<Operation *>;

/// Replaces `ops`, in block order, by one ds.fused at the place of the last. What it gives are the results
/// that others read; what it reads that `copied` makes it makes itself. Ops of `copied` that nothing else
/// reads go.
void formRegion(ArrayRef<Operation *> ops, CopiedOps &copied);

/// Sorts `block`: always the first op in the order that there is whose operands are made. What stood before
/// its operand comes right behind it, and all others stay between the neighbours that they had. (Going over
/// the block again and again, as mlir::sortTopologically does, would move what waits for nothing, such as an
/// op that is computed again, before all that waits for one displaced op.) Where there is no order, says so
/// of a region in a circle or behind one.
LogicalResult sortStably(Block &block);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_FUSING_FORMREGIONS_H
