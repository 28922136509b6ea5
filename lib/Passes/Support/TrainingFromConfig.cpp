//===- TrainingFromConfig.cpp - From ds_config.json to ds.training and ds.mesh ---===//
#include "ds/Passes/TrainingFromConfig.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ds;
namespace config = ::ds::config;

static OptimizerOptions::Kind kindOf(config::Optimizer::Kind kind) {
  switch (kind) {
  case config::Optimizer::Kind::Sgd:
    return OptimizerOptions::Kind::Sgd;
  case config::Optimizer::Kind::Adagrad:
    return OptimizerOptions::Kind::Adagrad;
  case config::Optimizer::Kind::Lion:
    return OptimizerOptions::Kind::Lion;
  case config::Optimizer::Kind::Lamb:
    return OptimizerOptions::Kind::Lamb;
  default:
    return OptimizerOptions::Kind::Adam;
  }
}

static OptimizerOptions convert(const config::Optimizer &from) {
  OptimizerOptions to;
  to.kind = kindOf(from.kind);
  to.rate = from.lr;
  to.beta1 = from.beta1;
  to.beta2 = from.beta2;
  to.epsilon = from.eps;
  to.weightDecay = from.weightDecay;
  to.decoupledDecay = from.kind != config::Optimizer::Kind::Adam;
  to.biasCorrection = from.biasCorrection;
  to.rateDecay = from.lrDecay;
  to.startAccumulator = from.initialAccumulator;
  to.epsilonInsideRoot = from.epsInsideSqrt;
  to.momentum = from.momentum;
  to.dampening = from.dampening;
  to.nesterov = from.nesterov;
  to.minTrust = from.minCoeff;
  to.maxTrust = from.maxCoeff;
  return to;
}

static ScheduleOptions::Kind kindOf(config::Schedule::Kind kind) {
  switch (kind) {
  case config::Schedule::Kind::None:
    return ScheduleOptions::Kind::Constant;
  case config::Schedule::Kind::LRRangeTest:
    return ScheduleOptions::Kind::RangeTest;
  case config::Schedule::Kind::OneCycle:
    return ScheduleOptions::Kind::OneCycle;
  case config::Schedule::Kind::WarmupLR:
    return ScheduleOptions::Kind::Warmup;
  case config::Schedule::Kind::WarmupDecayLR:
    return ScheduleOptions::Kind::WarmupDecay;
  case config::Schedule::Kind::WarmupCosineLR:
    return ScheduleOptions::Kind::WarmupCosine;
  }
  llvm_unreachable("all kinds are listed");
}

static ScheduleOptions convert(const config::Schedule &from) {
  ScheduleOptions to;
  to.kind = kindOf(from.kind);
  to.warmupMinRate = from.warmupMinLr;
  to.warmupMaxRate = from.warmupMaxLr;
  to.warmupSteps = from.warmupNumSteps;
  to.totalSteps = from.totalNumSteps;
  static_assert(config::Schedule::kStepsOfRun == ScheduleOptions::kStepsOfRun);
  to.logarithmic = from.ramp == config::Schedule::Ramp::Log;
  to.warmupMinRatio = from.warmupMinRatio;
  to.cosineMinRatio = from.cosMinRatio;
  to.rangeMinRate = from.minLr;
  to.rangeRate = from.stepRate;
  to.rangeSteps = from.stepSize;
  to.rangeStaircase = from.staircase;
  to.cycleMinRate = from.cycleMinLr;
  to.cycleMaxRate = from.cycleMaxLr;
  to.decayRate = from.decayLrRate;
  to.firstSteps = from.firstStepSize;
  to.secondSteps = from.secondStepSize;
  to.firstStairs = from.firstStairCount;
  to.secondStairs = from.secondStairCount;
  to.decaySteps = from.decayStepSize;
  to.cycleMomentum = from.cycleMomentum;
  to.cycleMinMomentum = from.cycleMinMom;
  to.cycleMaxMomentum = from.cycleMaxMom;
  to.decayMomentumRate = from.decayMomRate;
  return to;
}

static FloatKind kindOf(config::DType dtype) {
  return dtype == config::DType::BF16  ? FloatKind::BF16
         : dtype == config::DType::F16 ? FloatKind::F16
                                       : FloatKind::F32;
}

/// DeepSpeed adds up the gradients of a bf16 model in fp32 when there is no ZeRO, else in the model's type.
static FloatKind gradientKind(const config::Config &config) {
  const config::Precision &from = config.precision;
  if (from.gradAccum)
    return kindOf(*from.gradAccum);
  return from.model == config::DType::BF16 && config.zero.stage == 0 ? FloatKind::F32 : kindOf(from.model);
}

