//===- PlanConfig.cpp - Plans from and to ds_config.json -----------------------------===//
//
// The text is plain JSON, that any parser reads. Why a key that the plan decides has its value stands in the
// object "_why" under the key's path, which readers of configurations pass over; reading the text gives the
// plan again.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Search.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace ds::cost {

ParallelPlan planFromConfig(const config::Config &config) {
  ParallelPlan plan;
  plan.dp = config.mesh.dp;
  plan.tp = config.mesh.tp;
  plan.pp = config.mesh.pp;
  plan.sp = config.mesh.sp;
  plan.microBatch = config.batch.micro;
  plan.accumulation = config.batch.accumulation;
  plan.zeroStage = config.zero.stage;
  plan.lossChunks = config.lossChunks.value_or(1); // left open, as frameworks do it
  plan.dtype = config.precision.model;
  // Without a type of their own, gradients are kept in the model's.
  plan.gradientDtype = config.precision.gradAccum.value_or(config.precision.model);
  plan.optimizerHome = config.zero.offloadOptimizer.device;
  plan.parameterHome = config.zero.offloadParam.device;
  const config::ActivationCheckpointing &checkpoints = config.activationCheckpointing;
  bool recomputes = checkpoints.numberCheckpoints || checkpoints.partitionActivations ||
                    checkpoints.cpuCheckpointing || config.pipeline.activationCheckpointInterval > 0;
  plan.recompute = checkpoints.selective ? Recompute::Selective
                   : recomputes          ? Recompute::Full
                                         : Recompute::None;
  plan.partitionCheckpoints = checkpoints.partitionActivations && plan.tp > 1;
  plan.checkpointHome = checkpoints.cpuCheckpointing ? Home::Cpu : Home::Device;
  plan.interleave = config.pipeline.virtualStages;
  plan.shardSequence = config.tensorParallel.shardSequence.value_or(false) && plan.tp > 1;
  plan.overlapTensor = config.tensorParallel.overlapComm.value_or(false);
  plan.fastAttention = config.fastAttention;
  return plan;
}

namespace {
/// A configuration that grows key by key, each with its reason.
class Writer {
public:
  /// Sets the key at a dotted path.
  void set(const std::string &path, const nlohmann::ordered_json &value, const std::string &why) {
    std::string pointer = "/" + path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    keys[nlohmann::ordered_json::json_pointer(pointer)] = value;
    reasons[path] = why;
  }
  std::string text() const {
    nlohmann::ordered_json whole = keys;
    whole["_why"] = reasons;
    return whole.dump(2) + "\n";
  }

private:
  nlohmann::ordered_json keys, reasons;
};
} // namespace

static std::string gibi(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / (1 << 30));
  return text;
}

static void writeHome(Writer &writer, const std::string &block, Home home, const std::string &why) {
  if (home == Home::Device)
    return;
  writer.set(block + ".device", home == Home::Cpu ? "cpu" : "nvme", why);
  if (home == Home::Nvme)
    writer.set(block + ".nvme_path", "/local_nvme", "a directory on the node's own storage");
}

/// What moving states off the device is good for: `plan` has them away, `there` on it.
static std::string whyAway(const ModelShape &shape, const ParallelPlan &plan, const ParallelPlan &there,
                           const config::Cluster &cluster) {
  const MemoryEstimate away = estimateMemory(shape, plan, cluster),
                       whole = estimateMemory(shape, there, cluster);
  auto states = [](const MemoryEstimate &memory) {
    return memory.parameters + memory.gradients + memory.optimizer;
  };
  const double left = static_cast<double>(peakLimit(cluster)) - states(whole);
  std::string text = "frees " + gibi(states(whole) - states(away)) + " of a device, ";
  return text + (left < 0
                     ? "whose " + gibi(static_cast<double>(peakLimit(cluster))) + " do not hold the states"
                     : "on which the states would leave " + gibi(left) + " for all else");
}

static void writeZero(Writer &writer, const ModelShape &shape, const Candidate &candidate, double peakBytes,
                      const config::Cluster &cluster) {
  const ParallelPlan &plan = candidate.plan;
  static const char *const kShared[] = {"every rank keeps all states", "optimizer states are shared out",
                                        "optimizer states and gradients are shared out",
                                        "all states are shared out"};
  std::string limit = gibi(static_cast<double>(peakLimit(cluster)));
  const bool isAlone = plan.zeroStage > 0 && plan.dp * plan.sp == 1;
  writer.set("zero_optimization.stage", plan.zeroStage,
             std::string(isAlone ? "what is offloaded asks for this stage" : kShared[plan.zeroStage]) +
                 ": a rank's peak is " + gibi(peakBytes) + " of " + limit);
  ParallelPlan there = plan;
  there.optimizerHome = Home::Device;
  writeHome(writer, "zero_optimization.offload_optimizer", plan.optimizerHome,
            whyAway(shape, plan, there, cluster) + "; a node keeps " + gibi(candidate.memory.host.bytes()) +
                " in host memory");
  there = plan;
  there.parameterHome = Home::Device;
  writeHome(writer, "zero_optimization.offload_param", plan.parameterHome,
            whyAway(shape, plan, there, cluster));
}

