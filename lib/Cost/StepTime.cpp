//===- StepTime.cpp - The time of a step from its parts -----------------------------===//
//
// One rank of the busiest pipeline stage, micro-batch after micro-batch; what its streams can hide is taken
// off, the rest is a term. Data-parallel exchanges are of whole buckets, each with its latency.
//
//===---------------------------------------------------------------------------===//
#include "LayerTime.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace ds::cost {

/// Elements that one collective of ZeRO exchanges: DeepSpeed's default bucket.
static constexpr double kBucketElements = 5e8;
/// Bytes that Adam moves per parameter: gradient, master and two moments read, the latter three written, and
/// the parameter, after a pass for the norm.
static constexpr double kUpdateBytes = 32;
/// Bytes of fp32 master and moments per parameter.
static constexpr double kOptimizerBytes = 12;

double stepFlops(const ModelShape &shape, const ParallelPlan &plan, bool recomputed) {
  double L = static_cast<double>(shape.layers), h = static_cast<double>(shape.hidden);
  double s = static_cast<double>(shape.seq), f = static_cast<double>(shape.ffnWidth());
  double tokens = s * static_cast<double>(plan.globalBatch());
  double q = static_cast<double>(shape.queryWidth());
  double weights = static_cast<double>(shape.attentionProducts()) + (shape.gated ? 3 : 2) * h * f;
  double attention = 4 * s * q;
  double layers = tokens * L * (2 * weights + attention);
  double logits = 2 * tokens * h * static_cast<double>(shape.vocab);
  double again = plan.recompute == Recompute::Full        ? layers
                 : plan.recompute == Recompute::Selective ? tokens * L * attention
                                                          : 0;
  return 3 * (layers + logits) + (recomputed ? again : 0);
}

double stepWork(const ModelShape &shape, const ParallelPlan &plan) {
  double flops = stepFlops(shape, plan, /*recomputed=*/false);
  if (!plan.flashAttention)
    return flops; // all scores are computed and stored
  double s = static_cast<double>(shape.seq), samples = static_cast<double>(plan.globalBatch());
  rt::AttentionWork work;
  work.heads = samples * static_cast<double>(shape.layers * shape.heads);
  work.queries = work.keys = s;
  work.width = static_cast<double>(shape.headWidth());
  rt::AttentionWork narrow = work, full = work;
  full.isCausal = false, narrow.window = static_cast<double>(shape.window);
  const double share = shape.windowShare();
  auto both = [](rt::AttentionWork of) {
    double forward = attentionFlops(of);
    of.isGradient = true;
    return forward + attentionFlops(of);
  };
  return flops - 3 * attentionFlops(full) + (1 - share) * both(work) + share * both(narrow);
}

namespace {
/// The step as it is put together.
/// Its fields are the figures of one plan, each of which several parts of a step read.
class Step {
public:
  Step(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates)
      : shape(shape), plan(plan), rates(rates), micros(static_cast<double>(plan.accumulation)),
        stages(static_cast<double>(plan.pp)), ranks(plan.dp * plan.sp), data(rates.group(ranks, plan.tp)) {
    layers = static_cast<double>(layersOfStage(shape, plan, 0)); // no stage has more
    parameters = (layers * static_cast<double>(shape.layerParameters()) +
                  static_cast<double>(shape.embeddingParameters())) /
                 static_cast<double>(plan.tp);
    shard = plan.zeroStage >= 1 ? parameters / static_cast<double>(ranks) : parameters;
    sharing = std::min(plan.ranks(), rates.cluster().devicesPerNode);
  }

  StepEstimate run() {
    out.layer = layerSeconds(shape, plan, rates);
    addCompute();
    addPipeline();
    addExchange();
    addUpdate();
    out.modelFlops = stepFlops(shape, plan, false);
    out.hardwareFlops = stepFlops(shape, plan, true);
    for (const Term &term : out.terms)
      out.seconds += term.seconds;
    return std::move(out);
  }

private:
  void add(const char *name, double seconds, const std::string &source) {
    if (seconds > 0)
      out.terms.push_back({name, seconds, source});
  }

