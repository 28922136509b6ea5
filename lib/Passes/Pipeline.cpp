//===- Pipeline.cpp - The order of passes, as prose ------------------------------===//
//
// Each pipeline is one border of the design to the next. Before each pass: why it stands here, and what must
// not come between.
//
//===---------------------------------------------------------------------------===//
#include "ds/Passes/Pipeline.h"

#include "ds/Passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::ds;

/// Gives a model the ops and types that it is differentiated in.
static void addModelPasses(OpPassManager &manager) {
  manager.addPass(createVerifyModel());

  // Imported graphs repeat themselves and leave transposes before products: patterns below look through
  // neither.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());

  // Attention looks for heads behind what cuts them out of a fused projection.
  manager.addNestedPass<func::FuncOp>(createRaiseSplits());

  // Spelled-out GELU, attention and caps of logits must be found before their gradients are spelled out too.
  manager.addNestedPass<func::FuncOp>(createRaiseGelu());
  manager.addPass(createRaiseAttention());
  manager.addNestedPass<func::FuncOp>(createRaiseLossCap());
  manager.addPass(createCanonicalizerPass());

  // Before differentiation, so that gradients follow the types; after raising, which knows f32 spellings
  // only.
  manager.addPass(createLowerPrecision());
}

void mlir::ds::buildCutPipeline(OpPassManager &manager, const std::string &partition) {
  addModelPasses(manager);
  CutStagesOptions cut;
  cut.partition = partition;
  manager.addPass(createCutStages(cut));
}

void mlir::ds::buildStepPipeline(OpPassManager &manager, LossRows losses) {
  addModelPasses(manager);

  // In final types: what a chunk saves is counted in them.
  manager.addPass(createOfferLoss());

  // Each chunk's forward; its backward is differentiation's to write.
  SplitLossOptions split;
  split.rows = losses;
  manager.addPass(createSplitLoss(split));

  manager.addPass(createDifferentiate());

  // Before the functions of a step are copied from the forward.
  manager.addNestedPass<func::FuncOp>(createSinkLoss());

  // Dropout must still be an op here: evaluation leaves it out.
  manager.addPass(createBuildStep());

  // Composite layers keep their results for their gradients; only now may they fall apart. Updates stay
  // whole: ranks divide them.
  DecomposeOptions decompose;
  decompose.keepUpdates = true;
  manager.addPass(createDecompose(decompose));
  manager.addPass(createSimplify());
  manager.addPass(createVerifyStep());
}

void mlir::ds::buildShardPipeline(OpPassManager &manager, bool reducesInEach) {
  // Layers first: ZeRO counts what a rank has of a parameter.
  manager.addPass(createShardTensors());
  ShardZeroOptions shard;
  shard.reducesInEach = reducesInEach;
  manager.addPass(createShardZero(shard));

  // Updates have the shape of what a rank has now. What they and the windows of buckets repeat is merged.
  manager.addPass(createDecompose());
  manager.addPass(createSimplify());
  manager.addPass(createVerifySharded());
}

void mlir::ds::buildFusePipeline(OpPassManager &manager) {
  // First of all, on ops that are still apart: what lives and runs elsewhere takes no part in regions here,
  // and what is moved has its place in the order.
  manager.addPass(createOffloadStates());
  manager.addPass(createOffloadUpdates());
  manager.addPass(createPlaceStates());
  manager.addNestedPass<func::FuncOp>(createNormalizeShapes());
  // No canonicalisation and no common-subexpression elimination from here on: they would undo the private
  // copies that regions live on, and merge what is computed again with what it was first.
  manager.addNestedPass<func::FuncOp>(createFuseRegions());
  // Order is decided on values, because buffers freeze who may overwrite whom.
  manager.addNestedPass<func::FuncOp>(createOrderIssue());
  manager.addPass(createVerifyFused());
}

void mlir::ds::buildResidentPipeline(OpPassManager &manager, const PipelineOptions &options,
                                     const ResidencyRequest &request) {
  // It is known what a kernel is, what lies in memory, and when.
  RematerializeCheapOptions cheap;
  cheap.memory = request.memory;
  cheap.groups = request.groups;
  cheap.losses = request.opensLosses;
  cheap.keepsActivations = request.keepsActivations;
  cheap.maxReuseElements = options.maxReuseElements;
  cheap.maxLiveElements = options.maxLiveElements;
  cheap.prefetchElements = options.prefetchElements;
  cheap.calls = options.recomputesCalls && request.recomputesCalls;
  manager.addPass(createRematerializeCheap(cheap));
  manager.addPass(createVerifyResident());
}

