//===- PlanNotes.h - What a plan's reader is told of its choices ------------------===//
#ifndef DS_LIB_PLANNER_PLANNOTES_H
#define DS_LIB_PLANNER_PLANNOTES_H

#include "ds/Cost/Rates.h"
#include "ds/Dialect/Ds.h"
#include "ds/Report/PlanReport.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Reports what the planned `module` has for attention's gradients, how they are added up and what the other
/// way would take, and a note where the workspace is less than usual.
void describeAttention(ModuleOp module, const ::ds::cost::Rates &rates, ::ds::report::PlanReport &report);

/// Reports what the planned `module` recomputes in backward, and a note of what costs time.
void describeRecomputed(ModuleOp module, ::ds::report::PlanReport &report);

/// Adds the largest values that had a choice, and what of forward is on the host.
void describeLargestValues(ModuleOp module, ::ds::report::PlanReport &report);

/// Tells of chunks in `report`, where planModel compared plans.
void describeLoss(ModuleOp module, ::ds::report::PlanReport &report);

/// Adds a note for each choice that was left open, on one rank or several.
void describeChoices(ModuleOp module, ::ds::report::PlanReport &report);

/// Reports how ranks share layers, where they do.
void describeSharedLayers(ModuleOp module, ::ds::report::PlanReport &report);

/// Adds notes on what stays gathered in `func`, and what does not.
void describeGathers(func::FuncOp func, ::ds::report::PlanReport &report);

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_PLANNOTES_H
