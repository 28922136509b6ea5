//===- Unsupported.cpp - What programs do not have yet -----------------------------------===//
//
// Two tables say it: the rows of the key table whose status is Refused, unless their block is off, and the
// conditions below, which no single key's default can express. Work that makes a feature real empties them.
//
//===---------------------------------------------------------------------------===//
#include "Build.h"

#include <algorithm>

namespace ds::config {

namespace {
struct Condition {
  std::string_view key;
  bool (*refused)(const Config &);
  std::string_view reason;
};
} // namespace

static bool is16Bit(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

static bool saysTrue(const Config &config, std::string_view key) {
  const Setting *setting = config.find(key);
  return setting && setting->value == "true";
}

/// Whether the host makes updates that may run beside the next step.
static bool mayUpdateLate(const Config &config) {
  const OffloadOptimizer &optimizer = config.zero.offloadOptimizer;
  return optimizer.device == Home::Cpu && !optimizer.superOffload && config.mesh.pp == 1;
}

static constexpr Condition kConditions[] = {
    {"optimizer.type", [](const Config &c) { return c.optimizer.kind == Optimizer::Kind::Other; },
     "programs have SGD, Adam, AdamW, Adagrad, Lion and Lamb"},
    {"optimizer.type",
     [](const Config &c) {
       return c.optimizer.kind == Optimizer::Kind::Lamb && (c.mesh.dp > 1 || c.mesh.tp > 1);
     },
     "Lamb's trust ratio needs the norm of a whole parameter, and several ranks update buckets of them"},
    {"zero_optimization.zero_hpz_partition_size",
     [](const Config &c) { return c.zero.micsShardSize > 0 && c.zero.hpzPartitionSize > 1; },
     "a group of mics_shard_size ranks has all parameters already, and keeps no second copy of them"},
    {"zero_optimization.offload_optimizer.super_offload",
     [](const Config &c) {
       return c.zero.offloadOptimizer.superOffload && c.zero.offloadOptimizer.device == Home::Nvme;
     },
     "updates are speculative with device cpu only: what an update changes would wait in the host's memory "
     "for the "
     "norm, and "
     "with device nvme it is not there"},
    {"late_updates", [](const Config &c) { return saysTrue(c, "late_updates") && !mayUpdateLate(c); },
     "updates are late with zero_optimization.offload_optimizer.device cpu, without super_offload and with "
     "one stage of a "
     "pipeline: those are the updates that the host makes when the step is at its end"},
    {"pipeline.schedule",
     [](const Config &c) {
       return c.mesh.pp > 1 && c.pipeline.schedule != "1f1b" && c.pipeline.schedule != "gpipe";
     },
     "programs have 1f1b and gpipe"},
    {"skip_bad_steps", [](const Config &c) { return c.skipsBadSteps && c.mesh.pp > 1; },
     "only the last stage of a pipeline knows the loss, and all are to skip"},
    {"torch_autocast.enabled",
     [](const Config &c) {
       return c.precision.autocast && (c.precision.fp16.enabled || c.precision.bf16.enabled);
     },
     "it does not go with fp16 or bf16, which convert the parameters themselves"},
    {"torch_autocast.dtype",
     [](const Config &c) {
       return c.precision.autocast && !is16Bit(c.precision.autocastDtype.value_or(DType::BF16));
     },
     "products are lowered to bf16 or fp16"},
    {"data_types.grad_accum_dtype", [](const Config &c) { return c.precision.gradAccum == DType::I8; },
     "gradients are floats"},
    {"data_types.buffer_dtype", [](const Config &c) { return c.precision.buffers == DType::I8; },
     "buffers are converted to floats only"},
};

std::vector<Refusal> refusedForProgram(const Config &config) {
  std::vector<Refusal> refusals;
  for (const Setting &setting : config.settings) {
    if (setting.status != KeyStatus::Refused || !setting.changed || whyOff(config, setting))
      continue;
    refusals.push_back({setting.key, setting.value, setting.note});
  }
  auto check = [&](const Condition &condition) {
    if (const Setting *setting = config.find(condition.key); condition.refused(config))
      refusals.push_back({std::string(condition.key), setting->value, std::string(condition.reason)});
  };
  std::for_each(std::begin(kConditions), std::end(kConditions), check);
  return refusals;
}

Status checkForProgram(const Config &config) {
  std::vector<Refusal> refusals = refusedForProgram(config);
  if (refusals.empty())
    return {};
  Error error{ExitCode::Invalid, "", "drop the key"};
  for (const Refusal &refusal : refusals) {
    const Setting *setting = config.find(refusal.key);
    error.message += (error.message.empty() ? "" : "\n") + setting->from + ": \"" + refusal.key +
                     "\" = " + refusal.value + " is not available in a program: " + refusal.reason;
  }
  return error;
}

} // namespace ds::config
