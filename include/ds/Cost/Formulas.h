//===- Formulas.h - The published arithmetic of training large models ----------------===//
//
// What papers and DeepSpeed's and Megatron's own estimators say a training job takes, to the letter: these
// are the rules that a plan is held against, and what answers where no program exists yet. Sizes are doubles,
// for a trillion parameters times bytes times ranks leaves 64 bits.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_COST_FORMULAS_H
#define DS_COST_FORMULAS_H

#include "ds/Cost/Model.h"

namespace ds::cost {

//===--- ZeRO (arXiv 1910.02054) ---===//

/// Bytes of model state per parameter in mixed precision with Adam: 2 + 2 + 12.
struct StateBytes {
  double parameter = 2, gradient = 2, optimizer = 12;
};

/// Model states of one of `ranks` data-parallel ranks under a stage, in bytes.
double zeroStateBytes(double parameters, double ranks, int64_t stage, const StateBytes &bytes = {});

/// What one rank sends or receives in a step without accumulation, in elements: 2 or 3 per parameter.
double zeroVolumeElements(double parameters, int64_t stage);

//===--- DeepSpeed's estimators (deepspeed/runtime/zero) ---===//

struct MemoryNeed {
  double deviceBytes = 0, hostBytes = 0;
};

/// estimate_zero2_model_states_mem_needs.
MemoryNeed deepspeedZero2(double parameters, double devicesPerNode, double nodes, bool offloadOptimizer,
                          double bufferFactor = 1.5);

/// estimate_zero3_model_states_mem_needs.
struct Zero3Case {
  double parameters = 0, largestLayer = 0;
  double devicesPerNode = 1, nodes = 1;
  bool offloadOptimizer = true, offloadParameters = true;
  bool zeroInit = true; ///< parameters are sharded as they are made
  double bufferFactor = 1.5;
};
MemoryNeed deepspeedZero3(const Zero3Case &zero);

//===--- Megatron-LM (arXiv 2104.04473) ---===//

/// 12 L h^2 (1 + 13 / 12h + (V + s) / 12Lh), which leaves the last norm out.
double megatronParameters(const ModelShape &shape);

/// 96 B s L h^2 (1 + s / 6h + V / 16Lh): one step with full recomputation.
double megatronFlops(const ModelShape &shape, double batch);

/// Share of the ideal time that a pipeline of p stages with v chunks each idles over m micro-batches.
double pipelineBubble(double p, double m, double v = 1);

/// The same as a share of the step.
double pipelineIdleShare(double p, double m, double v = 1);

/// Schedules that part the backward pass into gradients by inputs and by weights (arXiv 2401.10241), all
/// three passes of equal length.
enum class Pipeline : uint8_t {
  OneForwardOneBackward,
  ZeroBubbleH1, ///< a third of the bubble at the same memory
  ZeroBubbleH2, ///< none at twice the memory
  ZeroBubbleV,  ///< none at the same memory, twice the transfers
};
/// Its bubble over the ideal time, and its activations over those of 1F1B.
double zeroBubble(Pipeline schedule, double p, double m);
double zeroBubbleMemory(Pipeline schedule);

/// Megatron's theoretical_memory_usage.py: bytes of model state per parameter, 18 or 6 + 12 / dp.
double megatronBytesPerParameter(double dp, bool distributedOptimizer);

//===--- Reducing activation recomputation (arXiv 2205.05198) ---===//

/// Bytes of activations that one transformer layer keeps, 16-bit with dropout. Of a layer that is computed
/// again its input, which ranks that share the sequence between products have a part of.
double layerActivationBytes(const ModelShape &shape, double microBatch, double tp, bool shardSequence,
                            Recompute recompute);

/// What a pipeline's first stage holds, in units of what p micro-batches of its layers take: min(m, p) / p,
/// and 1 + (p - 1) / (p v) times that when it is interleaved.
double pipelineInFlight(const ParallelPlan &plan);

/// How a pipeline's first stage keeps them: p micro-batches of L / p layers, fewer when the step has fewer,
/// more when the pipeline is interleaved.
double firstStageActivationBytes(const ModelShape &shape, const ParallelPlan &plan);

/// What the first stage keeps outside the layers: the embedding's dropout mask, and without a pipeline the
/// last norm, the projection's input and logits in fp32.
double outsideActivationBytes(const ModelShape &shape, const ParallelPlan &plan);

/// 72 B L s h^2 (1 + s / 6h + V / 12hL): what the model needs.
double modelFlops(const ModelShape &shape, double batch);

/// What is computed when attention is recomputed: 72 B L s h^2 (1 + s / 3h + V / 12hL).
double selectiveFlops(const ModelShape &shape, double batch);

//===--- ZeRO-Infinity (arXiv 2104.07857) ---===//

/// 20 bytes per parameter, 12 nl hd^2 parameters.
double infinityStateBytes(double layers, double hidden);
/// 2 bsz seq hd nl / ci.
double infinityCheckpointBytes(double layers, double hidden, double batch, double seq, double interval = 1);
/// The largest operator, parameters and gradients of hd x 4hd: 16 hd^2.
double infinityModelWorkingBytes(double hidden);
/// Activations between two checkpoints: bsz seq ci (16 hd + 2 heads seq).
double infinityActivationWorkingBytes(double hidden, double heads, double batch, double seq,
                                      double interval = 1);
/// Share of the peak that a bandwidth allows at an arithmetic intensity: ait bw / (ait bw + peak).
double infinityEfficiency(double intensity, double bytesPerSecond, double peakFlops);

} // namespace ds::cost

#endif // DS_COST_FORMULAS_H
