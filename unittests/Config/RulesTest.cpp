//===- RulesTest.cpp - What may not stand together ------------------------------------===//
//
// One case breaks each rule; its neighbour keeps it.
//
//===---------------------------------------------------------------------------===//
#include "ConfigTestUtil.h"

using namespace ds;
using namespace ds::config;
using testing::HasSubstr;

namespace {
struct Case {
  const char *broken, *why, *kept;
};
} // namespace

#define Z "zero_optimization"
#define OPT(type) "optimizer: {type: '" type "'}, "
#define CPU "offload_optimizer: {device: 'cpu'}"

static void check(std::initializer_list<Case> cases) {
  for (const Case &c : cases) {
    Result<Config> broken = readMembers(c.broken), kept = readMembers(c.kept);
    EXPECT_THAT(told(broken), HasSubstr(c.why)) << c.broken;
    if (!broken) {
      EXPECT_EQ(broken.error().code, ExitCode::Invalid);
      EXPECT_FALSE(broken.error().hint.empty()) << c.broken;
    }
    EXPECT_EQ(told(kept), "ok") << c.kept;
  }
}

TEST(Rules, Precision) {
  check({
      {"fp16: {enabled: true, fp16_master_weights_and_grads: true}, " Z ": {stage: 1}",
       "fp16 masters need DeepSpeed's CPU Adam", "fp16: {fp16_master_weights_and_grads: true}"},
      {"bf16: {enabled: true, bf16_optimizer_states: true}", "bf16 optimizer states need",
       "bf16: {bf16_optimizer_states: true}, fp16: {enabled: false, loss_scale_window: 0}"},
      {"fp16: {enabled: true}, bf16: {enabled: true}", "only one precision mode",
       "fp16: {enabled: true}, bf16: {enabled: false}"},
      {"amp: {enabled: true}, " Z ": {stage: 1}", "amp does not go with ZeRO",
       "amp: {enabled: true, opt_level: 'O1'}"},
      {"amp: {enabled: true}, fp16: {enabled: true}", "amp does not go with fp16",
       "amp: {enabled: false}, fp16: {enabled: true}"},
      {"fp16: {enabled: true, fp16_master_weights_and_grads: true}", "16-bit masters need ZeRO",
       OPT("Adam") "fp16: {enabled: true, fp16_master_weights_and_grads: true}, " Z ": {stage: 2, " CPU "}"},
      {"fp16: {enabled: true, fp16_master_weights_and_grads: true}, " Z ": {stage: 2}",
       "fp16 masters need DeepSpeed's CPU Adam",
       OPT("AdamW") "fp16: {enabled: true, fp16_master_weights_and_grads: true}, " Z ": {stage: 2, " CPU "}"},
      {"bf16: {enabled: true, bf16_master_weights_and_grads: true, bf16_optimizer_states: true}",
       "16-bit masters need ZeRO",
       "bf16: {enabled: true, bf16_master_weights_and_grads: true, bf16_optimizer_states: true}, " Z
       ": {stage: 1}"},
      {"bf16: {enabled: true, bf16_master_weights_and_grads: true}, " Z ": {stage: 1}",
       "bf16 masters with fp32 states need",
       "bf16: {enabled: true, bf16_master_weights_and_grads: true}, " Z ": {stage: 1, " CPU "}"},
      {"bf16: {enabled: true, bf16_optimizer_states: true}, " Z ": {stage: 1}",
       "bf16 optimizer states need bf16 masters",
       "bf16: {enabled: true, bf16_optimizer_states: false}, " Z ": {stage: 1}"},
      {"fp16: {enabled: true, loss_scale_window: 0}", "dynamic loss scaling needs",
       "fp16: {enabled: true, loss_scale: 128, loss_scale_window: 0}"},
      {"fp16: {enabled: true, min_loss_scale: 0}", "dynamic loss scaling needs",
       "fp16: {enabled: true, loss_scale: 128, min_loss_scale: 0}"},
      {"fp16: {loss_scale: -1}", "expects a number of at least 0, but got the number -1",
       "fp16: {loss_scale: 0}"},
      {"fp16: {loss_scale: true}", "expects a number of at least 0, but got true", "fp16: {loss_scale: 1}"},
      {"bf16: {enabled: true}, data_types: {param_dtype: 'fp16'}", "not that of the enabled mode",
       "bf16: {enabled: true}, data_types: {param_dtype: 'torch.bfloat16'}"},
      {"fp16: {enabled: true}, data_types: {grad_accum_dtype: 'fp32'}",
       "gradients accumulate in the model's type",
       "bf16: {enabled: true}, data_types: {grad_accum_dtype: 'fp32'}"},
      {"torch_autocast: {enabled: true}, " Z ": {stage: 3, zero_quantized_weights: true}",
       "autocast does not go with quantised",
       "torch_autocast: {enabled: true}, " Z ": {stage: 2, zero_quantized_weights: true}"},
  });
}