static PrecisionOptions convertPrecision(const config::Config &config) {
  const config::Precision &from = config.precision;
  PrecisionOptions to;
  to.autocast = from.autocast;
  to.compute = kindOf(from.autocast ? from.autocastDtype.value_or(config::DType::BF16) : from.model);
  to.gradient = gradientKind(config);
  if (from.bf16.masterWeightsAndGrads)
    to.master = to.gradient = FloatKind::BF16;
  if (from.bf16.optimizerStates)
    to.moment = FloatKind::BF16;
  to.convertsBuffers = from.buffers.has_value();
  to.buffer = kindOf(from.buffers.value_or(config::DType::F32));
  return to;
}

/// fp16 mode scales as it is told; autocast to fp16 with the constants of torch.amp.GradScaler; bf16 mode
/// only looks for overflows.
static LossScaleOptions convertLossScale(const config::Precision &from) {
  LossScaleOptions to;
  if (from.fp16.enabled) {
    const config::Fp16 &fp16 = from.fp16;
    to.skips = to.scales = true;
    to.dynamic = fp16.lossScale == 0;
    to.initial = to.dynamic ? std::ldexp(1.0, static_cast<int>(fp16.initialScalePower)) : fp16.lossScale;
    to.window = fp16.lossScaleWindow;
    to.hysteresis = fp16.hysteresis;
    to.consecutiveHysteresis = fp16.consecutiveHysteresis;
    to.minimum = static_cast<double>(fp16.minLossScale);
  } else if (from.autocast && from.autocastDtype == config::DType::F16) {
    to.skips = to.scales = to.dynamic = true;
    to.initial = 65536;
    to.window = 2000;
    to.hysteresis = 1;
    to.minimum = 0;
  } else if (from.bf16.enabled) {
    to.skips = from.bf16.checkGradOverflow;
  }
  return to;
}

namespace {
/// How ZeRO divides dp: groups of nodes of ranks side by side. 1 where there is nothing to tell apart.
struct Division {
  int64_t groups = 1;         ///< each of which has everything
  int64_t nodes = 1;          ///< of a group
  int64_t local = 1;          ///< ranks of a node
  bool hasSecondary = false;  ///< a node has everything a second time
  bool gathersByNode = false; ///< between nodes first
};
} // namespace

static Division divisionOf(const config::Config &config) {
  const config::Zero &zero = config.zero;
  const int64_t dp = config.mesh.dp;
  if (zero.stage != 3)
    return {1, 1, dp};
  if (zero.micsShardSize > 0) {
    const int64_t group = std::min(zero.micsShardSize, dp), local = zero.micsNodeRanks.value_or(group);
    return {dp / group, group / local, local, false, zero.micsNodeRanks.has_value()};
  }
  const bool hasSecondary = zero.hpzPartitionSize > 1 && zero.hpzPartitionSize < dp;
  const int64_t local = hasSecondary ? zero.hpzPartitionSize : dp;
  return {1, dp / local, local, hasSecondary};
}

/// "auto" is ds-shard-zero's choice.
static ShardingOptions convertSharding(const config::Config &config) {
  const config::Zero &from = config.zero;
  ShardingOptions to;
  to.stage = from.stage;
  to.reduceBucketSize = from.reduceBucketSize.value_or(ShardingOptions::kChosen);
  to.gatherBucketSize = from.allgatherBucketSize.value_or(ShardingOptions::kChosen);
  to.subGroupSize = from.subGroupSize.value_or(ShardingOptions::kChosen);
  to.parameterThreshold = from.paramPersistenceThreshold.value_or(ShardingOptions::kChosen);
  to.modelThreshold = from.modelPersistenceThreshold.value_or(ShardingOptions::kChosen);
  const config::Setting *reduction = config.find("gradient_reduction");
  if (reduction && reduction->value != "\"auto\"")
    to.reduceEachMicroStep = reduction->value == "\"each_micro_step\"";
  const Division division = divisionOf(config);
  if (division.gathersByNode)
    to.firstAxes = {"dp.node"};
  if (division.hasSecondary)
    to.secondaryAxes = {"dp.local"};
  if (division.hasSecondary && config.mesh.sp > 1)
    to.secondaryAxes.push_back("sp");
  return to;
}

/// DeepCompile's switches say the same of its own passes.
static OffloadOptions convertOffload(const config::Config &config) {
  auto on = [&](const char *key) {
    const config::Setting *setting = config.find(key);
    return setting && setting->value == "true";
  };
  OffloadOptions to;
  const config::OffloadOptimizer &optimizer = config.zero.offloadOptimizer;
  const config::OffloadParam &parameters = config.zero.offloadParam;
  if (optimizer.device != config::Home::Device || on("compile.offload_opt_states"))
    to.optimizer = optimizer.ratio;
  to.optimizerOnNvme = optimizer.device == config::Home::Nvme;
  to.speculates = to.optimizer > 0 && optimizer.superOffload;
  if (const config::Setting *setting = config.find("compile.offload_activation"))
    to.activations = setting->value == "true"       ? OffloadOptions::Activations::Moved
                     : setting->value == "\"auto\"" ? OffloadOptions::Activations::Chosen
                                                    : OffloadOptions::Activations::Kept;
  to.checkpoints = config.activationCheckpointing.cpuCheckpointing;
  to.parameters = parameters.device != config::Home::Device || on("compile.offload_parameters");
  to.parametersOnNvme = parameters.device == config::Home::Nvme;
  if (to.parametersOnNvme)
    to.maxInCpu = parameters.maxInCpu;
  return to;
}