  void addCompute();
  void addCheckpoints();
  void addPipeline();
  void addExchange();
  void addUpdate();
  double perMicro() const;
  double bucketed(Collective kind, double bytes) const;
  double gatherSeconds(double bytes) const;

  const ModelShape &shape;
  const ParallelPlan &plan;
  const Rates &rates;
  double micros, stages, layers;
  int64_t ranks; ///< that ZeRO shards over
  Group data;
  double parameters; ///< of the first stage on one tensor-parallel rank
  double shard;      ///< that this rank updates
  int64_t sharing;   ///< devices that use the host at once
  StepEstimate out;
};
} // namespace

void Step::addCompute() {
  const LayerSeconds &layer = out.layer;
  double all = layers * micros;
  const std::string products = productFigures(rates.cluster().device, plan.dtype);
  add("forward", all * layer.forward, products);
  add("backward", all * layer.backward, products);
  add("recompute", all * layer.recompute, "the forward's time");
  add("tensor exchange", all * (layer.forwardExchange + layer.backwardExchange),
      "inside.bytes_per_second, inside.latency_seconds");
  double launches = rates.cluster().device.eagerOverheadSeconds;
  add("framework's launches", all * launches, "device.eager_overhead_seconds");
  addCheckpoints();
  add("logits", micros * logitSeconds(shape, plan, rates), products);
}

/// Seconds of all layers of the stage, of one micro-batch.
double Step::perMicro() const {
  const LayerSeconds &layer = out.layer;
  return layers * (layer.forward + layer.backward + layer.recompute + layer.forwardExchange +
                   layer.backwardExchange + rates.cluster().device.eagerOverheadSeconds);
}

void Step::addCheckpoints() {
  if (plan.recompute != Recompute::Full)
    return;
  double tokens = static_cast<double>(plan.microBatch * shape.seq) / static_cast<double>(plan.sp);
  double bytes = tokens * static_cast<double>(shape.hidden * bytesOf(plan.dtype));
  double part = bytes / static_cast<double>(plan.checkpointRanks());
  // Inputs that are split by the sequence are gathered by the exchange that recomputation repeats.
  if (plan.partitionCheckpoints && !plan.shardSequence && plan.tp > 1)
    add("checkpoint gathers", layers * micros * rates.collectiveSeconds(Collective::AllGather, part, plan.tp),
        "inside.bytes_per_second");
  if (plan.checkpointHome == Home::Cpu) {
    double copy = rates.hostCopySeconds(part, sharing);
    double hidden =
        std::min(copy, out.layer.forward) + std::min(copy, out.layer.recompute + out.layer.backward);
    add("checkpoints to and from the host", layers * micros * (2 * copy - hidden),
        "host.to_device_bytes_per_second");
  }
}

void Step::addPipeline() {
  if (plan.pp == 1)
    return;
  double chunks = static_cast<double>(plan.interleave), t = static_cast<double>(plan.tp);
  double bytes = static_cast<double>(plan.microBatch * shape.seq * shape.hidden * bytesOf(plan.dtype)) /
                 static_cast<double>(plan.sp);
  // Tensor-parallel ranks each send their part and gather it on arrival.
  bool crosses = plan.tp * plan.sp * plan.dp >= rates.cluster().devicesPerNode;
  double send = rates.collectiveSeconds(Collective::Send, bytes / t, Group{2, crosses ? 1 : 2});
  if (!plan.shardSequence)
    send += rates.collectiveSeconds(Collective::AllGather, bytes / t, plan.tp);
  double perMicroSend = 2 * chunks * send; // activations forward, gradients back
  add("pipeline transfers", micros * perMicroSend, "between.port_bytes_per_second * between.efficiency");
  add("pipeline bubble", (stages - 1) / chunks * (perMicro() + perMicroSend), "(p - 1) / v micro-batches");
}

double Step::bucketed(Collective kind, double bytes) const {
  double count = std::max(1.0, std::ceil(parameters / kBucketElements));
  double part = kind == Collective::AllReduce ? bytes : bytes / static_cast<double>(ranks);
  return count * rates.collectiveSeconds(kind, part / count, data);
}

