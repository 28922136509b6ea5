//===- CountStates.h - What a rank keeps for the whole step -----------------------===//
#ifndef DS_LIB_PLANNER_COUNTSTATES_H
#define DS_LIB_PLANNER_COUNTSTATES_H

#include "ds/Dialect/Ds.h"
#include "ds/Report/PlanReport.h"

namespace mlir::ds {

/// Bytes of the states of one rank. What lies in buckets counts by its members: a divided bucket as its
/// members' bytes over the number of ranks, whichever rank has more of the padding. `alignment` is what the
/// planner rounds a state's memory up to.
::ds::report::StateBytes countStateBytes(ModuleOp module, int64_t alignment);

/// Elements of all parameters of the model, or of those that are trained, tied ones once.
int64_t countParameters(ModuleOp module, bool onlyTrained = false);

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_COUNTSTATES_H
