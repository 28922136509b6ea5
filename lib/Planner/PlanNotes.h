//===- PlanNotes.h - What a plan's reader is told of its choices ------------------===//
#ifndef DS_LIB_PLANNER_PLANNOTES_H
#define DS_LIB_PLANNER_PLANNOTES_H

#include "ds/Dialect/Ds.h"
#include "ds/Report/PlanReport.h"

namespace mlir::ds {

/// Reports what the planned `module` has for attention's gradients, and a note where that is less than usual.
void describeAttention(ModuleOp module, ::ds::report::PlanReport &report);

/// Tells what the planned `module` makes again in backward, and a note of what costs time.
void describeMadeAgain(ModuleOp module, ::ds::report::PlanReport &report);

/// Adds the largest values that had a choice, and what of forward is on the host.
void describeLargestValues(ModuleOp module, ::ds::report::PlanReport &report);

/// Tells of chunks in `report`, where planModel compared plans.
void describeLoss(ModuleOp module, ::ds::report::PlanReport &report);

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_PLANNOTES_H
