//===- TrainingTest.cpp - Configuration -> attribute -> options ------------------===//
#include "ds/Dialect/Training.h"
#include "ds/Passes/TrainingFromConfig.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::ds;

namespace {

/// Options as passes read them where ds_config.json is `text`.
TrainingOptions fromConfig(const char *text) {
  auto config = ::ds::config::readConfig({.path = "test.json", .text = text, .sets = {}});
  EXPECT_TRUE(bool(config)) << (config ? "" : config.error().message);
  MLIRContext context;
  context.loadDialect<DsDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  EXPECT_TRUE(succeeded(setTraining(*module, trainingFromConfig(*config, {"bias$"}))));
  return getTraining(*module);
}

TEST(Training, AttributeKeepsEveryField) {
  TrainingOptions read = fromConfig(R"({
    "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3, "gradient_clipping": 0.5,
    "optimizer": {"type": "Lamb", "params": {"lr": 0.25, "betas": [0.5, 0.75], "eps": 0.125, "weight_decay": 0.0625,
                                             "max_coeff": 4, "min_coeff": 0.5, "bias_correction": false,
                                             "eps_inside_sqrt": true}},
    "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.25, "cycle_max_lr": 0.5, "decay_lr_rate": 0.125,
                  "cycle_first_step_size": 5, "cycle_second_step_size": 6, "cycle_first_stair_count": 7,
                  "cycle_second_stair_count": 8, "decay_step_size": 9, "cycle_min_mom": 0.0625,
                  "cycle_max_mom": 0.75, "decay_mom_rate": 0.03125}}})");
  EXPECT_EQ(read.accumulation, 3);
  EXPECT_EQ(read.clipping, 0.5);
  EXPECT_EQ(read.noDecay, std::vector<std::string>{"bias$"});
  EXPECT_EQ(read.optimizer.kind, OptimizerOptions::Kind::Lamb);
  EXPECT_EQ(read.optimizer.rate, 0.25);
  EXPECT_EQ(read.optimizer.beta1, 0.5);
  EXPECT_EQ(read.optimizer.beta2, 0.75);
  EXPECT_EQ(read.optimizer.epsilon, 0.125);
  EXPECT_EQ(read.optimizer.weightDecay, 0.0625);
  EXPECT_EQ(read.optimizer.maxTrust, 4);
  EXPECT_EQ(read.optimizer.minTrust, 0.5);
  EXPECT_FALSE(read.optimizer.biasCorrection);
  EXPECT_TRUE(read.optimizer.epsilonInsideRoot);
  EXPECT_EQ(read.schedule.kind, ScheduleOptions::Kind::OneCycle);
  EXPECT_EQ(read.schedule.cycleMinRate, 0.25);
  EXPECT_EQ(read.schedule.cycleMaxRate, 0.5);
  EXPECT_EQ(read.schedule.decayRate, 0.125);
  EXPECT_EQ(read.schedule.firstSteps, 5);
  EXPECT_EQ(read.schedule.secondSteps, 6);
  EXPECT_EQ(read.schedule.firstStairs, 7);
  EXPECT_EQ(read.schedule.secondStairs, 8);
  EXPECT_EQ(read.schedule.decaySteps, 9);
  EXPECT_TRUE(read.schedule.cycleMomentum);
  EXPECT_EQ(read.schedule.cycleMinMomentum, 0.0625);
  EXPECT_EQ(read.schedule.cycleMaxMomentum, 0.75);
  EXPECT_EQ(read.schedule.decayMomentumRate, 0.03125);
}

TEST(Training, AdamIsAdamWUnlessItsModeIsOff) {
  EXPECT_TRUE(
      fromConfig(R"({"train_batch_size": 1, "optimizer": {"type": "Adam"}})").optimizer.decoupledDecay);
  EXPECT_FALSE(fromConfig(R"({"train_batch_size": 1,
      "optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})")
                   .optimizer.decoupledDecay);
}

TEST(Training, WarmupWithoutMaximumReachesTheOptimizersRate) {
  TrainingOptions options = fromConfig(R"({"train_batch_size": 1, "gradient_clipping": 0,
      "optimizer": {"type": "AdamW", "params": {"lr": 0.25}},
      "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 7, "warmup_type": "linear"}}})");
  EXPECT_EQ(options.clipping, 0);
  EXPECT_EQ(options.schedule.kind, ScheduleOptions::Kind::Warmup);
  EXPECT_EQ(options.schedule.warmupMaxRate, 0.25);
  EXPECT_EQ(options.schedule.warmupSteps, 7);
  EXPECT_FALSE(options.schedule.logarithmic);
}

TEST(Training, WithoutAModeNothingIsLowered) {
  TrainingOptions options = fromConfig(R"({"train_batch_size": 1})");
  EXPECT_EQ(options.precision.compute, FloatKind::F32);
  EXPECT_EQ(options.precision.gradient, FloatKind::F32);
  EXPECT_FALSE(options.lossScale.skips);
}

