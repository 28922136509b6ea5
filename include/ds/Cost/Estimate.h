//===- Estimate.h - A training step by rules: seconds and bytes ----------------------===//
//
// What a step of a transformer costs on a cluster, before there is a program of it: the layers' products and
// passes over memory, the exchanges of each kind of parallelism, the pipeline's bubble, the update, and what
// is kept where. One set of constants per machine, all of them figures of its description.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_COST_ESTIMATE_H
#define DS_COST_ESTIMATE_H

#include "ds/Cost/Model.h"
#include "ds/Cost/Rates.h"

namespace ds::cost {

/// One part of a step's time on the busiest rank.
struct Term {
  std::string name;
  double seconds = 0;
  std::string source; ///< the figures and rules that it comes from
};

/// One layer of one micro-batch, in seconds. Exchanges are those of tensor and sequence parallelism.
struct LayerSeconds {
  double forward = 0, backward = 0;
  double recompute = 0;        ///< what the backward pass computes again
  double forwardExchange = 0;  ///< compute waits for it
  double backwardExchange = 0; ///< what is left beside products, with what recomputation repeats
};

struct StepEstimate {
  double seconds = 0;
  std::vector<Term> terms; ///< add up to `seconds`
  LayerSeconds layer;
  double modelFlops = 0;    ///< of the whole step, over all ranks: stepFlops, what the model needs
  double hardwareFlops = 0; ///< with what is computed again
  /// Bytes that a rank sends in a step, by kind.
  double gatheredBytes = 0, scatteredBytes = 0, reducedBytes = 0;

  /// Operations per second and device that a figure of hardware operations would give.
  double hardwareFlopsPerDevice(const ParallelPlan &plan) const {
    return hardwareFlops / seconds / static_cast<double>(plan.ranks());
  }
};

/// Operations of a whole step over all ranks: 2 per multiplication and addition, causal attention counted in
/// full, as the published formulas do. With `recomputed`, what the backward pass repeats counts as well.
double stepFlops(const ModelShape &shape, const ParallelPlan &plan, bool recomputed);

/// The same as a program's commands count it: of fused causal attention the half that is computed, and its
/// scores once more in the backward pass.
double stepWork(const ModelShape &shape, const ParallelPlan &plan);

/// The time of a step. The plan must pass checkPlan and its ranks must fit the cluster.
StepEstimate estimateStep(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates);

/// What one rank keeps at its peak, in bytes. Host, what of it is page-locked, and storage are per node, all
/// its ranks being of this stage.
struct MemoryEstimate {
  double parameters = 0, gradients = 0, optimizer = 0;
  double gathered = 0, reduced = 0; ///< buckets under way, two of each
  double activations = 0;           ///< with what lies outside the layers
  double workspace = 0; ///< of cuDNN for attention's gradient, beyond the logits, which are gone by then
  bool lacksWorkspace = false; ///< cuDNN is not asked, for even one key head's workspace leaves no room
  double context = 0;          ///< of the device and its libraries
  /// What is offloaded, and the buffers that it passes through to and from storage.
  struct Offloaded {
    double parameters = 0, gradients = 0, optimizer = 0, checkpoints = 0, staging = 0;
    double bytes() const { return parameters + gradients + optimizer + checkpoints + staging; }
  } host, storage;

  double working() const { return gathered + reduced; }
  /// What a plan gives out of a device, as peaks are told: without its context.
  double peakBytes() const {
    return parameters + gradients + optimizer + working() + activations + workspace;
  }
  /// All that a device has, with its context.
  double deviceBytes() const { return peakBytes() + context; }
  /// What crosses the link to the device; optimizer states are updated where they are.
  double pinnedBytes() const { return host.bytes() - host.optimizer; }
};

/// What MemoryEstimate::activations consists of, in bytes of a rank's device: layers * perLayer + again +
/// outside.
struct StageActivations {
  double perLayer = 0;  ///< kept by one layer of one micro-batch
  double again = 0;     ///< of the layer that is computed again
  double outside = 0;   ///< of the embedding, the last norm and the logits
  double layers = 0;    ///< kept on the device: layers times micro-batches in flight
  int64_t inFlight = 0; ///< micro-batches, or chunks of them, that have not come back
  double onHost = 0;    ///< bytes of a rank that are on its host instead
};
StageActivations stageActivations(const ModelShape &shape, const ParallelPlan &plan, int64_t stage);

/// Bytes of the workspace of cuDNN for attention's gradient within `room` bytes, as a program's plan has it:
/// of the usual size, or as much of it as there is room for. 0: cuDNN is not asked. Nothing where it would
/// not be asked whatever the room.
std::optional<double> attentionWorkspace(const ModelShape &shape, const ParallelPlan &plan,
                                         const config::Cluster &cluster, double room);

/// A rank of pipeline stage `stage`, counted from 0.
MemoryEstimate estimateStageMemory(const ModelShape &shape, const ParallelPlan &plan,
                                   const config::Cluster &cluster, int64_t stage);

/// The largest stage: the first, which has the most micro-batches in flight, or the last, which has the
/// logits.
MemoryEstimate estimateMemory(const ModelShape &shape, const ParallelPlan &plan,
                              const config::Cluster &cluster);

/// What a peak must fit: a device's memory without its context.
int64_t peakLimit(const config::Cluster &cluster);

/// What a device does at most in products of `dtype`, in operations a second: fp32's where it has no unit for
/// it.
double peakFlops(const config::Cluster &cluster, config::DType dtype);

/// Whether device, host and storage hold it.
bool fits(const MemoryEstimate &memory, const config::Cluster &cluster);

} // namespace ds::cost

#endif // DS_COST_ESTIMATE_H