TEST(Rules, Optimizers) {
  check({
      {"optimizer: {type: 'Adam', params: {max_grad_norm: 1.0}}", "write \"gradient_clipping\": 1.0",
       OPT("Adam") "gradient_clipping: 1.0"},
      {OPT("SGD") Z ": {stage: 1}", "has not tested this optimizer",
       OPT("SGD") "zero_allow_untested_optimizer: true, " Z ": {stage: 1}"},
      {OPT("Lamb") Z ": {stage: 2}", "has not tested this optimizer", OPT("Lion") Z ": {stage: 2}"},
      {OPT("OneBitAdam") Z ": {stage: 1}", "1-bit optimizers do not go with ZeRO",
       OPT("OneBitAdam") Z ": {stage: 0}"},
      {OPT("Lamb") "fp16: {enabled: true, loss_scale: 128}", "Lamb needs dynamic loss scaling",
       OPT("Lamb") "fp16: {enabled: true}"},
      {OPT("SGD") Z ": {stage: 1, " CPU "}", "has not tested this optimizer",
       OPT("SGD") "zero_allow_untested_optimizer: true, " Z ": {stage: 1, " CPU "}"},
      {OPT("Muon") Z ": {stage: 3}", "Muon needs whole gradients",
       OPT("Muon") Z ": {stage: 3, reduce_scatter: false}"},
      {OPT("Muon") Z ": {stage: 2, " CPU "}", "Muon needs whole gradients", OPT("Muon") Z ": {stage: 2}"},
      {"optimizer: {type: 'Adam', params: {betas: [0.9, 1.0]}}", "betas lie in [0, 1)",
       "optimizer: {type: 'Adam', params: {betas: [0, 0.5]}}"},
      {"optimizer: {type: 'Adam', params: {betas: [0.9]}}",
       "expects a list of 2 numbers, but got a list of 1",
       "optimizer: {type: 'Adam', params: {betas: [0.9, 0.95]}}"},
      {"optimizer: {type: 'SGD', params: {nesterov: true}}", "Nesterov's momentum needs",
       "optimizer: {type: 'SGD', params: {nesterov: true, momentum: 0.9}}"},
      {"optimizer: {type: 'Adam', params: {amsgrad: true}}", "has no amsgrad",
       "optimizer: {type: 'Adam', params: {amsgrad: true, torch_adam: true}}"},
      {"optimizer: {type: 'Lamb', params: {min_coeff: 11}}", "smallest trust ratio exceeds",
       "optimizer: {type: 'Lamb', params: {min_coeff: 1}}"},
  });
}

TEST(Rules, Gradients) {
  check({
      {"gradient_allreduce_op: 'sum', " Z ": {stage: 3}", "not summed under stage 3",
       "gradient_allreduce_op: 'sum', " Z ": {stage: 2}"},
      {"gradient_allreduce_op: 'sum', " Z ": {stage: 2, zenflow: {}}", "not summed under ZenFlow",
       Z ": {stage: 2, zenflow: {}}"},
      {"gradient_allreduce_op: 'sum', compile: {deepcompile: true}", "not summed under DeepCompile",
       "compile: {deepcompile: true}"},
      {"prescale_gradients: true, " Z ": {stage: 2}", "cannot be scaled before",
       "prescale_gradients: true, " Z ": {stage: 2, reduce_scatter: false}"},
      {"gradient_predivide_factor: 2.0, " Z ": {stage: 3}", "cannot be scaled before",
       "gradient_predivide_factor: 2.0, " Z ": {stage: 1}"},
      {"managed_gradient_accumulation: false, amp: {enabled: true}", "manage the accumulation themselves",
       "managed_gradient_accumulation: false"},
      {"managed_gradient_accumulation: false, " Z ": {stage: 3}", "needs managed accumulation",
       "managed_gradient_accumulation: false, " Z ": {stage: 2, overlap_comm: true}"},
  });
}

