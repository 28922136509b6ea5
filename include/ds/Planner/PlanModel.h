//===- PlanModel.h - From a model to a plan that fits ------------------------------===//
#ifndef DS_PLANNER_PLANMODEL_H
#define DS_PLANNER_PLANMODEL_H

#include "ds/Passes/Pipeline.h"

namespace mlir::ds {

/// Executes a pipeline on a module.
using RunPipeline = function_ref<LogicalResult(function_ref<void(OpPassManager &)>, ModuleOp)>;

/// step, or a later phase, to planned, so that the plan fits the memory of its machine if it can. Gathers and
/// pieces of attention's gradient take what memory is left beside what is live; where the packing then takes
/// more than that, they are decided again with so much less. Where the configuration leaves it open and no
/// plan fits, gradients are reduced in each micro-step in place of being kept whole. A later phase leaves
/// open what comes after it alone. Where activations may go to the host, what is kept is also chosen without
/// that, and without making more than elementwise ops again, and the fastest that fits by its simulation is
/// taken. The plan that fits, or else the smallest, is left in `module`. `run` executes a pipeline.
/// `resident`, where it is given, is `module` in phase resident as `options` choose it, so that it need not
/// be chosen again.
LogicalResult planToFit(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                        OwningOpRef<ModuleOp> resident = {});

/// The same for a plan that holds as little as can be at all moments, whatever that costs. Where it fits so
/// does planToFit's, which may fit where more can be held at other moments than the fullest.
LogicalResult planStepLeast(ModuleOp step, const PipelineOptions &options, RunPipeline run);

/// Any phase to planned, a planned module being left as it is. From model on, where `loss_chunks` leaves it
/// open, in how many pieces losses are made is chosen with all else that memory holds, on the step that has
/// them whole; that step is planned, or the one in so many pieces. More than one plan is made where the first
/// is not as it was expected. `loss_split` of `ds.decisions` then says what pieces save and cost: by the plan
/// of the other kind where `options` have it compared, else as it is expected.
LogicalResult planModel(ModuleOp module, const PipelineOptions &options, RunPipeline run);

/// How a model takes least memory. Other batches of it take least in the same form.
struct LeastForm {
  int64_t lossRows = 0;    ///< of a piece of its loss, where that is open; 0: whole
  int64_t leastStride = 0; ///< as PlanSearch has it
};

/// What is expected of a plan of `module`, in phase model, that holds as little as can be; finds the form for
/// that.
FailureOr<int64_t> expectLeast(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                               LeastForm &form);

/// model to planned in `form`, so that as little is held as can be, whatever that costs.
LogicalResult planLeast(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                        const LeastForm &form);

} // namespace mlir::ds

#endif // DS_PLANNER_PLANMODEL_H