double Step::gatherSeconds(double bytes) const {
  double network = bucketed(Collective::AllGather, bytes);
  double own = bytes / static_cast<double>(ranks);
  if (plan.parameterHome == Home::Device)
    return network;
  double copy = rates.hostCopySeconds(own, sharing);
  if (plan.parameterHome == Home::Nvme)
    copy = std::max(copy, rates.storageReadSeconds(own, sharing));
  return std::max(network, copy);
}

void Step::addExchange() {
  if (ranks == 1 && plan.parameterHome == Home::Device)
    return;
  double parameterBytes = parameters * static_cast<double>(bytesOf(plan.dtype));
  double gradientBytes = parameters * static_cast<double>(bytesOf(plan.gradientDtype));
  double forward = layers * (out.layer.forward + out.layer.forwardExchange), backward = perMicro() - forward;
  auto exposed = [&](double seconds, double beside) {
    double hidden = plan.overlapReduce ? std::min(seconds, beside) : 0;
    return seconds - hidden + rates.cluster().device.contention * hidden;
  };
  auto sent = [&](Collective kind, double bytes) {
    return Rates::bytesSent(kind, kind == Collective::AllReduce ? bytes : bytes / static_cast<double>(ranks),
                            ranks);
  };
  const char *links = "between.port_bytes_per_second * between.efficiency, inside.bytes_per_second";
  double gather = gatherSeconds(parameterBytes), scatter = bucketed(Collective::ReduceScatter, gradientBytes);
  if (plan.zeroStage == 3) {
    // Each micro-batch gathers for forward and again for backward; the first layer's gather hides nowhere.
    add("parameter gathers", micros * (exposed(gather, forward) + gather / layers), links);
    add("gathers and reductions of the backward pass", micros * exposed(gather + scatter, backward), links);
    out.gatheredBytes = 2 * micros * sent(Collective::AllGather, parameterBytes);
    out.scatteredBytes = micros * sent(Collective::ReduceScatter, gradientBytes);
  } else if (plan.zeroStage >= 1) {
    double times = plan.zeroStage == 2 ? micros : 1; // stage 1 adds micro-batches up first
    add("gradient reduction", times * exposed(scatter, backward), links);
    add("parameter gathers", gather, links);
    out.gatheredBytes = sent(Collective::AllGather, parameterBytes);
    out.scatteredBytes = times * sent(Collective::ReduceScatter, gradientBytes);
  } else {
    add("gradient reduction", exposed(bucketed(Collective::AllReduce, gradientBytes), backward), links);
    out.reducedBytes = sent(Collective::AllReduce, gradientBytes);
  }
}

void Step::addUpdate() {
  if (plan.optimizerHome == Home::Device)
    return add("update", rates.memorySeconds(kUpdateBytes * shard), "device.memory_bytes_per_second");
  double own = shard * static_cast<double>(bytesOf(plan.dtype));
  double backward = micros * layers * out.layer.backward;
  double down = rates.hostCopySeconds(shard * static_cast<double>(bytesOf(plan.gradientDtype)), sharing);
  double update = rates.hostKernelSeconds(kUpdateBytes * shard, sharing);
  add("gradients to the host", std::max(0.0, down - backward), "host.to_device_bytes_per_second");
  if (plan.optimizerHome == Home::Nvme) {
    // Gradients that leave the device wait there for the update.
    double swapped = (kOptimizerBytes + static_cast<double>(bytesOf(plan.gradientDtype))) * shard;
    double swap = rates.storageReadSeconds(swapped, sharing) + rates.storageWriteSeconds(swapped, sharing);
    add("optimizer states from and to storage", std::max(0.0, swap - update),
        "nvme.read_bytes_per_second, nvme.write_bytes_per_second");
  }
  add("update on the host", update, hostUpdateFigures(rates.cluster().host));
  if (plan.parameterHome == Home::Device)
    add("parameters to the device", rates.hostCopySeconds(own, sharing), "host.to_device_bytes_per_second");
}

StepEstimate estimateStep(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates) {
  assert(checkPlan(shape, plan) && "callers check plans");
  return Step(shape, plan, rates).run();
}

} // namespace ds::cost