TEST(Rules, Memory) {
  check({
      {Z ": {stage: 2, offload_optimizer: {device: 'cpu', ratio: 0.5}}", "partial offload needs stage 3",
       Z ": {stage: 3, offload_optimizer: {device: 'cpu', ratio: 0.5}}"},
      {Z ": {stage: 2, offload_optimizer: {device: 'cpu', ratio: 0.5}}", "partial offload needs stage 3",
       Z ": {stage: 2, offload_optimizer: {device: 'none', ratio: 0.5}}"},
      {Z ": {offload_optimizer: {ratio: 1.5}}", "expects a number from 0 to 1, but got the number 1.5",
       Z ": {offload_optimizer: {ratio: 1}}"},
      {Z ": {offload_optimizer: {cpuadam_cores_perc: -0.1}}", "expects a number from 0 to 1",
       Z ": {offload_optimizer: {cpuadam_cores_perc: 0}}"},
      {Z ": {stage: 3, offload_param: {device: 'nvme'}}", "NVMe needs a directory",
       Z ": {stage: 3, offload_param: {device: 'nvme', nvme_path: '/nvme'}}"},
      {Z ": {stage: 3, offload_optimizer: {device: 'nvme'}}", "NVMe needs a directory",
       Z ": {stage: 3, offload_optimizer: {device: 'nvme', nvme_path: '/nvme'}}"},
      {Z ": {stage: 3, mics_shard_size: 2, " CPU "}", "MiCS does not go with offload",
       Z ": {stage: 2, mics_shard_size: 2, " CPU "}"},
      {Z ": {stage: 3, mics_shard_size: 2, " CPU "}", "MiCS does not go with offload",
       Z ": {stage: 3, mics_shard_size: 2}"},
      {Z ": {legacy_stage1: true}", "old implementation of stage 1 is gone", Z ": {legacy_stage1: false}"},
      {Z ": {stage: 4}", "expects an integer from 0 to 3, but got the number 4", Z ": {stage: 3}"},
      {Z ": {allgather_bucket_size: 7}", "expects \"auto\" or an integer that is even",
       Z ": {allgather_bucket_size: 8}"},
      {Z ": {zenflow: {topk_ratio: 1}}", "between 0 and 1, exclusive", Z ": {zenflow: {topk_ratio: 0.5}}"},
      {"activation_checkpointing: {contiguous_memory_optimization: true, number_checkpoints: 4}",
       "must be partitioned",
       "activation_checkpointing: {contiguous_memory_optimization: true, number_checkpoints: 4, "
       "partition_activations: true}"},
      {"activation_checkpointing: {contiguous_memory_optimization: true, partition_activations: true}",
       "must be counted", "activation_checkpointing: {partition_activations: true}"},
      {"activation_checkpointing: {contiguous_memory_optimization: true, cpu_checkpointing: true}",
       "must be partitioned",
       "activation_checkpointing: {contiguous_memory_optimization: true, cpu_checkpointing: false}"},
      {"activation_checkpointing: {ops: ['attention'], number_checkpoints: 2}",
       "either ops are recomputed, or layers",
       "activation_checkpointing: {ops: ['attention'], number_checkpoints: 'auto'}"},
      {"activation_checkpointing: {granularity: 'selective', layers: [1]}",
       "either ops are recomputed, or layers",
       "activation_checkpointing: {granularity: 'full', layers: [1]}"},
  });
}

