//===- Pipeline.h - The phases as pipelines --------------------------------------===//
#ifndef DS_PASSES_PIPELINE_H
#define DS_PASSES_PIPELINE_H

#include "ds/Dialect/Ds.h"
#include "ds/Passes/PlanRequest.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::ds {

/// What the pipelines need beyond the IR, its `ds.training` and its `ds.machine`.
enum class LateUpdates { Never, Chosen, Always };

struct PipelineOptions {
  std::string tuning;             ///< file of ds-run --tune; empty: products are made as they always were
  std::string partition = "best"; ///< of layers on stages, as ds-cut-stages has it
  std::string schedule = "1f1b";  ///< of stages, as ds-pipeline-segments has it
  bool recomputesCalls = true;    ///< products, attention and reductions may be recomputed where that is open
  /// The plan with losses whole, or in pieces, that is not taken is made as well, so that the other says what
  /// it saves to the byte.
  bool comparesLosses = false;
  /// Nobody asks for a plan that does not fit: where what is chosen of it is far from that, none is made, and
  /// what was chosen is left in phase resident.
  bool givesUp = false;
  /// Whether the host's updates are left to the next step, beside its first forward. Pipelines leave them to
  /// it with Always alone; a plan, of which the pipelines are part, makes of Chosen what is better.
  LateUpdates lateUpdates = LateUpdates::Never;
  int64_t stagingBytes = 16 << 20; ///< of each piece of host memory that storage is moved through
  int64_t subGroupElements = 0;    ///< that the host updates at once; 0: no limit
  unsigned stagingSets = 2;        ///< of windows of storage that the host updates
  // DeepSpeed's limits of what is gathered, in elements.
  int64_t prefetchElements = 50000000, maxLiveElements = 1000000000, maxReuseElements = 1000000000;
};

/// A model becomes the stages that its mesh has, as pipeline.partition asks for: types are final then.
/// Nothing on one stage.
void buildCutPipeline(OpPassManager &manager, const std::string &partition);

/// model -> step: loss, gradients, accumulation, clipping and update as one SSA function per segment.
void buildStepPipeline(OpPassManager &manager, LossRows losses);

/// step -> sharded: what one rank holds, does and sends; `reducesInEach` as PlanRequest has it.
void buildShardPipeline(OpPassManager &manager, bool reducesInEach);

/// sharded -> fused: what lives elsewhere, what a kernel is, and what follows what.
void buildFusePipeline(OpPassManager &manager);

/// fused -> resident: what stays in memory until it is read, and what is recomputed.
void buildResidentPipeline(OpPassManager &manager, const PipelineOptions &options,
                           const ResidencyRequest &request);

/// resident -> scheduled: buffers, streams and events. First what memory has no say in, up to buffers in
/// issue order; then what runs beside compute, as far as the machine's memory holds it.
void buildBufferPipeline(OpPassManager &manager, const PipelineOptions &options);
void buildStreamPipeline(OpPassManager &manager, const PipelineOptions &options, MemoryLimit memory);
void buildSchedulePipeline(OpPassManager &manager, const PipelineOptions &options,
                           const PlacementRequest &request);

/// scheduled -> planned: workspaces and offsets.
void buildPlanPipeline(OpPassManager &manager, const PlacementRequest &request);

/// What checks that a module is in `phase`, for one that comes from outside.
void buildVerifier(OpPassManager &manager, Phase phase);

/// The pipelines that bring a module from phase `from` to `to`; none where it is there already.
void buildPipelines(OpPassManager &manager, Phase from, Phase to, const PipelineOptions &options,
                    const PlanRequest &request = {});

/// On a module of stages, of which each is a module for the pipelines above: before they are worked on, and
/// when all have reached a phase.
void buildStagesPipeline(OpPassManager &manager, Phase reached);

/// Registers them as flags ds-step-pipeline, ds-shard-pipeline, ds-fuse-pipeline, ds-resident-pipeline,
/// ds-schedule-pipeline and ds-plan-pipeline.
void registerPipelines();

} // namespace mlir::ds

#endif // DS_PASSES_PIPELINE_H
