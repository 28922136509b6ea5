//===- PlanModel.h - From a model to a plan that fits ------------------------------===//
#ifndef DS_PLANNER_PLANMODEL_H
#define DS_PLANNER_PLANMODEL_H

#include "ds/Passes/Pipeline.h"

namespace mlir::ds {

/// Executes a pipeline on a module.
using RunPipeline = function_ref<LogicalResult(function_ref<void(OpPassManager &)>, ModuleOp)>;

/// step, or a later phase, to planned, so that the plan fits `options.memory` if it can. What is tried in
/// turn: the schedule with less memory for gathers, by what the packing and workspaces took beyond it;
/// smaller pieces of attention's gradient, the largest that fit; where the configuration leaves it open,
/// reducing gradients in each micro-step in place of keeping them whole; attention's gradient without
/// workspace, which means without cuDNN. A later phase leaves open what comes after it alone. The plan that
/// fits, or else the smallest, is left in `module`. `run` executes a pipeline.
LogicalResult planToFit(ModuleOp module, const PipelineOptions &options, RunPipeline run);

/// Any phase to planned, a planned module being left as it is; from model on with ds-split-loss's choice put
/// to the test: where it splits a loss and `loss_chunks` leaves that open, the plan without it is taken
/// unless only the split one fits or it is the smaller. `ds.loss_chunks` of the module then says what the
/// split saves and costs.
LogicalResult planModel(ModuleOp module, const PipelineOptions &options, RunPipeline run);

} // namespace mlir::ds

#endif // DS_PLANNER_PLANMODEL_H
