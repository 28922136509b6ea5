//===- Formulas.cpp - The published arithmetic of training large models --------------===//
#include "ds/Cost/Formulas.h"

#include <algorithm>
#include <cmath>

namespace ds::cost {

double zeroStateBytes(double parameters, double ranks, int64_t stage, const StateBytes &bytes) {
  double perParameter = (stage >= 3 ? bytes.parameter / ranks : bytes.parameter) +
                        (stage >= 2 ? bytes.gradient / ranks : bytes.gradient) +
                        (stage >= 1 ? bytes.optimizer / ranks : bytes.optimizer);
  return perParameter * parameters;
}

double zeroVolumeElements(double parameters, int64_t stage) { return (stage == 3 ? 3 : 2) * parameters; }

MemoryNeed deepspeedZero2(double parameters, double devicesPerNode, double nodes, bool offloadOptimizer,
                          double bufferFactor) {
  double devices = devicesPerNode * nodes;
  if (offloadOptimizer)
    return {2 * parameters, std::floor(parameters * std::max(4 * devices, 16.0) * bufferFactor)};
  return {4 * parameters + std::floor(16 * parameters / devices),
          std::floor(parameters * 4 * devicesPerNode * bufferFactor)};
}

MemoryNeed deepspeedZero3(const Zero3Case &zero) {
  double devices = zero.devicesPerNode * zero.nodes;
  double layer = 4 * zero.largestLayer, whole = 4 * zero.devicesPerNode;
  // Bytes per parameter that the host keeps: states that are offloaded, or whole copies before sharding.
  double states = (zero.offloadParameters ? 18 : 16) / zero.nodes;
  if (!zero.offloadOptimizer) {
    double held = zero.zeroInit ? zero.largestLayer : zero.parameters;
    return {layer + std::floor(18 * zero.parameters / devices), std::floor(held * whole * zero.bufferFactor)};
  }
  double host = zero.parameters * (zero.zeroInit ? states : std::max(whole, states)) * zero.bufferFactor;
  double shard = zero.offloadParameters ? 0 : std::floor(2 * zero.parameters / devices);
  return {layer + shard, std::floor(host)};
}

double megatronParameters(const ModelShape &shape) {
  double L = static_cast<double>(shape.layers), h = static_cast<double>(shape.hidden);
  double tokens = static_cast<double>(shape.vocab + shape.seq);
  return 12 * L * h * h + 13 * L * h + tokens * h;
}

namespace {
/// The letters of the papers, as doubles.
struct Letters {
  explicit Letters(const ModelShape &shape)
      : L(static_cast<double>(shape.layers)), h(static_cast<double>(shape.hidden)),
        a(static_cast<double>(shape.heads)), s(static_cast<double>(shape.seq)),
        V(static_cast<double>(shape.vocab)) {}
  double L, h, a, s, V;
};
} // namespace

double megatronFlops(const ModelShape &shape, double batch) {
  Letters x(shape);
  return 96 * batch * x.s * x.L * x.h * x.h * (1 + x.s / (6 * x.h) + x.V / (16 * x.L * x.h));
}

double pipelineBubble(double p, double m, double v) { return (p - 1) / (v * m); }

double pipelineIdleShare(double p, double m, double v) {
  double bubble = pipelineBubble(p, m, v);
  return bubble / (1 + bubble);
}

double zeroBubble(Pipeline schedule, double p, double m) {
  if (schedule == Pipeline::OneForwardOneBackward)
    return pipelineBubble(p, m);
  return schedule == Pipeline::ZeroBubbleH1 ? pipelineBubble(p, m) / 3 : 0;
}

double zeroBubbleMemory(Pipeline schedule) { return schedule == Pipeline::ZeroBubbleH2 ? 2 : 1; }

double megatronBytesPerParameter(double dp, bool distributedOptimizer) {
  return distributedOptimizer ? 6 + 12 / dp : 18;
}

double layerActivationBytes(const ModelShape &shape, double microBatch, double tp, bool shardSequence,
                            Recompute recompute) {
  Letters x(shape);
  double sbh = x.s * microBatch * x.h;
  double scores = recompute == Recompute::Selective ? 0 : 5 * x.a * x.s / x.h;
  if (recompute == Recompute::Full)
    return 2 * sbh / (shardSequence ? tp : 1);
  if (shardSequence)
    return sbh / tp * (34 + scores);
  return sbh * (10 + 24 / tp + scores / tp);
}

double pipelineInFlight(const ParallelPlan &plan) {
  double p = static_cast<double>(plan.pp), m = static_cast<double>(plan.accumulation);
  double interleaved = plan.interleave > 1 ? 1 + (p - 1) / (p * static_cast<double>(plan.interleave)) : 1;
  return std::min(m, p) / p * interleaved;
}

double firstStageActivationBytes(const ModelShape &shape, const ParallelPlan &plan) {
  double layer = layerActivationBytes(shape, static_cast<double>(plan.microBatch),
                                      static_cast<double>(plan.tp), plan.shardSequence, plan.recompute);
  return static_cast<double>(shape.layers) * layer * pipelineInFlight(plan);
}

double outsideActivationBytes(const ModelShape &shape, const ParallelPlan &plan) {
  Letters x(shape);
  double t = static_cast<double>(plan.tp), sbh = x.s * x.h * static_cast<double>(plan.microBatch);
  double mask = sbh * static_cast<double>(std::min(plan.accumulation, plan.pp)) / t;
  return mask + (plan.pp == 1 ? 4 * sbh / t * (1 + x.V / x.h) : 0);
}

double modelFlops(const ModelShape &shape, double batch) {
  Letters x(shape);
  return 72 * batch * x.L * x.s * x.h * x.h * (1 + x.s / (6 * x.h) + x.V / (12 * x.h * x.L));
}

double selectiveFlops(const ModelShape &shape, double batch) {
  Letters x(shape);
  return 72 * batch * x.L * x.s * x.h * x.h * (1 + x.s / (3 * x.h) + x.V / (12 * x.h * x.L));
}

double infinityStateBytes(double layers, double hidden) { return 240 * layers * hidden * hidden; }

double infinityCheckpointBytes(double layers, double hidden, double batch, double seq, double interval) {
  return 2 * batch * seq * hidden * layers / interval;
}

double infinityModelWorkingBytes(double hidden) { return 16 * hidden * hidden; }

double infinityActivationWorkingBytes(double hidden, double heads, double batch, double seq,
                                      double interval) {
  return batch * seq * interval * (16 * hidden + 2 * heads * seq);
}

double infinityEfficiency(double intensity, double bytesPerSecond, double peakFlops) {
  return intensity * bytesPerSecond / (intensity * bytesPerSecond + peakFlops);
}

} // namespace ds::cost