TEST(Rules, Parallelism) {
  check({
      {"expert_parallel: {enabled: true, expert_tensor_parallel_size: 2}, " Z ": {stage: 3}",
       "goes with none of MiCS", "expert_parallel: {enabled: true}, " Z ": {stage: 3}"},
      {"expert_parallel: {enabled: true, num_limited_groups: 3, num_expert_groups: 2}",
       "more groups than there are", "expert_parallel: {num_limited_groups: 3, num_expert_groups: 2}"},
      {"expert_parallel: {load_balance_coeff: 0.1}", "expects null, but got the number 0.1",
       "expert_parallel: {load_balance_coeff: null}"},
      {"compile: {deepcompile: true, passes: ['autosp']}, " Z ": {stage: 2}",
       "pass autosp goes with ZeRO stage 0 or 1",
       "compile: {deepcompile: true, passes: ['autosp']}, " Z ": {stage: 1}"},
      {"compile: {deepcompile: true, passes: ['autotp']}", "pass autotp stands alone",
       "compile: {passes: ['autotp']}"},
      {"compile: {passes: ['z2']}", "expects a list of \"z1\", \"z3\", \"autosp\" or \"autotp\"",
       "compile: {passes: ['z1', 'z3']}"},
  });
  EXPECT_EQ(told(readMembers("pipeline: {stages: 2}, " Z ": {stage: 3}", 2)), "ok");
  EXPECT_THAT(
      told(readMembers("expert_parallel: {enabled: true}, sequence_parallel_size: 2, " Z ": {stage: 3}", 2)),
      HasSubstr("neither tensor nor sequence parallelism"));
}

TEST(Rules, ElasticityTakesTheBatchKeys) {
#define BOUNDS "max_train_batch_size: 64, micro_batch_sizes: [2, 4]"
  check({
      {"elasticity: {enabled: true, " BOUNDS "}", "elasticity chooses the batch sizes itself",
       "elasticity: {enabled: true, ignore_non_elastic_batch_info: true, " BOUNDS "}"},
      {"elasticity: {enabled: true, ignore_non_elastic_batch_info: true, max_train_batch_size: 64}",
       "elasticity needs its bounds", "elasticity: {enabled: false}"},
      {"elasticity: {micro_batch_sizes: [2, 0]}",
       "expects a list of integers greater than 0, but got a list of 2 [2, 0]",
       "elasticity: {micro_batch_sizes: [2, 4e0]}"},
  });
  EXPECT_THAT(told(read("{elasticity: {enabled: true, " BOUNDS "}}")),
              HasSubstr("elastic batch sizes are not solved here"));
#undef BOUNDS
}

TEST(Rules, ShowValuesAndOrigins) {
  Result<Config> config = readMembers("fp16: {enabled: true},\nbf16: {enabled: true}");
  EXPECT_EQ(told(config), "c: only one precision mode can be on: \"fp16.enabled\" = true (c:2:8), "
                          "\"bf16.enabled\" = true (c:3:8) [turn one of them off]");
}

TEST(Rules, PipelineDropsOverlap) {
  Result<Config> config = readMembers("pipeline: {stages: 2}, " Z ": {stage: 1, overlap_comm: true}", 2);
  ASSERT_TRUE(config) << told(config);
  EXPECT_FALSE(config->zero.overlapComm);
  EXPECT_THAT(noticesOf(config), HasSubstr("dropped under a pipeline"));
}

TEST(Rules, CpuOffloadForcesContiguousGradients) {
  Result<Config> config = readMembers(Z ": {stage: 2, contiguous_gradients: false, " CPU "}");
  ASSERT_TRUE(config) << told(config);
  EXPECT_TRUE(config->zero.contiguousGradients);
  EXPECT_THAT(noticesOf(config), HasSubstr("is turned on by offload_optimizer"));
}

TEST(Rules, OddVocabularyIsNoted) {
  EXPECT_THAT(noticesOf(readMembers("vocabulary_size: 50257")), HasSubstr("not a multiple of 8"));
  EXPECT_THAT(noticesOf(readMembers("vocabulary_size: 50304")),
              testing::Not(HasSubstr("not a multiple of 8")));
}