/// "12 layers", or "11 or 12 layers" where they do not divide.
static std::string layersEach(const ModelShape &shape, const ParallelPlan &plan) {
  const int64_t least = shape.layers / plan.pp;
  return std::to_string(least) + (shape.layers % plan.pp == 0 ? "" : " or " + std::to_string(least + 1)) +
         " layers";
}

static void writeMesh(Writer &writer, const ModelShape &shape, const ParallelPlan &plan,
                      const config::Cluster &cluster) {
  if (plan.tp > 1)
    writer.set("tensor_parallel.autotp_size", plan.tp,
               "layers are split over " + std::to_string(plan.tp) + " of a node's " +
                   std::to_string(cluster.devicesPerNode) + " devices");
  if (plan.pp > 1)
    writer.set("pipeline.stages", plan.pp,
               layersEach(shape, plan) + " each; the bubble takes as long as " + std::to_string(plan.pp - 1) +
                   " micro-batches beside " + std::to_string(plan.accumulation));
  if (plan.sp > 1)
    writer.set("sequence_parallel_size", plan.sp, "ranks that share a sample's sequence");
}

static void writePrecision(Writer &writer, const ParallelPlan &plan) {
  if (plan.dtype == DType::F32)
    return;
  writer.set(plan.dtype == DType::F16 ? "fp16.enabled" : "bf16.enabled", true,
             "parameters and activations in 16 bits");
  if (plan.gradientDtype != plan.dtype)
    writer.set("data_types.grad_accum_dtype", "fp32", "gradients of many micro-batches are added up");
}

/// What is trained, and not where or when: the same under every plan.
static bool isOfTraining(const std::string &key, const ParallelPlan &plan) {
  return key == "gradient_clipping" || key == "loss_normalization" || key == "sync_batch_norm" ||
         key.starts_with("optimizer.") || key.starts_with("scheduler.") ||
         (plan.dtype == DType::F16 && key.starts_with("fp16.") && key != "fp16.enabled");
}

static void writeTraining(Writer &writer, const std::vector<config::Setting> &asked,
                          const ParallelPlan &plan) {
  for (const config::Setting &setting : asked) {
    const bool isGiven =
        setting.isAuto || setting.origin == config::Origin::File || setting.origin == config::Origin::Set;
    if (!isGiven || !isOfTraining(setting.key, plan))
      continue;
    // Whoever fills in "auto" then does so now.
    const nlohmann::ordered_json value =
        setting.isAuto ? nlohmann::ordered_json("auto")
                       : nlohmann::ordered_json::parse(setting.value, nullptr, /*allow_exceptions=*/false);
    writer.set(setting.key, value, "from " + setting.from);
  }
}

bool hasPass(const ParallelPlan &plan) { return plan.pp == 1; }

std::string configForPlan(const ModelShape &shape, const Candidate &candidate, const config::Cluster &cluster,
                          const std::vector<config::Setting> &asked,
                          const std::optional<ProgramFigures> &program) {
  const ParallelPlan &plan = candidate.plan;
  char seconds[128];
  std::snprintf(seconds, sizeof seconds, "%.3g s a step on %ld ranks of %s%s",
                program ? program->seconds : candidate.seconds, static_cast<long>(plan.ranks()),
                cluster.name.c_str(),
                program         ? ", as its program is planned"
                : hasPass(plan) ? ", by rules"
                                : ", by rules: no program of it was planned");
  Writer writer;
  writer.set("train_batch_size", plan.globalBatch(), seconds);
  writer.set("train_micro_batch_size_per_gpu", plan.microBatch,
             program ? "what of its activations is recomputed, the program chooses"
                     : gibi(candidate.memory.activations) + " of activations");
  writer.set("gradient_accumulation_steps", plan.accumulation,
             "the batch over " + std::to_string(plan.dp) + " data-parallel ranks");
  writeTraining(writer, asked, plan);
  writePrecision(writer, plan);
  writeMesh(writer, shape, plan, cluster);
  writeZero(writer, shape, candidate,
            program ? static_cast<double>(program->peakBytes) : candidate.memory.peakBytes(), cluster);
  if (plan.recompute == Recompute::Full && !program) // a program's choice needs no key
    writer.set("activation_checkpointing.number_checkpoints", shape.layers,
               "every layer is recomputed from its input");
  return writer.text();
}

} // namespace ds::cost
