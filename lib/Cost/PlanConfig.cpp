//===- PlanConfig.cpp - Plans from and to ds_config.json -----------------------------===//
//
// Each key that a plan decides is written with a comment saying why it has its value; reading the text gives
// the plan again.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Search.h"

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
  plan.shardSequence = config.tensorParallel.shardSequence && plan.tp > 1;
  plan.overlapTensor = config.tensorParallel.overlapComm;
  return plan;
}

namespace {
/// A JSON text that grows line by line, each with its reason behind it.
class Writer {
public:
  void line(const std::string &text, const std::string &why) {
    std::string row(2 * depth, ' ');
    row += text + ",";
    row.resize(std::max<size_t>(row.size() + 1, 48), ' ');
    out += row + "// " + why + "\n";
  }
  void open(const std::string &key) {
    out += std::string(2 * depth, ' ') + (key.empty() ? "" : "\"" + key + "\": ") + "{\n";
    ++depth;
  }
  void close() {
    --depth;
    out += std::string(2 * depth, ' ') + (depth > 0 ? "},\n" : "}\n");
  }

  std::string out;

private:
  size_t depth = 0;
};
} // namespace

static std::string entry(const char *key, int64_t value) {
  return "\"" + std::string(key) + "\": " + std::to_string(value);
}

static std::string gibi(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / (1 << 30));
  return text;
}

static void writeHome(Writer &writer, const char *key, Home home, const std::string &why) {
  if (home == Home::Device)
    return;
  writer.open(key);
  writer.line(home == Home::Cpu ? "\"device\": \"cpu\"" : "\"device\": \"nvme\"", why);
  if (home == Home::Nvme)
    writer.line("\"nvme_path\": \"/local_nvme\"", "a directory on the node's own storage");
  writer.close();
}

static void writeZero(Writer &writer, const ParallelPlan &plan, const MemoryEstimate &memory,
                      double deviceBytes, const config::Cluster &cluster) {
  static const char *const kShared[] = {"every rank keeps all states", "optimizer states are shared out",
                                        "optimizer states and gradients are shared out",
                                        "all states are shared out"};
  std::string limit = gibi(static_cast<double>(cluster.device.memoryBytes));
  writer.open("zero_optimization");
  writer.line(entry("stage", plan.zeroStage),
              std::string(kShared[plan.zeroStage]) + ": a rank keeps " + gibi(deviceBytes) + " of " + limit);
  writeHome(writer, "offload_optimizer", plan.optimizerHome,
            "the device is too small for the states; a node keeps " + gibi(memory.host.bytes()) +
                " in host memory");
  writeHome(writer, "offload_param", plan.parameterHome, "the device is too small for the parameters");
  writer.close();
}

static void writeMesh(Writer &writer, const ModelShape &shape, const ParallelPlan &plan,
                      const config::Cluster &cluster) {
  if (plan.tp > 1) {
    writer.open("tensor_parallel");
    writer.line(entry("autotp_size", plan.tp), "layers are split over " + std::to_string(plan.tp) +
                                                   " of a node's " + std::to_string(cluster.devicesPerNode) +
                                                   " devices");
    writer.close();
  }
  if (plan.pp > 1) {
    writer.open("pipeline");
    writer.line(entry("stages", plan.pp), std::to_string(shape.layers / plan.pp) +
                                              " layers each; the bubble is " + std::to_string(plan.pp - 1) +
                                              " of " + std::to_string(plan.accumulation) + " micro-batches");
    writer.close();
  }
  if (plan.sp > 1)
    writer.line(entry("sequence_parallel_size", plan.sp), "ranks that share a sample's sequence");
}

static void writePrecision(Writer &writer, const ParallelPlan &plan) {
  if (plan.dtype == DType::F32)
    return;
  writer.open(plan.dtype == DType::F16 ? "fp16" : "bf16");
  writer.line("\"enabled\": true", "parameters and activations in 16 bits");
  writer.close();
  if (plan.gradientDtype == plan.dtype)
    return;
  writer.open("data_types");
  writer.line("\"grad_accum_dtype\": \"fp32\"", "gradients of many micro-batches are added up");
  writer.close();
}

bool hasPass(const ParallelPlan &plan) {
  return plan.tp == 1 && plan.pp == 1 && plan.sp == 1 && plan.optimizerHome == Home::Device &&
         plan.parameterHome == Home::Device;
}

std::string configForPlan(const ModelShape &shape, const Candidate &candidate, const config::Cluster &cluster,
                          const std::optional<ProgramFigures> &program) {
  const ParallelPlan &plan = candidate.plan;
  char seconds[128];
  std::snprintf(seconds, sizeof seconds, "%.3g s a step on %ld ranks of %s%s",
                program ? program->seconds : candidate.seconds, static_cast<long>(plan.ranks()),
                cluster.name.c_str(),
                program         ? ", as its program is planned"
                : hasPass(plan) ? ", by rules"
                                : ", by rules: no program can be made of it yet");
  Writer writer;
  writer.open("");
  writer.line(entry("train_batch_size", plan.globalBatch()), seconds);
  writer.line(entry("train_micro_batch_size_per_gpu", plan.microBatch),
              gibi(candidate.memory.activations) + " of activations");
  writer.line(entry("gradient_accumulation_steps", plan.accumulation),
              "the batch over " + std::to_string(plan.dp) + " data-parallel ranks");
  writePrecision(writer, plan);
  writeMesh(writer, shape, plan, cluster);
  writeZero(writer, plan, candidate.memory,
            program ? static_cast<double>(program->deviceBytes) : candidate.memory.deviceBytes(), cluster);
  if (plan.recompute == Recompute::Full && !program) { // a program's choice needs no key
    writer.open("activation_checkpointing");
    writer.line(entry("number_checkpoints", shape.layers), "every layer is computed again from its input");
    writer.close();
  }
  writer.close();
  return writer.out;
}

} // namespace ds::cost