void mlir::ds::buildBufferPipeline(OpPassManager &manager, const PipelineOptions &options) {
  // What is recomputed joins the region that reads it, so its ops must stand beside that.
  manager.addNestedPass<func::FuncOp>(createInlineRecompute());
  // What is kept and recomputed is settled: nothing else is to be done with the logits.
  manager.addNestedPass<func::FuncOp>(createJoinLoss());
  // Regions stay as they are, but for what is recomputed.
  manager.addNestedPass<func::FuncOp>(createFuseRegions());
  // Only now is it known what reads a product beside GELU.
  manager.addNestedPass<func::FuncOp>(createApplyGelu());
  // Regions are whole: what they lose would not be found again.
  manager.addNestedPass<func::FuncOp>(createSplitColumns());
  // What is brought back has no place in the order yet, and reads states again, whose new values are made
  // behind that.
  manager.addNestedPass<func::FuncOp>(createOrderIssue());
  BufferizeOptions buffers;
  buffers.staging = options.stagingBytes;
  manager.addPass(createBufferize(buffers));
  // The very first on buffers: it reads and removes what bufferisation says of guesses, and an update is
  // still one launch.
  manager.addNestedPass<func::FuncOp>(createSpeculateUpdates());
  // An update is still one launch with its copies after it, and what is speculative is known.
  if (options.lateUpdates == LateUpdates::Always)
    manager.addPass(createRotateUpdates());
  // What waits between parts of a segment is a state from there on, whose rows nobody moves.
  AlignRowsOptions kept;
  kept.stages = true;
  manager.addPass(createAlignRows(kept));
  // Likewise, of stages: each part of a segment is worked on by itself from here on.
  PipelineSegmentsOptions segments;
  segments.schedule = options.schedule;
  manager.addPass(createPipelineSegments(segments));
  // Others are to see the pieces, and nothing has moved between an update and its
  // copies.
  SplitUpdatesOptions updates;
  updates.subGroup = options.subGroupElements;
  updates.staging = options.stagingBytes;
  updates.sets = options.stagingSets;
  manager.addNestedPass<func::FuncOp>(createSplitUpdates(updates));
  // Launches stand where bufferisation has put them, and nothing orders streams yet.
  manager.addPass(createJoinBiasGrad());
  // Who shares memory with whom is settled, and nothing has yet asked how long a product takes or what memory
  // is.
  manager.addPass(createAlignRows());
  // The sums of biases are found by now as the two launches that they were, and rows lie where they lie.
  manager.addPass(createJoinColumnSums());
  // Products are what they will be, and nothing orders streams yet; how fast pieces are is asked next.
  manager.addNestedPass<func::FuncOp>(createOverlapExchanges());
  // Before anything asks how long a product takes or how much memory.
  if (options.tuning.empty())
    return;
  ChooseProductsOptions products;
  products.tuning = options.tuning;
  manager.addPass(createChooseProducts(products));
}

void mlir::ds::buildStreamPipeline(OpPassManager &manager, const PipelineOptions &options,
                                   MemoryLimit memory) {
  // Reductions first: what they hold is memory that gathers cannot have.
  manager.addNestedPass<func::FuncOp>(createOverlapReductions({memory}));
  // As reductions: what is being copied to the host is memory that gathers cannot have.
  manager.addNestedPass<func::FuncOp>(createReleaseStored({memory}));
  ScheduleCommunicationOptions gathers;
  gathers.prefetchElements = options.prefetchElements;
  gathers.maxLiveElements = options.maxLiveElements;
  gathers.maxReuseElements = options.maxReuseElements;
  gathers.memory = memory;
  manager.addPass(createScheduleCommunication(gathers));
  // While gathers are moved and joined, each is one command.
  manager.addNestedPass<func::FuncOp>(createSplitGathers());
  // Gathers read what is loaded: now it is known when.
  manager.addNestedPass<func::FuncOp>(createPrefetchLoads({memory}));
  // After gathers and reductions, which stand between launches that must not be moved across them.
  manager.addPass(createGroupLaunches());
  // Nothing may move any more: events order the streams as they stand.
  manager.addNestedPass<func::FuncOp>(createInsertEvents());
  // Only now is it known what a plan could reuse without it; what shares memory then is ordered as well.
  manager.addNestedPass<func::FuncOp>(createShareHost());
  manager.addNestedPass<func::FuncOp>(createInsertEvents());
  manager.addPass(createVerifyScheduled());
}