static TensorOptions convertTensors(const config::TensorParallel &from) {
  using From = config::LayerSpec::Cut;
  using To = TensorOptions::LayerSpec::Cut;
  TensorOptions to;
  to.sequenceParallel = from.shardSequence;
  to.overlapsExchanges = from.overlapComm;
  for (const config::LayerSpec &spec : from.layerSpecs)
    to.layerSpecs.push_back({spec.patterns,
                             spec.cut == From::Row    ? To::Row
                             : spec.cut == From::Skip ? To::Skip
                                                      : To::Column,
                             spec.shape, spec.dimension, spec.modelTypes});
  return to;
}

static RecomputeOptions convertRecompute(const config::Config &config) {
  const config::ActivationCheckpointing &from = config.activationCheckpointing;
  RecomputeOptions to;
  to.ops = from.selective ? std::vector<std::string>{"attention"} : from.ops;
  to.layers = from.layers;
  to.interval = config.pipeline.activationCheckpointInterval;
  // The other keys, the number among them, say how checkpoints are kept, so that there must be some.
  if (to.isOpen() && from.demands())
    to.interval = 1;
  return to;
}

/// The element type that gradients are reduced in; none where they keep their own.
static std::optional<FloatKind> communicationType(const config::Config &config) {
  const config::Precision &precision = config.precision;
  if (config.mesh.sp > 1) {
    const std::string &type = config.find("seq_parallel_communication_data_type")->value;
    return type == "\"fp16\"" ? FloatKind::F16 : type == "\"bf16\"" ? FloatKind::BF16 : FloatKind::F32;
  }
  if (!precision.communication || *precision.communication == config::DType::I8)
    return std::nullopt;
  return kindOf(*precision.communication);
}

TrainingOptions mlir::ds::trainingFromConfig(const config::Config &config, ArrayRef<std::string> noDecay) {
  TrainingOptions options;
  options.accumulation = config.batch.accumulation;
  options.clipping = config.gradientClipping;
  options.lossChunks = config.lossChunks.value_or(0);
  options.optimizer = convert(config.optimizer);
  options.schedule = convert(config.schedule);
  options.precision = convertPrecision(config);
  options.lossScale = convertLossScale(config.precision);
  options.boundsLoss = config.skipsBadSteps;
  options.lossScale.skips |= config.skipsBadSteps;
  options.syncsBatchNorm = config.syncsBatchNorm;
  options.sharding = convertSharding(config);
  if (config.mesh.tp > 1)
    options.tensors = convertTensors(config.tensorParallel);
  options.offload = convertOffload(config);
  options.recompute = convertRecompute(config);
  options.rankReduction = config.sumGradients ? RankReduction::Sum : RankReduction::Mean;
  options.communicationType = communicationType(config);
  options.noDecay.assign(noDecay.begin(), noDecay.end());
  const config::Setting *normalization = config.find("loss_normalization");
  if (normalization && normalization->value == "\"tokens\"")
    options.lossMean = LossMean::Tokens;
  return options;
}

MeshShape mlir::ds::meshFromConfig(const config::Config &config) {
  MeshShape shape;
  std::vector<::ds::rt::MeshAxis> axes;
  auto add = [&](const char *name, int64_t size, std::initializer_list<::ds::rt::AxisSet *> sets) {
    if (size == 1)
      return;
    for (::ds::rt::AxisSet *set : sets)
      set->add(axes.size());
    axes.push_back({name, static_cast<uint32_t>(size)});
  };
  add("pp", config.mesh.pp, {&shape.stages});
  // The closest ranks divide; groups have copies. A whole that is not cut has the name of all.
  const Division division = divisionOf(config);
  const bool isCut = division.groups > 1 || division.nodes > 1;
  if (division.nodes > 1)
    add("dp.group", division.groups, {&shape.samples});
  else
    add("dp.node", division.groups, {&shape.samples});
  add("dp.node", division.nodes, {&shape.samples, &shape.zero});
  add(isCut ? "dp.local" : "dp", division.local, {&shape.samples, &shape.zero});
  add("sp", config.mesh.sp, {&shape.zero});
  add("tp", config.mesh.tp, {&shape.tensors});
  shape.mesh = ::ds::rt::Mesh(std::move(axes));
  return shape;
}
