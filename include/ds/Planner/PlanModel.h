//===- PlanModel.h - From a model to a plan that fits ------------------------------===//
#ifndef DS_PLANNER_PLANMODEL_H
#define DS_PLANNER_PLANMODEL_H

#include "ds/Passes/Pipeline.h"

namespace mlir::ds {

/// Executes a pipeline on a module.
using RunPipeline = function_ref<LogicalResult(function_ref<void(OpPassManager &)>, ModuleOp)>;

/// Any phase to planned, a planned module being left as it is, so that the plan fits the memory of its
/// machine if it can; else the smallest that was found is left in `module`. What is open is decided by what
/// is chosen of it, in phase resident: in how many pieces losses are made, where `loss_chunks` leaves that to
/// the compiler; whether gradients are reduced once a step or in each micro-step. `loss_split` of
/// `ds.decisions` says what pieces save and cost: by the plan of the other kind where `options` have it
/// compared, else as it is expected. A step is placed three times at most: again where packing
/// and streams take more or less than was chosen for; where activations may go to the host also without that,
/// and without making more than elementwise ops again, and the fastest by its simulation is taken. A later
/// phase leaves open what comes after it alone. Where `options` give up and what is chosen is far from
/// fitting, `module` is left in phase resident. `run` executes a pipeline.
LogicalResult planModel(ModuleOp module, const PipelineOptions &options, RunPipeline run);

/// How a model takes least memory. Other batches of it take least in the same form.
struct LeastForm {
  std::optional<int64_t> lossRows = {};      ///< of a piece of its loss, where that is open; nothing: whole
  RecomputedGroups groups = GroupWord::None; ///< of which calls are recomputed
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
