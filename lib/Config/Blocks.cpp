//===- Blocks.cpp - Keys whose block is off ------------------------------------------===//
//
// A block is off while its switch says so: one sequence-parallel rank, a stage below 3, "enabled": false.
// DeepSpeed reads none of its keys then, and files carry them along from where the block was on. So they
// refuse no program and send no plan to rules; what the rules between keys read of them is off in the structs
// (Defaults.cpp). Where a file gives such a key, a notice says what keeps it from speaking.
//
//===---------------------------------------------------------------------------===//
#include "Build.h"
#include "Parser.h"

#include <algorithm>

namespace ds::config {

namespace {
/// Keys of one block that ask for nothing while it is off.
struct Block {
  std::string_view keys; ///< as matchesAny() takes them
  bool (*isOff)(const Config &);
  std::string_view why; ///< "": the key is the switch itself
};
} // namespace

#define ZERO "zero_optimization."

static bool below3(const Config &c) { return c.zero.stage != 3; }
static bool oneTensorRank(const Config &c) { return c.mesh.tp == 1; }
static bool onePipelineStage(const Config &c) { return c.mesh.pp == 1; }
static bool oneSequenceRank(const Config &c) { return c.mesh.sp == 1; }
static bool withoutMics(const Config &c) { return c.zero.micsShardSize <= 0; }

/// The first row that fits a key and is off counts.
static constexpr Block kBlocks[] = {
    {"sequence_parallel_size", oneSequenceRank, ""},
    {"seq_parallel_communication_data_type", oneSequenceRank, "sequences are not divided among ranks"},
    {"pipeline.stages", onePipelineStage, ""},
    {"pipeline.virtual_stages", onePipelineStage, "there is one pipeline stage"},
    {"tensor_parallel.autotp_size", oneTensorRank, ""},
    {"tensor_parallel.", oneTensorRank, "there is one tensor-parallel rank"},
    {"use_data_before_expert_parallelism",
     [](const Config &c) { return c.find("expert_parallel.enabled")->value != "true"; },
     "expert_parallel is off"},
    {ZERO "zero_hpz_partition_size", below3, "stage 3 alone has a secondary partition"},
    {ZERO "zero_hpz_partition_size", [](const Config &c) { return c.zero.hpzPartitionSize <= 1; }, ""},
    {ZERO "zero_hpz_partition_size", [](const Config &c) { return c.mesh.dp == 1; },
     "there is one data-parallel rank"},
    {ZERO "zero_quantized_", below3, "stage 3 alone quantises"},
    {ZERO "zeropp_loco_param", [](const Config &c) { return !c.zero.quantizedGradients; },
     "gradients are not quantised"},
    {ZERO "mics_", below3, "MiCS is a form of stage 3"},
    {ZERO "mics_shard_size", withoutMics, ""},
    {ZERO "mics_shard_size", [](const Config &c) { return c.mesh.dp == 1; },
     "there is one data-parallel rank"},
    {ZERO "mics_hierarchical_params_gather", withoutMics, "MiCS is off"},
    {ZERO "mics_hierarchical_params_gather", [](const Config &c) { return c.mesh.dp == 1; },
     "there is one data-parallel rank"},
    {ZERO "mics_hierarchical_params_gather", [](const Config &c) { return !c.zero.micsNodeRanks; },
     "no group of mics_shard_size ranks spans nodes of several ranks"},
    {"aio.use_gds",
     [](const Config &c) {
       return c.zero.offloadParam.device != Home::Nvme && c.zero.offloadOptimizer.device != Home::Nvme;
     },
     "nothing is on NVMe"},
    {"fp16.fp16_master_weights_and_grads", [](const Config &c) { return !c.precision.fp16.enabled; },
     "fp16 is off"},
    {"bf16.bf16_", [](const Config &c) { return !c.precision.bf16.enabled; }, "bf16 is off"},
};
#undef ZERO

/// Whether a block that is handed on unread has a switch of its own, which is not on.
static bool isSwitchedOff(const Setting &setting) {
  if (setting.key != "quantize_training")
    return false;
  Result<Value> block = parseText(setting.value, setting.key);
  const Value *enabled = block && block->is(Value::Kind::Object) ? block->member("enabled") : nullptr;
  return block && block->is(Value::Kind::Object) && !(enabled && enabled->boolean);
}

std::optional<std::string_view> whyOff(const Config &config, const Setting &setting) {
  for (const Block &block : kBlocks)
    if (matchesAny(setting.key, {&block.keys, 1}) && block.isOff(config))
      return block.why;
  if (isSwitchedOff(setting))
    return "";
  return std::nullopt;
}

} // namespace ds::config
