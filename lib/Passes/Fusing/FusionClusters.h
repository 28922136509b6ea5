//===- FusionClusters.h - Which ops one generated kernel computes ---------------===//
//
// Problem: every value that leaves a kernel costs a trip through memory, but a kernel has one iteration
// space, and a group of ops may only become one command if nothing outside lies between its members. Idea:
// walk the block once; an op joins the groups that produce its operands when their iteration domains agree
// and the union stays convex. Ops that cost nothing to repeat (constants, iotas, broadcasts, conversions to
// wider types) belong to no group: each user gets its own copy. Column reductions copy the cheap elementwise
// ops before them, since row-wise and column-wise kernels never merge.
// Price: greedy; a group never splits again.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_FUSING_FUSIONCLUSTERS_H
#define DS_LIB_PASSES_FUSING_FUSIONCLUSTERS_H

#include "FusionDomain.h"
#include "OpenRegions.h"

namespace mlir::ds {

/// One future ds.fused, with its ops in block order.
struct FusionCluster {
  FusionDomain domain;
  SmallVector<Operation *> ops;
};

/// Partitions the candidates of `block`, of which some are together in `regions`. Inserts private copies of
/// cheap ops before column reductions that are in none. Every candidate that is not free belongs to exactly
/// one cluster.
SmallVector<FusionCluster> findFusionClusters(Block &block, const OpenRegions &regions);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_FUSING_FUSIONCLUSTERS_H
