//===- Pipeline.h - The phases as pipelines --------------------------------------===//
#ifndef DS_PASSES_PIPELINE_H
#define DS_PASSES_PIPELINE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::ds {

/// Attribute of a module for what it is compiled: "cuda:sm_90"; absent for the CPU.
inline constexpr llvm::StringLiteral kTargetAttr = "ds.target";

/// For what `module` is compiled: "cpu", "cuda:sm_90".
inline llvm::StringRef getTarget(ModuleOp module) {
  auto target = module->getAttrOfType<StringAttr>(kTargetAttr);
  return target ? target.getValue() : "cpu";
}

/// Whether the commands of `module` run on a GPU.
inline bool isForCuda(ModuleOp module) { return getTarget(module).starts_with("cuda:"); }

/// What the pipelines need beyond the IR and its `ds.training` attribute.
struct PipelineOptions {
  unsigned threads = 1;        ///< that the program will run with; library workspaces depend on it
  std::string cluster = "cpu"; ///< file or name: its rates decide what is gathered, kept and waited for when
  uint64_t attentionBytes = 256 << 20; ///< as ds-assign-workspaces has it
  int64_t memory = 0; ///< bytes that gathers and reductions under way must leave room in; 0: no limit
  // DeepSpeed's limits of what is gathered, in elements.
  int64_t prefetchElements = 50000000, maxLiveElements = 1000000000, maxReuseElements = 1000000000;
};

/// model -> step: loss, gradients, accumulation, clipping and update as one SSA function per segment.
void buildStepPipeline(OpPassManager &manager);

/// step -> sharded: what one rank holds, does and sends.
void buildShardPipeline(OpPassManager &manager, const PipelineOptions &options);

/// sharded -> scheduled: kernels, issue order, buffers, streams and events.
void buildSchedulePipeline(OpPassManager &manager, const PipelineOptions &options);

/// scheduled -> planned: workspaces and offsets.
void buildPlanPipeline(OpPassManager &manager, const PipelineOptions &options);

/// Executes a pipeline on a module.
using RunPipeline = function_ref<LogicalResult(function_ref<void(OpPassManager &)>, ModuleOp)>;

/// sharded and on to planned, so that the plan fits `options.memory` if it can. What is tried in turn: the
/// schedule with less memory for gathers, by what the packing and workspaces took beyond it; smaller pieces
/// of attention's gradient, the largest that fit; where the configuration leaves it open, reducing gradients
/// in each micro-step in place of keeping them whole; attention's gradient without workspace, which means
/// without cuDNN. The plan that fits, or else the smallest, is left in `module` (phase step). `run` executes
/// a pipeline.
LogicalResult planToFit(ModuleOp module, const PipelineOptions &options, RunPipeline run);

/// model to planned, with ds-split-loss's choice put to the test: where it splits a loss and `loss_chunks`
/// leaves that open, the plan without it is taken unless only the split one fits or it is the smaller.
/// `ds.loss_chunks` of the module then says what the split saves and costs.
LogicalResult planModel(ModuleOp module, const PipelineOptions &options, RunPipeline run);

/// Registers them as flags ds-step-pipeline, ds-shard-pipeline, ds-schedule-pipeline and ds-plan-pipeline.
void registerPipelines();

} // namespace mlir::ds

#endif // DS_PASSES_PIPELINE_H