TEST(Training, Bf16HasMastersAndLooksForOverflows) {
  TrainingOptions options = fromConfig(R"({"train_batch_size": 1, "bf16": {"enabled": true}})");
  EXPECT_EQ(options.precision.compute, FloatKind::BF16);
  EXPECT_TRUE(options.precision.lowersParameters());
  EXPECT_EQ(options.precision.master, FloatKind::F32);
  EXPECT_EQ(options.precision.moment, FloatKind::F32);
  EXPECT_FALSE(options.precision.convertsBuffers);
  EXPECT_TRUE(options.lossScale.skips);
  EXPECT_FALSE(options.lossScale.scales);
  EXPECT_FALSE(
      fromConfig(R"({"train_batch_size": 1, "bf16": {"enabled": true, "check_grad_overflow": false}})")
          .lossScale.skips);
}

TEST(Training, GradientsAddUpAsDeepSpeedDoes) {
  auto gradient = [](const char *text) { return fromConfig(text).precision.gradient; };
  EXPECT_EQ(gradient(R"({"train_batch_size": 1, "bf16": {"enabled": true}})"), FloatKind::F32);
  EXPECT_EQ(gradient(R"({"train_batch_size": 1, "fp16": {"enabled": true}})"), FloatKind::F16);
  EXPECT_EQ(
      gradient(R"({"train_batch_size": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}})"),
      FloatKind::BF16);
  EXPECT_EQ(gradient(R"({"train_batch_size": 1, "fp16": {"enabled": true}, "zero_optimization": {"stage": 3},
                         "data_types": {"grad_accum_dtype": "fp32"}})"),
            FloatKind::F32);
}

TEST(Training, Bf16MastersAndStatesAreBf16) {
  TrainingOptions options = fromConfig(R"({"train_batch_size": 1, "zero_optimization": {"stage": 1},
      "bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true},
      "data_types": {"buffer_dtype": "bf16"}})");
  EXPECT_EQ(options.precision.master, FloatKind::BF16);
  EXPECT_EQ(options.precision.moment, FloatKind::BF16);
  EXPECT_EQ(options.precision.gradient, FloatKind::BF16);
  EXPECT_TRUE(options.precision.convertsBuffers);
  EXPECT_EQ(options.precision.buffer, FloatKind::BF16);
}

TEST(Training, Fp16ScalesTheLoss) {
  LossScaleOptions dynamic = fromConfig(R"({"train_batch_size": 1, "fp16": {"enabled": true,
      "initial_scale_power": 4, "loss_scale_window": 7, "hysteresis": 3, "consecutive_hysteresis": true,
      "min_loss_scale": 2}})")
                                 .lossScale;
  EXPECT_TRUE(dynamic.skips && dynamic.scales && dynamic.dynamic);
  EXPECT_EQ(dynamic.initial, 16);
  EXPECT_EQ(dynamic.window, 7);
  EXPECT_EQ(dynamic.hysteresis, 3);
  EXPECT_TRUE(dynamic.consecutiveHysteresis);
  EXPECT_EQ(dynamic.minimum, 2);
  LossScaleOptions fixed =
      fromConfig(R"({"train_batch_size": 1, "fp16": {"enabled": true, "loss_scale": 128}})").lossScale;
  EXPECT_TRUE(fixed.skips && fixed.scales);
  EXPECT_FALSE(fixed.dynamic);
  EXPECT_EQ(fixed.initial, 128);
}

TEST(Training, AutocastLeavesParametersAlone) {
  TrainingOptions bf16 = fromConfig(R"({"train_batch_size": 1, "torch_autocast": {"enabled": true}})");
  EXPECT_EQ(bf16.precision.compute, FloatKind::BF16);
  EXPECT_FALSE(bf16.precision.lowersParameters());
  EXPECT_FALSE(bf16.lossScale.skips);
  TrainingOptions fp16 =
      fromConfig(R"({"train_batch_size": 1, "torch_autocast": {"enabled": true, "dtype": "fp16"}})");
  EXPECT_EQ(fp16.precision.compute, FloatKind::F16);
  EXPECT_EQ(fp16.precision.gradient, FloatKind::F32);
  EXPECT_TRUE(fp16.lossScale.dynamic);
  EXPECT_EQ(fp16.lossScale.hysteresis, 1);
  EXPECT_EQ(fp16.lossScale.window, 2000);
}

