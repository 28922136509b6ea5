//===- StepMemory.cpp - What a rank keeps, by rules --------------------------------===//
//
// Model states by ZeRO's formulas over a stage's own parameters, activations by the published bytes per layer
// for the micro-batches that the stage has in flight, and what is under way: gathered layers, buckets, a
// layer that is being computed again.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Estimate.h"
#include "ds/Cost/Formulas.h"

#include <algorithm>

namespace ds::cost {

/// Elements of a bucket, unless one parameter is larger: DeepSpeed's default.
static constexpr double kBucketElements = 5e8;
/// Bytes of fp32 master and moments per parameter.
static constexpr double kOptimizerBytes = 12;

/// Parameters of a stage outside its layers: embeddings on the first, the last norm and the output projection
/// on the last, which has a copy of its own where it is the embedding of another stage.
static int64_t outsideParameters(const ModelShape &shape, const ParallelPlan &plan, int64_t stage) {
  int64_t first = shape.embeddingParameters();
  int64_t norm = shape.rmsNorm ? shape.hidden : 2 * shape.hidden;
  bool own = !shape.tied || plan.pp > 1;
  return (stage == 0 ? first : 0) +
         (stage == plan.pp - 1 ? norm + (own ? shape.vocab * shape.hidden : 0) : 0);
}

namespace {
/// Counts that several parts need, as doubles.
struct Counts {
  Counts(const ModelShape &shape, const ParallelPlan &plan, const config::Cluster &cluster, int64_t stage)
      : t(static_cast<double>(plan.tp)), ranks(static_cast<double>(plan.dp * plan.sp)),
        layer(static_cast<double>(shape.layerParameters()) / t),
        bucket(std::max(kBucketElements,
                        static_cast<double>(shape.hidden * (shape.gated ? 2 : 1) * shape.ffnWidth()) / t)),
        stage(static_cast<double>(layersOfStage(shape, plan, stage) * shape.layerParameters() +
                                  outsideParameters(shape, plan, stage)) /
              t),
        onNode(static_cast<double>(std::min(plan.ranks(), cluster.devicesPerNode))) {}

