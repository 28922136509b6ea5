//===- Rules.cpp - What may not stand together --------------------------------------===//
//
// One row per rule: the keys it is about, the condition that breaks it and what to do. The message shows
// every key with its value and origin, so the rows say only why. What DeepSpeed asks of an optimizer that a
// script hands in is no rule: here every optimizer is the configuration's. Keys of a block that is off break
// none.
//
//===---------------------------------------------------------------------------===//
#include "Build.h"

#include <algorithm>

namespace ds::config {

namespace {
struct Rule {
  std::string_view keys; ///< separated by blanks; shown with their values
  bool (*broken)(const Config &);
  std::string_view why, hint;
};
} // namespace

#define ZERO "zero_optimization."

static bool on(const Config &c, std::string_view path) {
  const Setting *setting = c.find(path);
  return setting && setting->value == "true";
}
static bool isDefault(const Config &c, std::string_view path) {
  const Setting *setting = c.find(path);
  return !setting || !setting->changed;
}
static bool offloads(const Config &c) { return c.zero.offloadOptimizer.device != Home::Device; }
static bool isAdam(const Config &c) {
  return c.optimizer.kind == Optimizer::Kind::Adam || c.optimizer.kind == Optimizer::Kind::AdamW;
}
/// Whether DeepSpeed would run its own CPU Adam.
static bool usesCpuAdam(const Config &c) {
  return c.zero.offloadOptimizer.device == Home::Cpu && isAdam(c) && !on(c, "optimizer.params.torch_adam");
}
static bool isOneBit(const Config &c) {
  return c.optimizer.name == "OneBitAdam" || c.optimizer.name == "OneBitLamb" ||
         c.optimizer.name == "ZeroOneAdam";
}
/// The optimizers that DeepSpeed has tested under ZeRO.
static bool isTested(const Config &c) {
  static constexpr std::string_view kTested[] = {"Adam", "AdamW", "Adagrad", "Lion", "Muon"};
  return std::find(std::begin(kTested), std::end(kTested), c.optimizer.name) != std::end(kTested);
}
/// Whether DeepCompile is on and runs that pass.
static bool compilePass(const Config &c, std::string_view name) {
  const Setting *passes = c.find("compile.passes");
  return on(c, "compile.deepcompile") && passes &&
         passes->value.find("\"" + std::string(name) + "\"") != std::string::npos;
}
static bool autoEpWith3(const Config &c) { return on(c, "expert_parallel.enabled") && c.zero.stage == 3; }
static bool outside01(double x) { return !(x >= 0 && x < 1); }

static constexpr Rule kRules[] = {
    {"fp16.enabled bf16.enabled",
     [](const Config &c) { return c.precision.fp16.enabled && c.precision.bf16.enabled; },
     "only one precision mode can be on", "turn one of them off"},
    {"amp.enabled " ZERO "stage", [](const Config &c) { return on(c, "amp.enabled") && c.zero.stage > 0; },
     "amp does not go with ZeRO", "use fp16 or bf16"},
    {"amp.enabled fp16.enabled bf16.enabled",
     [](const Config &c) {
       return on(c, "amp.enabled") && (c.precision.fp16.enabled || c.precision.bf16.enabled);
     },
     "amp does not go with fp16 or bf16", "turn amp off"},
    {"gradient_reduction " ZERO "stage",
     [](const Config &c) {
       const Setting *reduction = c.find("gradient_reduction");
       return reduction && reduction->value == "\"each_micro_step\"" && c.zero.stage == 0;
     },
     "micro-steps can only keep their part of a gradient under ZeRO", "choose stage 1, 2 or 3"},
    {"gradient_allreduce_op " ZERO "stage",
     [](const Config &c) { return c.sumGradients && c.zero.stage == 3; },
     "gradients are not summed under stage 3", "use \"mean\""},
    {"gradient_allreduce_op " ZERO "zenflow",
     [](const Config &c) { return c.sumGradients && c.zero.zenflow; },
     "gradients are not summed under ZenFlow", "use \"mean\""},
    {"gradient_allreduce_op compile.deepcompile",
     [](const Config &c) { return c.sumGradients && on(c, "compile.deepcompile"); },
     "gradients are not summed under DeepCompile", "use \"mean\""},
    {"fp16.fp16_master_weights_and_grads " ZERO "stage",
     [](const Config &c) { return c.precision.fp16.masterWeightsAndGrads && c.zero.stage == 0; },
     "16-bit masters need ZeRO stage 1, 2 or 3", "choose a stage"},
    {"bf16.bf16_master_weights_and_grads " ZERO "stage",
     [](const Config &c) { return c.precision.bf16.masterWeightsAndGrads && c.zero.stage == 0; },
     "16-bit masters need ZeRO stage 1, 2 or 3", "choose a stage"},
    {"fp16.fp16_master_weights_and_grads " ZERO "offload_optimizer.device optimizer.type",
     [](const Config &c) { return c.precision.fp16.masterWeightsAndGrads && !usesCpuAdam(c); },
     "fp16 masters need DeepSpeed's CPU Adam",
     "offload the optimizer to the cpu and use Adam or AdamW without torch_adam"},
    {"bf16.bf16_optimizer_states bf16.bf16_master_weights_and_grads",
     [](const Config &c) {
       return c.precision.bf16.optimizerStates && !c.precision.bf16.masterWeightsAndGrads;
     },
     "bf16 optimizer states need bf16 masters", "turn bf16_master_weights_and_grads on"},
    {"bf16.bf16_master_weights_and_grads bf16.bf16_optimizer_states " ZERO
     "offload_optimizer.device optimizer.type",
     [](const Config &c) {
       return c.precision.bf16.masterWeightsAndGrads && !c.precision.bf16.optimizerStates && !usesCpuAdam(c);
     },
     "bf16 masters with fp32 states need DeepSpeed's CPU Adam",
     "turn bf16_optimizer_states on, or offload the optimizer"},
    {"fp16.loss_scale fp16.loss_scale_window fp16.min_loss_scale",
     [](const Config &c) {
       const Fp16 &f = c.precision.fp16;
       return f.enabled && f.lossScale == 0 && (f.lossScaleWindow <= 0 || f.minLossScale <= 0);
     },
     "dynamic loss scaling needs a window and a minimum above 0", "give positive values"},
    {"data_types.param_dtype fp16.enabled bf16.enabled",
     [](const Config &c) {
       DType mode = c.precision.fp16.enabled   ? DType::F16
                    : c.precision.bf16.enabled ? DType::BF16
                                               : DType::F32;
       return c.precision.model != mode;
     },
     "the parameters' type is not that of the enabled mode", "drop \"data_types.param_dtype\""},
    {"data_types.grad_accum_dtype fp16.enabled bf16.enabled " ZERO "stage",
     [](const Config &c) {
       if (c.zero.stage > 0 || !c.precision.gradAccum || *c.precision.gradAccum == c.precision.model)
         return false;
       return c.precision.model != DType::BF16 || *c.precision.gradAccum != DType::F32;
     },
     "without ZeRO gradients accumulate in the model's type, or in fp32 for bf16",
     "drop \"data_types.grad_accum_dtype\""},
    {ZERO "offload_optimizer.ratio " ZERO "stage",
     [](const Config &c) { return offloads(c) && c.zero.offloadOptimizer.ratio < 1 && c.zero.stage != 3; },
     "partial offload needs stage 3", "set the ratio to 1.0"},
    {"optimizer.type " ZERO "stage zero_allow_untested_optimizer",
     [](const Config &c) {
       return c.zero.stage > 0 && !isTested(c) && !isOneBit(c) && !on(c, "zero_allow_untested_optimizer");
     },
     "DeepSpeed has not tested this optimizer under ZeRO", "set \"zero_allow_untested_optimizer\": true"},
    {"optimizer.type " ZERO "stage", [](const Config &c) { return isOneBit(c) && c.zero.stage > 0; },
     "1-bit optimizers do not go with ZeRO", "set the stage to 0"},
    {"optimizer.type fp16.enabled fp16.loss_scale",
     [](const Config &c) {
       return c.optimizer.kind == Optimizer::Kind::Lamb && c.precision.fp16.enabled &&
              c.precision.fp16.lossScale != 0;
     },
     "Lamb needs dynamic loss scaling", "set \"fp16.loss_scale\" to 0"},
    {"loss_normalization gradient_allreduce_op",
     [](const Config &c) { return c.sumGradients && !isDefault(c, "loss_normalization"); },
     "gradients of a mean over the targets of all ranks are averaged, not added up",
     "drop \"gradient_allreduce_op\""},
    {ZERO "reduce_scatter " ZERO "stage gradient_predivide_factor prescale_gradients",
     [](const Config &c) {
       return c.zero.stage >= 2 && c.zero.reduceScatter && !c.sumGradients &&
              (c.gradientPredivideFactor != 1 || c.prescaleGradients);
     },
     "gradients that are reduce-scattered cannot be scaled before",
     "drop the scaling, or turn reduce_scatter off"},
    {"expert_parallel.enabled " ZERO "stage tensor_parallel.autotp_size sequence_parallel_size",
     [](const Config &c) { return autoEpWith3(c) && (c.mesh.tp > 1 || c.mesh.sp > 1); },
     "expert parallelism under stage 3 goes with neither tensor nor sequence parallelism",
     "set the stage to 2"},
    {"expert_parallel.enabled " ZERO "stage " ZERO "mics_shard_size " ZERO "zero_hpz_partition_size " ZERO
     "zero_quantized_gradients expert_parallel.expert_tensor_parallel_size",
     [](const Config &c) {
       return autoEpWith3(c) &&
              (c.zero.micsShardSize > 0 || c.zero.hpzPartitionSize > 1 || c.zero.quantizedGradients ||
               !isDefault(c, "expert_parallel.expert_tensor_parallel_size"));
     },
     "expert parallelism under stage 3 goes with none of MiCS, hpZ, quantised gradients and sharded experts",
     "turn them off"},
    {ZERO "mics_shard_size " ZERO "offload_optimizer.device " ZERO "offload_param.device",
     [](const Config &c) {
       return c.zero.micsShardSize > 0 &&
              (c.zero.offloadOptimizer.device == Home::Cpu || c.zero.offloadParam.device == Home::Cpu);
     },
     "MiCS does not go with offload to the CPU", "set \"mics_shard_size\" to -1"},
    {"torch_autocast.enabled " ZERO "zero_quantized_weights",
     [](const Config &c) { return c.precision.autocast && c.zero.quantizedWeights; },
     "autocast does not go with quantised weights", "turn one of them off"},
    {"optimizer.type " ZERO "stage " ZERO "reduce_scatter",
     [](const Config &c) { return c.optimizer.name == "Muon" && c.zero.stage == 3 && c.zero.reduceScatter; },
     "Muon needs whole gradients", "turn reduce_scatter off"},
    {"optimizer.type " ZERO "reduce_scatter " ZERO "offload_optimizer.device",
     [](const Config &c) {
       return c.optimizer.name == "Muon" && (c.zero.stage == 1 || c.zero.stage == 2) &&
              c.zero.reduceScatter && offloads(c);
     },
     "Muon needs whole gradients", "turn reduce_scatter off"},
    {"managed_gradient_accumulation pipeline.stages compile.deepcompile amp.enabled",
     [](const Config &c) {
       return !c.managedGradientAccumulation &&
              (c.mesh.pp > 1 || on(c, "compile.deepcompile") || on(c, "amp.enabled"));
     },
     "pipelines, DeepCompile and amp manage the accumulation themselves",
     "drop \"managed_gradient_accumulation\""},
    {"managed_gradient_accumulation " ZERO "overlap_comm " ZERO "stage",
     [](const Config &c) {
       return !c.managedGradientAccumulation && c.zero.stage > 0 && c.zero.stage != 2 && c.zero.overlapComm;
     },
     "overlapped reduction outside stage 2 needs managed accumulation", "turn overlap_comm off"},
    {"activation_checkpointing.contiguous_memory_optimization activation_checkpointing.partition_activations",
     [](const Config &c) {
       const ActivationCheckpointing &a = c.activationCheckpointing;
       return a.contiguousMemoryOptimization && a.demands() && !a.partitionActivations;
     },
     "contiguous checkpoints must be partitioned", "turn partition_activations on"},
    {"activation_checkpointing.contiguous_memory_optimization activation_checkpointing.number_checkpoints",
     [](const Config &c) {
       const ActivationCheckpointing &a = c.activationCheckpointing;
       return a.contiguousMemoryOptimization && a.demands() && !a.numberCheckpoints;
     },
     "contiguous checkpoints must be counted", "give number_checkpoints"},
    {"activation_checkpointing.ops activation_checkpointing.layers "
     "activation_checkpointing.number_checkpoints "
     "activation_checkpointing.granularity pipeline.activation_checkpoint_interval",
     [](const Config &c) {
       const ActivationCheckpointing &a = c.activationCheckpointing;
       const bool names = !a.ops.empty(), selects = a.selective;
       const bool counts =
           a.numberCheckpoints || !a.layers.empty() || c.pipeline.activationCheckpointInterval > 0;
       return (names && selects) || ((names || selects) && counts);
     },
     "either ops are recomputed, or layers", "keep one of the keys"},
    {ZERO "offload_param.device " ZERO "offload_param.nvme_path",
     [](const Config &c) {
       return c.zero.offloadParam.device == Home::Nvme && c.zero.offloadParam.nvmePath.empty();
     },
     "NVMe needs a directory", "give nvme_path"},
    {ZERO "offload_optimizer.device " ZERO "offload_optimizer.nvme_path",
     [](const Config &c) {
       return c.zero.offloadOptimizer.device == Home::Nvme && c.zero.offloadOptimizer.nvmePath.empty();
     },
     "NVMe needs a directory", "give nvme_path"},
    {"elasticity.enabled train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps",
     [](const Config &c) {
       auto given = [&](std::string_view path) { return c.find(path)->origin <= Origin::Set; };
       return on(c, "elasticity.enabled") && !on(c, "elasticity.ignore_non_elastic_batch_info") &&
              (given("train_batch_size") || given("train_micro_batch_size_per_gpu") ||
               given("gradient_accumulation_steps"));
     },
     "elasticity chooses the batch sizes itself",
     "drop them, or set \"elasticity.ignore_non_elastic_batch_info\": true"},
    {"elasticity.enabled elasticity.max_train_batch_size elasticity.micro_batch_sizes",
     [](const Config &c) {
       auto absent = [&](std::string_view path) { return c.find(path)->origin == Origin::Default; };
       return on(c, "elasticity.enabled") &&
              (absent("elasticity.max_train_batch_size") || absent("elasticity.micro_batch_sizes"));
     },
     "elasticity needs its bounds", "give max_train_batch_size and micro_batch_sizes"},
    {"compile.passes " ZERO "stage",
     [](const Config &c) { return compilePass(c, "autosp") && c.zero.stage > 1; },
     "pass autosp goes with ZeRO stage 0 or 1 only", "set the stage to 1"},
    {"compile.passes tensor_parallel.autotp_size tensor_parallel.tp_overlap_comm",
     [](const Config &c) {
       bool alone = !compilePass(c, "z1") && !compilePass(c, "z3") && !compilePass(c, "autosp");
       return compilePass(c, "autotp") &&
              (!alone || c.mesh.tp <= 1 || c.tensorParallel.overlapComm.value_or(false));
     },
     "pass autotp stands alone, with more than one tensor-parallel rank and without tp_overlap_comm",
     "drop the pass"},
    {ZERO "legacy_stage1", [](const Config &c) { return on(c, ZERO "legacy_stage1"); },
     "the old implementation of stage 1 is gone", "drop the key"},
    {"optimizer.params.betas",
     [](const Config &c) { return outside01(c.optimizer.beta1) || outside01(c.optimizer.beta2); },
     "betas lie in [0, 1)", "the usual ones are [0.9, 0.999]"},
    {"optimizer.params.nesterov optimizer.params.momentum optimizer.params.dampening",
     [](const Config &c) {
       return c.optimizer.nesterov && (c.optimizer.momentum <= 0 || c.optimizer.dampening != 0);
     },
     "Nesterov's momentum needs momentum and no dampening", "give \"momentum\""},
    {"optimizer.params.amsgrad optimizer.params.torch_adam",
     [](const Config &c) {
       return isAdam(c) && c.optimizer.amsgrad && !on(c, "optimizer.params.torch_adam");
     },
     "DeepSpeed's fused Adam has no amsgrad", "drop it"},
    {"optimizer.params.min_coeff optimizer.params.max_coeff",
     [](const Config &c) { return c.optimizer.minCoeff > c.optimizer.maxCoeff; },
     "the smallest trust ratio exceeds the largest", "swap them"},
    {ZERO "zenflow.topk_ratio",
     [](const Config &c) {
       return c.zero.zenflow && (c.zero.zenflow->topkRatio <= 0 || c.zero.zenflow->topkRatio >= 1);
     },
     "the share lies between 0 and 1, exclusive", "the default is 0.1"},
    {"expert_parallel.num_limited_groups expert_parallel.num_expert_groups",
     [](const Config &c) {
       const Setting *limited = c.find("expert_parallel.num_limited_groups"),
                     *groups = c.find("expert_parallel.num_expert_groups");
       return on(c, "expert_parallel.enabled") && limited->value != "null" && groups->value != "null" &&
              exactInteger(limited->value).value_or(0) > exactInteger(groups->value).value_or(0);
     },
     "a token cannot use more groups than there are", "lower num_limited_groups"},
};
#undef ZERO

/// "\"key\" = value (origin)" for each key of a rule.
static std::string spellKeys(const Config &config, std::string_view keys) {
  std::string out;
  for (std::string_view path : splitAt(keys, ' ')) {
    const Setting *setting = config.find(path);
    if (!setting)
      continue;
    out += (out.empty() ? "" : ", ") + quote(path) + " = " + setting->value;
    if (setting->origin != Origin::Default)
      out += " (" + setting->from + ")";
  }
  return out;
}

void checkRules(const Config &config, Report &report) {
  for (const Rule &rule : kRules)
    if (rule.broken(config))
      report.complaints.push_back(
          {report.name + ": " + std::string(rule.why) + ": " + spellKeys(config, rule.keys),
           std::string(rule.hint)});
  if (config.vocabularySize && *config.vocabularySize % 8 != 0)
    report.notices.push_back(report.name +
                             ": \"vocabulary_size\" = " + std::to_string(*config.vocabularySize) +
                             " is not a multiple of 8, which tensor cores prefer");
}

} // namespace ds::config