/// The mesh of `ranks` ranks where ds_config.json is `text`, as the module declares it.
std::string meshOf(int64_t ranks, const char *text, std::optional<int64_t> ranksPerNode = {}) {
  auto config = ::ds::config::readConfig(
      {.path = "test.json", .text = text, .sets = {}, .ranks = ranks, .ranksPerNode = ranksPerNode});
  EXPECT_TRUE(bool(config)) << (config ? "" : config.error().message);
  MLIRContext context;
  context.loadDialect<DsDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  declareMesh(*module, meshFromConfig(*config));
  EXPECT_EQ(getMeshShape(*module), meshFromConfig(*config));
  std::string said;
  llvm::raw_string_ostream os(said);
  if (MeshOp mesh = MeshOp::lookup(*module))
    mesh.print(os);
  return said;
}

TEST(Training, TheMeshSaysWhatAxesAreFor) {
  EXPECT_EQ(meshOf(1, R"({"train_batch_size": 1})"), "");
  EXPECT_EQ(meshOf(2, R"({"train_batch_size": 2})"), "ds.mesh @mesh axes [dp = 2] samples dp zero dp");
  EXPECT_EQ(meshOf(16, R"({"train_batch_size": 2, "pipeline": {"stages": 2}, "sequence_parallel_size": 2,
                           "tensor_parallel": {"autotp_size": 2}})"),
            "ds.mesh @mesh axes [pp = 2, dp = 2, sp = 2, tp = 2] samples dp zero (dp, sp) stages pp tensors "
            "tp");
  // MiCS: two groups of four, each of which has all parameters. A group of one divides nothing, one of all is
  // none.
  auto withMics = [](const std::string &size) {
    return meshOf(
        8, ("{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 3, \"mics_shard_size\": " + size +
            "}}")
               .c_str());
  };
  EXPECT_EQ(withMics("4"), "ds.mesh @mesh axes [dp.node = 2, dp.local = 4] samples dp zero dp.local");
  EXPECT_EQ(withMics("1"), "ds.mesh @mesh axes [dp.node = 8] samples dp");
  EXPECT_EQ(withMics("8"), "ds.mesh @mesh axes [dp = 8] samples dp zero dp");
  EXPECT_EQ(meshOf(2, R"({"train_batch_size": 1, "tensor_parallel": {"autotp_size": 2}})"),
            "ds.mesh @mesh axes [tp = 2] tensors tp");
  EXPECT_EQ(meshOf(8, R"({"train_batch_size": 4, "tensor_parallel": {"tp": {"tp_size": 4}}})"),
            "ds.mesh @mesh axes [dp = 2, tp = 4] samples dp zero dp tensors tp");
}

TEST(Training, WhatIsSaidOfLayersIsForSeveralRanks) {
  const std::string keys =
      R"("sequence_parallel": false, "preset_model": "llama", "partition_config": {"layer_specs": [
      {"patterns": ["qkv"], "shape": [[4, 2, 2], -1], "partition_dim": 0}, {"patterns": ["head"], "partition_type": "skip"}]})";
  auto read = [&](int64_t ranks) {
    const std::string text =
        "{\"train_batch_size\": 1, \"tensor_parallel\": {\"autotp_size\": " + std::to_string(ranks) + ", " +
        keys + "}}";
    auto config = ::ds::config::readConfig({.path = "test.json", .text = text, .sets = {}, .ranks = ranks});
    EXPECT_TRUE(bool(config)) << (config ? "" : config.error().message);
    return config ? trainingFromConfig(*config, {}).tensors : TensorOptions();
  };
  const TensorOptions options = read(2);
  EXPECT_EQ(options.sequenceParallel, false);
  EXPECT_EQ(options.overlapsExchanges, std::nullopt);
  ASSERT_EQ(options.layerSpecs.size(), 6u); // and four of the preset
  using Cut = TensorOptions::LayerSpec::Cut;
  EXPECT_EQ(options.layerSpecs[0],
            (TensorOptions::LayerSpec{{"qkv"}, Cut::Column, {{4, 2, 2}, {-1}}, 0, {}}));
  EXPECT_EQ(options.layerSpecs[1].cut, Cut::Skip);
  EXPECT_EQ(options.layerSpecs[2].patterns, std::vector<std::string>{".*\\.self_attn\\.o_proj\\.weight$"});
  EXPECT_EQ(options.layerSpecs[2].cut, Cut::Row);
  EXPECT_EQ(read(1), TensorOptions());
}