  double t, ranks;
  double layer;  ///< parameters of a layer on one tensor-parallel rank
  double bucket; ///< elements of the largest bucket
  double stage;  ///< parameters of the stage on one tensor-parallel rank
  double onNode; ///< ranks of a node
};
} // namespace

/// Bytes in 16 bits that one layer keeps: layerActivationBytes for every kind of MLP, attention and dropout.
static double layerBytes(const ModelShape &shape, const ParallelPlan &plan, Recompute recompute) {
  double h = static_cast<double>(shape.hidden), kv = static_cast<double>(shape.kvWidth());
  double q = static_cast<double>(shape.queryWidth()), f = static_cast<double>(shape.ffnWidth()),
         t = static_cast<double>(plan.tp);
  double tokens = static_cast<double>(plan.microBatch * shape.seq);
  if (recompute == Recompute::Full)
    return 2 * tokens * h / static_cast<double>(plan.checkpointRanks());
  // Inputs of both norms and of the first product of both halves; the residuals' masks.
  double between = tokens * h * (shape.dropout ? 10 : 8) / (plan.shardSequence ? t : 1);
  // Queries, keys and values, the output's input; the MLP's inner tensors, before and after its activation.
  double inside = tokens * (4 * q + 4 * kv + (shape.gated ? 6 : 4) * f) / t;
  bool scores = recompute == Recompute::None && !plan.flashAttention;
  double perScore = !scores ? 0 : shape.dropout ? 5 : 2; // softmax; mask and dropped scores
  return between + inside +
         perScore * tokens * static_cast<double>(shape.heads) * static_cast<double>(shape.seq) / t;
}

/// Chunks of layers whose activations a stage holds at once: one per micro-batch that has not come back, and
/// when it is interleaved those of the warm-up over all chunks.
static int64_t chunksInFlight(const ParallelPlan &plan, int64_t stage) {
  int64_t later = plan.pp - stage - 1, chunks = plan.interleave;
  int64_t warmUp = chunks > 1 ? 2 * later + (chunks - 1) * plan.pp : later;
  return std::min(plan.accumulation * chunks, warmUp + 1);
}

/// What a stage keeps outside the layers: on the first the embedding's dropout masks, on the last the last
/// norm's and the projection's input and logits in fp32, of one micro-batch or a chunk of it.
static double outsideBytes(const ModelShape &shape, const ParallelPlan &plan, int64_t stage) {
  double tokens = static_cast<double>(plan.microBatch * shape.seq), t = static_cast<double>(plan.tp);
  double flat = tokens * static_cast<double>(shape.hidden) / t;
  double masks = stage == 0 && shape.dropout ? static_cast<double>(std::min(plan.accumulation, plan.pp)) : 0;
  bool last = stage == plan.pp - 1;
  double logits = tokens * static_cast<double>(shape.vocab) / t / static_cast<double>(plan.lossChunks);
  return masks * flat + (last ? 4 * (flat + logits) : 0);
}

StageActivations stageActivations(const ModelShape &shape, const ParallelPlan &plan, int64_t stage) {
  // The formulas are of 16 bits.
  double share = static_cast<double>(bytesOf(plan.dtype)) / 2 / static_cast<double>(plan.sp);
  StageActivations parts;
  parts.inFlight = chunksInFlight(plan, stage);
  parts.layers = static_cast<double>(layersOfStage(shape, plan, stage)) /
                 static_cast<double>(plan.interleave) * static_cast<double>(parts.inFlight);
  parts.perLayer = layerBytes(shape, plan, plan.recompute) * share;
  parts.again = plan.recompute == Recompute::None ? 0 : layerBytes(shape, plan, Recompute::None) * share;
  parts.outside = outsideBytes(shape, plan, stage) * share;
  if (plan.checkpointHome == Home::Cpu) { // the device has the running one and the next
    parts.onHost = parts.layers * parts.perLayer;
    parts.layers = std::min(parts.layers, 2.0);
  }
  return parts;
}

/// Buffers that what goes to and from storage passes through, in bytes of a rank: DeepSpeed's counts, one for
/// each of an optimizer's tensors and a bucket long, and five of 1e8 parameters.
static double stagingBytes(const ParallelPlan &plan, const Counts &c) {
  constexpr double kOptimizerBuffers = 4, kParameterBuffers = 5, kParameterElements = 1e8;
  double states =
      plan.optimizerHome == Home::Nvme ? kOptimizerBuffers * 4 * std::min(c.bucket, c.stage / c.ranks) : 0;
  double parameters = plan.parameterHome == Home::Nvme
                          ? kParameterBuffers * kParameterElements * static_cast<double>(bytesOf(plan.dtype))
                          : 0;
  return states + parameters;
}

/// What each state takes, and where.
static void placeStates(MemoryEstimate &memory, const ParallelPlan &plan, const Counts &c) {
  double low = static_cast<double>(bytesOf(plan.dtype));
  double optimizer = plan.dtype == DType::F32 ? 8 : kOptimizerBytes; // no master beside fp32 parameters
  auto sharded = [&](int64_t from, double bytes) {
    return bytes * c.stage / (plan.zeroStage >= from ? c.ranks : 1);
  };
  double parameters = sharded(3, low), states = sharded(1, optimizer);
  double gradients = sharded(2, static_cast<double>(bytesOf(plan.gradientDtype)));
  memory.parameters = plan.parameterHome == Home::Device ? parameters : 0;
  memory.optimizer = plan.optimizerHome == Home::Device ? states : 0;
  memory.gradients = plan.optimizerHome == Home::Device ? gradients : 0;
  auto put = [&](Home home, double MemoryEstimate::Offloaded::*part, double bytes) {
    if (home != Home::Device)
      (home == Home::Cpu ? memory.host : memory.storage).*part = bytes * c.onNode;
  };
  using Offloaded = MemoryEstimate::Offloaded;
  put(plan.parameterHome, &Offloaded::parameters, parameters);
  put(plan.optimizerHome, &Offloaded::gradients, gradients); // to where they are needed
  put(plan.optimizerHome, &Offloaded::optimizer, states);
  put(Home::Cpu, &Offloaded::staging, stagingBytes(plan, c));
}

/// Buckets that are gathered and reduced: the running one and the next.
static void placeBuckets(MemoryEstimate &memory, const ParallelPlan &plan, const Counts &c) {
  if (plan.zeroStage == 3 && (c.ranks > 1 || plan.parameterHome != Home::Device))
    memory.gathered = 2 * std::min(c.bucket, c.layer) * static_cast<double>(bytesOf(plan.dtype));
  double bucket = std::min(c.bucket, plan.zeroStage == 3 ? c.layer : c.stage);
  if (plan.optimizerHome != Home::Device || (plan.zeroStage >= 2 && c.ranks > 1))
    memory.reduced = 2 * bucket * static_cast<double>(bytesOf(plan.gradientDtype));
}

/// Attention's gradient, in what the device has left beside everything else. The last stage's logits are gone
/// when the last layer's runs.
static void placeWorkspace(MemoryEstimate &memory, const ModelShape &shape, const ParallelPlan &plan,
                           const config::Cluster &cluster, double logits) {
  double room = static_cast<double>(cluster.device.memoryBytes) - memory.deviceBytes() + logits;
  std::optional<double> bytes = attentionWorkspace(shape, plan, cluster, room);
  memory.workspace = std::max(0.0, bytes.value_or(0) - logits);
  memory.lacksWorkspace = bytes && *bytes == 0 && room >= 0; // else not even the rest fits
}

MemoryEstimate estimateStageMemory(const ModelShape &shape, const ParallelPlan &plan,
                                   const config::Cluster &cluster, int64_t stage) {
  Counts counts(shape, plan, cluster, stage);
  MemoryEstimate memory;
  placeStates(memory, plan, counts);
  placeBuckets(memory, plan, counts);
  StageActivations kept = stageActivations(shape, plan, stage);
  memory.activations = kept.layers * kept.perLayer + kept.again + kept.outside;
  memory.host.checkpoints = kept.onHost * counts.onNode;
  memory.context = static_cast<double>(cluster.device.contextBytes);
  placeWorkspace(memory, shape, plan, cluster, stage == plan.pp - 1 ? kept.outside : 0);
  return memory;
}

MemoryEstimate estimateMemory(const ModelShape &shape, const ParallelPlan &plan,
                              const config::Cluster &cluster) {
  MemoryEstimate first = estimateStageMemory(shape, plan, cluster, 0);
  if (plan.pp == 1)
    return first;
  MemoryEstimate last = estimateStageMemory(shape, plan, cluster, plan.pp - 1);
  return last.deviceBytes() > first.deviceBytes() ? last : first;
}

int64_t peakLimit(const config::Cluster &cluster) {
  return cluster.device.memoryBytes - cluster.device.contextBytes;
}

double peakFlops(const config::Cluster &cluster, config::DType dtype) {
  const double peak = cluster.device.peakFlops[dtype];
  return peak > 0 ? peak : cluster.device.peakFlops[config::DType::F32];
}

bool fits(const MemoryEstimate &memory, const config::Cluster &cluster) {
  return memory.deviceBytes() <= static_cast<double>(cluster.device.memoryBytes) &&
         memory.host.bytes() <= static_cast<double>(cluster.host.memoryBytes) &&
         memory.storage.bytes() <= static_cast<double>(cluster.nvme.bytes);
}

} // namespace ds::cost