void mlir::ds::buildSchedulePipeline(OpPassManager &manager, const PipelineOptions &options,
                                     const PlacementRequest &request) {
  buildBufferPipeline(manager, options);
  buildStreamPipeline(manager, options, request.streams);
}

void mlir::ds::buildPlanPipeline(OpPassManager &manager, const PlacementRequest &request) {
  // Workspaces are allocations: they must exist before offsets are given out.
  manager.addNestedPass<func::FuncOp>(createAssignWorkspaces({request.workspaces}));
  manager.addPass(createPlanMemory());
  manager.addPass(createVerifyPlanned());
  // Only now is it known who reuses whose memory.
  manager.addPass(createVerifyCollectives());
}

void mlir::ds::buildVerifier(OpPassManager &manager, Phase phase) {
  switch (phase) {
  case Phase::Model:
    manager.addPass(createVerifyModel());
    break;
  case Phase::Step:
    manager.addPass(createVerifyStep());
    break;
  case Phase::Sharded:
    manager.addPass(createVerifySharded());
    break;
  case Phase::Fused:
    manager.addPass(createVerifyFused());
    break;
  case Phase::Resident:
    manager.addPass(createVerifyResident());
    break;
  case Phase::Scheduled:
    manager.addPass(createVerifyScheduled());
    break;
  case Phase::Planned:
    // All that a program relies on: nobody looks at it again.
    manager.addPass(createVerifyScheduled());
    manager.addPass(createVerifyPlanned());
    manager.addPass(createVerifyCollectives());
    break;
  }
}

void mlir::ds::buildPipelines(OpPassManager &manager, Phase from, Phase to, const PipelineOptions &options,
                              const PlanRequest &request) {
  auto crosses = [&](Phase border) { return from < border && border <= to; };
  if (crosses(Phase::Step))
    buildStepPipeline(manager, request.losses);
  if (crosses(Phase::Sharded))
    buildShardPipeline(manager, request.reducesInEach);
  if (crosses(Phase::Fused))
    buildFusePipeline(manager);
  if (crosses(Phase::Resident))
    buildResidentPipeline(manager, options, request.residency);
  if (crosses(Phase::Scheduled))
    buildSchedulePipeline(manager, options, request.placement);
  if (crosses(Phase::Planned))
    buildPlanPipeline(manager, request.placement);
}

void mlir::ds::buildStagesPipeline(OpPassManager &manager, Phase reached) {
  // Before stages are worked on: what they say alike is taken from the first. In the end: only on buffers is
  // it known what they send each other.
  manager.addPass(createVerifyStages());
  // Each has named its kernels by itself, and the program has one table.
  if (reached == Phase::Planned)
    manager.addPass(createShareKernels());
}

namespace {
/// What ds-step-pipeline can be asked for in text.
struct StepRequestOptions : PassPipelineOptions<StepRequestOptions> {
  Option<LossRows> losses{*this, "losses", llvm::cl::desc("Rows of a chunk, as ds-split-loss has them"),
                          llvm::cl::init(LossRows())};
};
} // namespace

void mlir::ds::registerPipelines() {
  static PassPipelineRegistration<StepRequestOptions> step(
      "ds-step-pipeline", "From the model to the step",
      [](OpPassManager &manager, const StepRequestOptions &asked) {
        buildStepPipeline(manager, asked.losses);
      });
  static PassPipelineRegistration<> shard(
      "ds-shard-pipeline", "From the step to what one rank does",
      [](OpPassManager &manager) { buildShardPipeline(manager, /*reducesInEach=*/false); });
  static PassPipelineRegistration<> fuse("ds-fuse-pipeline", "From what one rank does to kernels in order",
                                         buildFusePipeline);
  static PassPipelineRegistration<> resident(
      "ds-resident-pipeline", "From kernels in order to what is kept and recomputed",
      [](OpPassManager &manager) { buildResidentPipeline(manager, {}, {}); });
  static PassPipelineRegistration<> schedule(
      "ds-schedule-pipeline", "From what is kept to buffers and streams",
      [](OpPassManager &manager) { buildSchedulePipeline(manager, {}, {}); });
  static PassPipelineRegistration<> plan("ds-plan-pipeline", "From buffers to offsets",
                                         [](OpPassManager &manager) { buildPlanPipeline(manager, {}); });
}