TEST(Training, NodesCutTheMesh) {
  const char *hpz =
      R"({"train_batch_size": 8, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 4}})";
  EXPECT_EQ(meshOf(8, hpz), "ds.mesh @mesh axes [dp.node = 2, dp.local = 4] samples dp zero dp");
  EXPECT_EQ(
      meshOf(4,
             R"({"train_batch_size": 8, "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 4}})"),
      "ds.mesh @mesh axes [dp = 4] samples dp zero dp");
  EXPECT_EQ(
      meshOf(8,
             R"({"train_batch_size": 8, "zero_optimization": {"stage": 2, "zero_hpz_partition_size": 4}})"),
      "ds.mesh @mesh axes [dp = 8] samples dp zero dp");
  auto withNodes = [](const char *size, int64_t ranks) {
    return meshOf(
        ranks,
        (R"({"train_batch_size": 16, "zero_optimization": {"stage": 3, "mics_hierarchical_params_gather": true,
                              "mics_shard_size": )" +
         std::string(size) + "}}")
            .c_str(),
        2);
  };
  EXPECT_EQ(
      withNodes("8", 16),
      "ds.mesh @mesh axes [dp.group = 2, dp.node = 4, dp.local = 2] samples dp zero (dp.node, dp.local)");
  EXPECT_EQ(withNodes("8", 8), "ds.mesh @mesh axes [dp.node = 4, dp.local = 2] samples dp zero dp");
  EXPECT_EQ(withNodes("2", 8), "ds.mesh @mesh axes [dp.node = 4, dp.local = 2] samples dp zero dp.local");
  TrainingOptions options = fromConfig(hpz);
  EXPECT_TRUE(options.sharding.secondaryAxes.empty()); // one rank
}

TEST(Training, ZeroReachesTheOptions) {
  TrainingOptions options = fromConfig(R"({"train_batch_size": 1, "gradient_allreduce_op": "sum",
      "zero_optimization": {"stage": 2, "reduce_bucket_size": 100, "allgather_bucket_size": 200, "sub_group_size": 300,
                            "stage3_param_persistence_threshold": 7, "stage3_model_persistence_threshold": 70}})");
  EXPECT_EQ(options.rankReduction, RankReduction::Sum);
  EXPECT_EQ(options.sharding.stage, 2);
  EXPECT_EQ(options.sharding.reduceBucketSize, 100);
  EXPECT_EQ(options.sharding.gatherBucketSize, 200);
  EXPECT_EQ(options.sharding.subGroupSize, 300);
  EXPECT_EQ(options.sharding.parameterThreshold, 7);
  EXPECT_EQ(options.sharding.modelThreshold, 70);
  EXPECT_FALSE(options.sharding.reduceEachMicroStep);
  EXPECT_FALSE(options.communicationType);
}

TEST(Training, GradientsOfSequencesAreExchangedInATypeOfTheirOwn) {
  auto typeOf = [](const std::string &more) {
    const std::string text =
        R"({"train_batch_size": 2, "communication_data_type": "fp16", "bf16": {"enabled": true},
                                "sequence_parallel_size": 2)" +
        more + "}";
    auto config = ::ds::config::readConfig({.path = "test.json", .text = text, .sets = {}, .ranks = 2});
    EXPECT_TRUE(bool(config)) << (config ? "" : config.error().message);
    return config ? trainingFromConfig(*config, {}).communicationType : std::nullopt;
  };
  EXPECT_EQ(typeOf(""), FloatKind::F32);
  EXPECT_EQ(typeOf(R"(, "seq_parallel_communication_data_type": "bf16")"), FloatKind::BF16);
}

TEST(Training, AutoLeavesSizesOpen) {
  ShardingOptions open = fromConfig(R"({"train_batch_size": 1,
      "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "allgather_bucket_size": "auto", "sub_group_size": "auto",
                            "stage3_param_persistence_threshold": "auto", "stage3_model_persistence_threshold": "auto"}})")
                             .sharding;
  for (int64_t size : {open.reduceBucketSize, open.gatherBucketSize, open.subGroupSize,
                       open.parameterThreshold, open.modelThreshold})
    EXPECT_EQ(size, ShardingOptions::kChosen);
}

TEST(Training, ReductionIsOpenOrForced) {
  auto reduction = [](const char *text) { return fromConfig(text).sharding.reduceEachMicroStep; };
  EXPECT_EQ(reduction(R"({"train_batch_size": 1, "zero_optimization": {"stage": 1}})"), std::nullopt);
  EXPECT_EQ(reduction(R"({"train_batch_size": 1, "gradient_reduction": "auto"})"), std::nullopt);
  EXPECT_EQ(reduction(R"({"train_batch_size": 1, "zero_optimization": {"stage": 1},
                          "gradient_reduction": "each_micro_step"})"),
            true);
  EXPECT_EQ(reduction(R"({"train_batch_size": 1, "gradient_reduction": "once_per_step"})"), false);
}

TEST(Training, LossChunksAreOpenOrGiven) {
  EXPECT_EQ(fromConfig(R"({"train_batch_size": 1})").lossChunks, 0);
  EXPECT_EQ(fromConfig(R"({"train_batch_size": 1, "loss_chunks": "auto"})").lossChunks, 0);
  EXPECT_EQ(fromConfig(R"({"train_batch_size": 1, "loss_chunks": 6})").lossChunks, 6);
}

} // namespace
