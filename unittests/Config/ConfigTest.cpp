//===- ConfigTest.cpp - Values, defaults, the batch triple, refusals, printing ----------===//
//
// What a configuration resolves to, and what is said about one that cannot be resolved.
//
//===---------------------------------------------------------------------------===//
#include "ConfigTestUtil.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace ds;
using namespace ds::config;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

static std::string triple(const Result<Config> &config) {
  if (!config)
    return told(config);
  return std::to_string(config->batch.global) + " " + std::to_string(config->batch.micro) + " " +
         std::to_string(config->batch.accumulation);
}

TEST(Batch, IsDerivedAsDeepSpeedDoes) {
  const std::pair<const char *, const char *> cases[] = {
      // two data-parallel ranks; the arithmetic is T = M * G * 2
      {"train_batch_size: 32, train_micro_batch_size_per_gpu: 16, gradient_accumulation_steps: 1", "32 16 1"},
      {"train_batch_size: 32, train_micro_batch_size_per_gpu: 8, gradient_accumulation_steps: 2", "32 8 2"},
      {"train_batch_size: 32, train_micro_batch_size_per_gpu: 4", "32 4 4"}, // 32 / 4 / 2
      {"train_batch_size: 32, gradient_accumulation_steps: 8", "32 2 8"},    // 32 / 2 / 8
      {"train_micro_batch_size_per_gpu: 4, gradient_accumulation_steps: 3", "24 4 3"},
      {"train_batch_size: 32", "32 16 1"},
      {"train_micro_batch_size_per_gpu: 4", "8 4 1"},
      {"train_batch_size: 32, train_micro_batch_size_per_gpu: 'auto', gradient_accumulation_steps: 'auto'",
       "32 16 1"},
  };
  for (auto [members, expected] : cases)
    EXPECT_EQ(triple(read("{" + std::string(members) + "}", {}, 2)), expected) << members;
}

TEST(Batch, ContradictionShowsTheEquationAndTheKeyToDrop) {
  auto message = [](const char *members) { return told(read("{" + std::string(members) + "}", {}, 2)); };
  EXPECT_EQ(
      message("train_batch_size: 33, train_micro_batch_size_per_gpu: 17, gradient_accumulation_steps: 2"),
      "c:1:2: train_batch_size = 33 is not train_micro_batch_size_per_gpu * gradient_accumulation_steps * "
      "data-parallel ranks = 17 * 2 * 2 [drop \"train_batch_size\": it becomes 68]");
  EXPECT_THAT(
      message("train_batch_size: 32, train_micro_batch_size_per_gpu: 18, gradient_accumulation_steps: 1"),
      HasSubstr("= 18 * 1 * 2 [drop \"train_micro_batch_size_per_gpu\": it becomes 16]"));
  EXPECT_THAT(
      message("train_batch_size: 32, train_micro_batch_size_per_gpu: 4, gradient_accumulation_steps: 3"),
      HasSubstr("= 4 * 3 * 2 [drop \"gradient_accumulation_steps\": it becomes 4]"));
  EXPECT_THAT(message("train_batch_size: 30, train_micro_batch_size_per_gpu: 4"),
              HasSubstr("= 4 * 3 * 2 [drop \"train_batch_size\": it becomes 24]"));
  EXPECT_THAT(message("train_batch_size: 33"),
              HasSubstr("= 16 * 1 * 2 [make \"train_batch_size\" a multiple of 2"));
  EXPECT_THAT(message("train_batch_size: 1"), HasSubstr("= 0 * 1 * 2 [make"));
  EXPECT_THAT(message("gradient_accumulation_steps: 2"), HasSubstr("neither \"train_batch_size\" nor"));
  EXPECT_THAT(message(""), HasSubstr("neither \"train_batch_size\" nor"));
  EXPECT_THAT(message("train_batch_size: 0"),
              HasSubstr("expects an integer greater than 0, but got the number 0"));
  EXPECT_THAT(message("train_batch_size: -4"),
              HasSubstr("expects an integer greater than 0, but got the number -4"));
  EXPECT_THAT(message("train_micro_batch_size_per_gpu: 9223372036854775807, gradient_accumulation_steps: 2"),
              HasSubstr("exceeds 64 bits"));
}

TEST(Batch, MeshDividesTheRanks) {
  Result<Config> config = read("{train_batch_size: 8, tensor_parallel: {autotp_size: 2}, pipeline: {stages: "
                               "2}, sequence_parallel_size: 2}",
                               {}, 16);
  ASSERT_TRUE(config) << told(config);
  EXPECT_EQ(config->mesh.dp, 2); // 16 / (2 * 2 * 2)
  EXPECT_EQ(config->batch.micro, 4);
  EXPECT_EQ(config->tensorParallel.size, 2);
  EXPECT_THAT(told(read("{train_batch_size: 8, pipeline: {stages: 3}}", {}, 4)),
              HasSubstr("ranks = 4, but tp * pp * sp = 1 * 3 * 1"));
  EXPECT_THAT(told(read("{train_batch_size: 8, data_parallel_size: 2}", {}, 4)),
              HasSubstr("\"data_parallel_size\" = 2, but"));
  EXPECT_THAT(told(read("{train_batch_size: 8, tensor_parallel: {autotp_size: 2, tp: {tp_size: 4}}}", {}, 8)),
              HasSubstr("tp.tp_size\" = 4"));
  EXPECT_THAT(told(read("{train_batch_size: 8}", {}, 0)), HasSubstr("ranks = 0"));
}

TEST(Config, NoFileHasDefaults) {
  Result<Config> config = readConfig({});
  ASSERT_TRUE(config) << told(config);
  EXPECT_EQ(triple(config), "1 1 1");
  EXPECT_EQ(config->optimizer.kind, Optimizer::Kind::AdamW);
  EXPECT_EQ(config->optimizer.lr, 1e-3);
  EXPECT_EQ(config->optimizer.weightDecay, 0);
  EXPECT_FALSE(config->optimizer.given);
  EXPECT_EQ(config->schedule.kind, Schedule::Kind::None);
  EXPECT_EQ(config->gradientClipping, 1.0); // 0.19.6; it was 0 before
  EXPECT_TRUE(config->precision.bf16.checkGradOverflow);
  EXPECT_TRUE(config->zero.offloadOptimizer.pinMemory);
  EXPECT_EQ(config->zero.prefetchBucketSize, 50000000); // the code's, not the documentation's 5e8
  EXPECT_FALSE(config->zero.overlapComm);
  EXPECT_EQ(config->zero.modelPersistenceThreshold, INT64_MAX);
  EXPECT_TRUE(refusedForProgram(*config).empty());
  EXPECT_EQ(triple(readConfig({"", std::nullopt, {"gradient_accumulation_steps=4"}, 2, false})), "8 1 4");
  EXPECT_EQ(triple(readConfig({"", std::nullopt, {"train_batch_size=4"}, 1, false})), "4 4 1");
}

TEST(Config, Stage3OverlapsByDefault) {
  EXPECT_EQ(valueOf(readMembers("zero_optimization: {stage: 3}"), "zero_optimization.overlap_comm"), "true");
  EXPECT_EQ(valueOf(readMembers("zero_optimization: {stage: 2}"), "zero_optimization.overlap_comm"), "false");
  EXPECT_EQ(valueOf(readMembers("zero_optimization: {stage: 3, overlap_comm: false}"),
                    "zero_optimization.overlap_comm"),
            "false");
}

TEST(Config, AdamIsAdamWUnlessTold) {
  auto kind = [](const char *optimizer) {
    Result<Config> config = readMembers("optimizer: {" + std::string(optimizer) + "}");
    return config ? config->optimizer.kind : Optimizer::Kind::Other;
  };
  EXPECT_EQ(kind("type: 'Adam'"), Optimizer::Kind::AdamW);
  EXPECT_EQ(kind("type: 'adam', params: {adam_w_mode: true}"), Optimizer::Kind::AdamW);
  EXPECT_EQ(kind("type: 'Adam', params: {adam_w_mode: false}"), Optimizer::Kind::Adam);
  EXPECT_EQ(kind("type: 'AdamW', params: {adam_w_mode: false}"),
            Optimizer::Kind::AdamW); // as DeepSpeed has it
  EXPECT_THAT(noticesOf(readMembers("optimizer: {type: 'AdamW', params: {adam_w_mode: false}}")),
              HasSubstr("\"optimizer.params.adam_w_mode\": false has no effect on type AdamW"));
  EXPECT_EQ(kind("type: 'sgd'"), Optimizer::Kind::Sgd);
  EXPECT_EQ(kind("type: 'ADAGRAD'"), Optimizer::Kind::Adagrad);
  EXPECT_EQ(kind("type: 'lion'"), Optimizer::Kind::Lion);
  EXPECT_EQ(kind("type: 'LAMB'"), Optimizer::Kind::Lamb);
}

TEST(Config, OptimizersHaveTheirOwnDefaults) {
  auto optimizer = [](const char *text) {
    Result<Config> config = readMembers("optimizer: {" + std::string(text) + "}");
    EXPECT_TRUE(config) << told(config);
    return config ? config->optimizer : Optimizer{};
  };
  Optimizer adagrad = optimizer("type: 'Adagrad'");
  EXPECT_EQ(adagrad.lr, 1e-2);
  EXPECT_EQ(adagrad.eps, 1e-10);
  Optimizer lion = optimizer("type: 'Lion'");
  EXPECT_EQ(lion.beta2, 0.999); // DeepSpeed's, not the paper's 0.99
  Optimizer lamb = optimizer("type: 'Lamb', params: {max_coeff: 5, lr: 1}");
  EXPECT_EQ(lamb.lr, 1);
  EXPECT_EQ(lamb.maxCoeff, 5);
  EXPECT_EQ(lamb.minCoeff, 0.01);
  Optimizer sgd =
      optimizer("type: 'SGD', params: {lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 1e-4}");
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_TRUE(sgd.nesterov);
  EXPECT_EQ(sgd.weightDecay, 1e-4);
  Optimizer adam = optimizer("type: 'Adam', params: {betas: [0.8, 0.7], eps: 1e-6, bias_correction: false}");
  EXPECT_EQ(adam.beta1, 0.8);
  EXPECT_EQ(adam.beta2, 0.7);
  EXPECT_EQ(adam.eps, 1e-6);
  EXPECT_FALSE(adam.biasCorrection);
  EXPECT_EQ(optimizer("type: 'AdamW', params: {torch_adam: true}").weightDecay, 0.01); // torch.optim.AdamW's
  EXPECT_EQ(optimizer("type: 'AdamW', params: {torch_adam: true, weight_decay: 0}").weightDecay, 0);
  EXPECT_EQ(optimizer("type: 'Adam', params: {torch_adam: true, adam_w_mode: false}").weightDecay, 0);
}

TEST(Config, OptimizerParametersBelongToTheirType) {
  EXPECT_THAT(told(readMembers("optimizer: {type: 'SGD', params: {betas: [0.9, 0.9]}}")),
              HasSubstr("unknown key \"optimizer.params.betas\" for type \"SGD\""));
  EXPECT_THAT(told(readMembers("optimizer: {type: 'AdamW', params: {momentum: 0.9}}")),
              HasSubstr("for type \"AdamW\""));
  EXPECT_THAT(told(readMembers("optimizer: {type: 'AdamX'}")),
              HasSubstr("unknown optimizer type \"AdamX\" [did you mean \"Adam\"?]"));
  EXPECT_THAT(told(readMembers("optimizer: {params: {lr: 1}}")), HasSubstr("\"optimizer\" has no \"type\""));
  EXPECT_EQ(told(readMembers("optimizer: {type: 'OneBitAdam', params: {freeze_step: 400}}")), "ok");
}

TEST(Config, SchedulesAreResolved) {
  auto schedule = [](const std::string &type, const std::string &params, const char *optimizer = "Adam") {
    Result<Config> config =
        readMembers("optimizer: {type: '" + std::string(optimizer) +
                    "', params: {lr: 0.5}}, scheduler: {type: '" + type + "', params: {" + params + "}}");
    EXPECT_TRUE(config) << told(config);
    return config ? config->schedule : Schedule{};
  };
  Schedule warmup = schedule("WarmupLR", "");
  EXPECT_EQ(warmup.kind, Schedule::Kind::WarmupLR);
  EXPECT_EQ(warmup.warmupMaxLr, 0.5); // the optimizer's
  EXPECT_EQ(warmup.warmupNumSteps, 1000);
  EXPECT_EQ(warmup.ramp, Schedule::Ramp::Log);
  EXPECT_EQ(schedule("WarmupLR", "warmup_num_steps: 1").warmupNumSteps, 2);
  EXPECT_EQ(schedule("WarmupDecayLR", "total_num_steps: 10").warmupMaxLr, 0.001); // not the optimizer's
  Schedule cosine = schedule("WarmupCosineLR", "total_num_steps: 1e4, warmup_type: 'linear'");
  EXPECT_EQ(cosine.totalNumSteps, 10000);
  EXPECT_EQ(cosine.cosMinRatio, 1e-4);
  EXPECT_EQ(cosine.ramp, Schedule::Ramp::Linear);
  Schedule cycle = schedule(
      "OneCycle", "cycle_min_lr: 0.1, cycle_max_lr: 1, cycle_first_step_size: 7, cycle_first_stair_count: 3");
  EXPECT_EQ(cycle.secondStepSize, 7);
  EXPECT_EQ(cycle.secondStairCount, 3);
  EXPECT_TRUE(cycle.cycleMomentum);
  EXPECT_FALSE(
      schedule("OneCycle", "cycle_min_lr: 0.1, cycle_max_lr: 1", "SGD").cycleMomentum); // SGD has no betas
  Schedule range = schedule("LRRangeTest", "lr_range_test_staircase: true, lr_range_test_step_size: 5");
  EXPECT_TRUE(range.staircase);
  EXPECT_EQ(range.stepSize, 5);
}

TEST(Config, SchedulesThatLackSomethingAreRefused) {
  auto message = [](const char *scheduler) {
    return told(readMembers("scheduler: {" + std::string(scheduler) + "}"));
  };
  EXPECT_THAT(message("type: 'WarmupDecayLR'"),
              HasSubstr("\"scheduler.params.total_num_steps\" is required by WarmupDecayLR"));
  EXPECT_THAT(message("type: 'WarmupCosineLR', params: {total_num_steps: 'auto'}"),
              HasSubstr("is required by WarmupCosineLR"));
  EXPECT_THAT(message("type: 'OneCycle', params: {cycle_min_lr: 1}"),
              HasSubstr("\"scheduler.params.cycle_max_lr\" is required"));
  EXPECT_THAT(message("type: 'WarmupLr'"), HasSubstr("[did you mean \"WarmupLR\"?]"));
  EXPECT_THAT(message("type: 'WarmupLR', params: {warmup_num_steps: 0}"), HasSubstr("greater than 0"));
  EXPECT_THAT(message("type: 'WarmupLR', params: {warmup_type: 'cosine'}"),
              HasSubstr("expects \"log\" or \"linear\""));
  EXPECT_THAT(message("type: 'WarmupLR', params: {total_num_steps: 5}"), HasSubstr("for type \"WarmupLR\""));
}

TEST(Config, TypesAreStrict) {
  const std::pair<const char *, const char *> cases[] = {
      {"gradient_clipping: '1.0'", "c:2:1 (byte 36): \"gradient_clipping\" expects a number of at least 0, "
                                   "but got the string \"1.0\" [numbers are written without quotes]"},
      {"steps_per_print: 2.5", "expects an integer of at least 0, but got the number 2.5"},
      {"steps_per_print: true", "expects an integer of at least 0, but got true"},
      {"steps_per_print: [1]", "but got a list of 1 [1]"},
      {"fp16: {enabled: 1}", "\"fp16.enabled\" expects true or false, but got the number 1"},
      {"fp16: {enabled: 'true'}",
       "expects true or false, but got the string \"true\" [write true or false, without quotes]"},
      {"fp16: {enabled: null}", "expects true or false, but got null"},
      {"fp16: 3", "\"fp16\" expects an object, but got the number 3"},
      {"optimizer: [1]", "\"optimizer\" expects an object, but got a list of 1"},
      {"zero_optimization: {stage: 1e19}", "expects an integer from 0 to 3"},
      {"zero_optimization: {reduce_bucket_size: 1e19}",
       "expects an integer of at least 0, but got the number 1e19"},
      {"zero_optimization: {offload_param: {device: 'cup'}}",
       "expects \"none\", \"cpu\" or \"nvme\", but got the string \"cup\" [did you mean \"cpu\"?]"},
      {"communication_data_type: 'fp8'", "expects \"fp16\", \"bf16\" or \"fp32\""},
      {"data_types: {param_dtype: 'float64'}", "expects \"fp32\", \"fp16\", \"bf16\" or \"int8\""},
  };
  for (auto [members, message] : cases)
    EXPECT_THAT(told(readMembers(members)), HasSubstr(message)) << members;
}

TEST(Config, IntegralFloatsAreIntegers) {
  EXPECT_EQ(valueOf(readMembers("zero_optimization: {reduce_bucket_size: 5e8}"),
                    "zero_optimization.reduce_bucket_size"),
            "500000000");
  EXPECT_EQ(valueOf(readMembers("zero_optimization: {stage3_max_live_parameters: 1E+9}"),
                    "zero_optimization.stage3_max_live_parameters"),
            "1000000000");
}

TEST(Config, NullMeansAbsent) {
  EXPECT_EQ(told(readMembers("optimizer: null, scheduler: null, steps_per_print: null, zero_optimization: "
                             "{offload_param: null, zenflow: null}")),
            "ok");
}

TEST(Config, AutoCountsAsAbsentAndIsPrinted) {
  Result<Config> config =
      readMembers("gradient_clipping: 'auto', fp16: {enabled: 'auto'}, scheduler: 'auto', "
                  "optimizer: {type: 'AdamW', params: {lr: 'auto', betas: 'auto'}}");
  ASSERT_TRUE(config) << told(config);
  EXPECT_EQ(config->optimizer.lr, 1e-3);
  EXPECT_EQ(config->gradientClipping, 1.0);
  EXPECT_THAT(noticesOf(config), HasSubstr("\"gradient_clipping\" is \"auto\" and resolves to 1.0\n"));
  EXPECT_THAT(noticesOf(config),
              HasSubstr("\"optimizer.params.betas\" is \"auto\" and resolves to [0.9, 0.999]\n"));
  EXPECT_THAT(noticesOf(config), HasSubstr("\"scheduler\" is \"auto\": it counts as absent"));
  EXPECT_THAT(printConfig(*config, PrintFormat::Text), HasSubstr("# \"auto\" in c:2:1; DeepSpeed 0.19.6"));
  EXPECT_EQ(valueOf(readMembers("pipeline: {stages: 'auto'}"), "pipeline.stages"), "\"auto\"");
}

TEST(Config, UnknownKeysAreRefusedWithTheNearest) {
  const std::pair<const char *, const char *> cases[] = {
      {"grandient_accumulation_steps: 2", "c:2:1 (byte 36): unknown key \"grandient_accumulation_steps\" "
                                          "[did you mean \"gradient_accumulation_steps\"?]"},
      {"torch_autocast: {enable: true}",
       "unknown key \"torch_autocast.enable\" [did you mean \"torch_autocast.enabled\"?]"},
      {"flops_profiler: {step: 1}",
       "unknown key \"flops_profiler.step\" [did you mean \"flops_profiler.profile_step\"?]"},
      {"zero_optimization: {offload_param: {devise: 'cpu'}}",
       "[did you mean \"zero_optimization.offload_param.device\"?]"},
      {"zero_optimization: {grad_hooks: true}", "unknown key \"zero_optimization.grad_hooks\""},
      {"compression_training: {row_pruning: {different_groups: {a: {parms: {}}}}}",
       "did you mean \"compression_training.row_pruning.different_groups.a.params\"?"},
      {"'zero_optimization.stage': 1", "unknown key \"zero_optimization.stage\""},
      {"'': 1", "unknown key \"\""},
  };
  for (auto [members, message] : cases)
    EXPECT_THAT(told(readMembers(members)), HasSubstr(message)) << members;
}

TEST(Config, ReadsWhatTrainersWrite) {
  // The shape that training scripts share: comments, "auto" everywhere, sizes as floats, long-standing
  // spellings.
  Result<Config> config = read(R"({
    "fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000, "initial_scale_power": 16, "hysteresis": 2, "min_loss_scale": 1},
    "bf16": {"enabled": "auto"},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}},
    "zero_optimization": {
      "stage": 3, // all of it
      "overlap_comm": true, "contiguous_gradients": true, "sub_group_size": 1e9, "reduce_bucket_size": "auto",
      "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto",
      "stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9,
      "stage3_gather_fp16_weights_on_model_save": true,
    },
    "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "steps_per_print": 2000,
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "wall_clock_breakdown": false,
  })",
                               {"train_micro_batch_size_per_gpu=2"});
  ASSERT_TRUE(config) << told(config);
  EXPECT_TRUE(checkForProgram(*config)) << checkForProgram(*config).error().message;
  EXPECT_EQ(triple(config), "2 2 1");
  EXPECT_EQ(config->zero.stage, 3);
  EXPECT_EQ(config->schedule.warmupMaxLr, 1e-3);
}

TEST(Config, UnknownKeysMayBeAllowed) {
  Result<Config> config =
      readConfig({"c", "{train_batch_size: 1, my_key: {a: 1}, fp16: {enable: true}}", {}, 1, true});
  ASSERT_TRUE(config) << told(config);
  EXPECT_THAT(noticesOf(config), HasSubstr("c:1:23 (byte 22): unknown key \"my_key\" is ignored"));
  EXPECT_THAT(noticesOf(config),
              HasSubstr("unknown key \"fp16.enable\" is ignored; the nearest is \"fp16.enabled\""));
}

TEST(Config, AllMistakesAreToldAtOnceInOrder) {
  Result<Config> config = read("{train_batch_size: '1',\nstep: 2,\nfp16: {enabled: 3}}");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("unknown key \"step\""));
  EXPECT_THAT(config.error().message, HasSubstr("\"train_batch_size\" expects"));
  EXPECT_THAT(config.error().message, HasSubstr("\"fp16.enabled\" expects"));
  EXPECT_THAT(config.error().message, StartsWith("c:1:2 (byte 1): \"train_batch_size\""));
}

TEST(Set, OverridesTheFileBeforeDefaults) {
  Result<Config> config = read("{train_batch_size: 8, zero_optimization: {stage: 1}}",
                               {"zero_optimization.stage=3", "optimizer.type=Lion",
                                "optimizer.params.lr=2e-4", "train_batch_size=16"});
  ASSERT_TRUE(config) << told(config);
  EXPECT_EQ(config->zero.stage, 3);
  EXPECT_TRUE(config->zero.overlapComm); // the default follows the set stage
  EXPECT_EQ(config->optimizer.kind, Optimizer::Kind::Lion);
  EXPECT_EQ(config->optimizer.lr, 2e-4);
  EXPECT_EQ(config->batch.micro, 16);
  EXPECT_EQ(config->find("optimizer.params.lr")->origin, Origin::Set);
  EXPECT_EQ(config->find("optimizer.params.lr")->from, "--set");
  EXPECT_EQ(triple(read("{train_batch_size: 8}", {"train_batch_size=2", "train_batch_size=4"})),
            "4 4 1"); // the last one
  EXPECT_EQ(
      triple(read("{train_batch_size: 8}", {"train_batch_size=null", "train_micro_batch_size_per_gpu=3"})),
      "3 3 1");
  EXPECT_EQ(
      valueOf(read("{train_batch_size: 8}", {"zero_optimization={\"stage\": 2}"}), "zero_optimization.stage"),
      "2");
}

TEST(Set, OverridesOldSpellingsAndMayUseThem) {
  Result<Config> config = read("{train_batch_size: 8, zero_optimization: true, bfloat16: {enabled: true}}",
                               {"zero_optimization.stage=2", "bf16.enabled=false", "aio.thread_count=4"});
  ASSERT_TRUE(config) << told(config);
  EXPECT_EQ(config->zero.stage, 2);
  EXPECT_FALSE(config->precision.bf16.enabled);
  EXPECT_EQ(config->aio.intraOpParallelism, 4);
  EXPECT_THAT(noticesOf(config), HasSubstr("--set aio.thread_count=4: \"aio.thread_count\" is read as"));
}

TEST(Set, RefusesWhatItCannotRead) {
  auto message = [](const char *set) { return told(read("{train_batch_size: 8}", {set})); };
  EXPECT_THAT(message("nothing"), HasSubstr("--set nothing: expects KEY=VALUE"));
  EXPECT_THAT(message("=1"), HasSubstr("expects KEY=VALUE"));
  EXPECT_THAT(message("a..b=1"), HasSubstr("expects KEY=VALUE"));
  EXPECT_THAT(message("train_batch_size.x=1"), HasSubstr("no key can lie below a value"));
  EXPECT_THAT(
      message("zero_optimization.stag=1"),
      HasSubstr("--set zero_optimization.stag=1: unknown key \"zero_optimization.stag\" [did you mean"));
  EXPECT_THAT(message("gradient_clipping=one"),
              HasSubstr("--set gradient_clipping=one: \"gradient_clipping\" expects a number"));
  EXPECT_THAT(message("gradient_clipping="), HasSubstr("but got the string \"\""));
  EXPECT_THAT(message("zero_optimization.stage=18446744073709551616"),
              HasSubstr("expects an integer from 0 to 3"));
}

TEST(Source, ReadsFilesAndBase64) {
  std::string path = testing::TempDir() + "ds_config_test.json";
  std::ofstream(path) << "{\n  train_batch_size: 4 }";
  Result<Config> config = readConfig({path, std::nullopt, {}, 1, false});
  ASSERT_TRUE(config) << told(config);
  EXPECT_EQ(config->find("train_batch_size")->from, path + ":2:3");
  std::remove(path.c_str());
  Result<Config> missing = readConfig({path, std::nullopt, {}, 1, false});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ExitCode::Io);
  EXPECT_THAT(missing.error().message, HasSubstr("No such file"));
  EXPECT_THAT(told(readConfig({"/", std::nullopt, {}, 1, false})), HasSubstr("not a regular file"));
  // {"train_batch_size": 6}
  EXPECT_EQ(triple(readConfig({"eyJ0cmFpbl9iYXRjaF9zaXplIjogNn0=", std::nullopt, {}, 1, false})), "6 6 1");
  // One character more than whole groups holds no whole byte: a file name that is not there.
  Result<Config> odd = readConfig({"eyJ0cmFpbl9iYXRjaF9zaXplIjogNn0gx", std::nullopt, {}, 1, false});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, ExitCode::Io);
}

TEST(Program, RefusesByName) {
  const std::pair<const char *, const char *> cases[] = {
      {"fp16: {enabled: true}", "fp16.enabled"},
      {"bf16: {enabled: true}", "bf16.enabled"},
      {"amp: {enabled: true}", "amp.enabled"},
      {"torch_autocast: {enabled: true}", "torch_autocast.enabled"},
      {"zero_optimization: {stage: 2, offload_optimizer: {device: 'cpu'}}",
       "zero_optimization.offload_optimizer.device"},
      {"zero_optimization: {stage: 3, offload_param: {device: 'cpu'}}",
       "zero_optimization.offload_param.device"},
      {"zero_optimization: {stage: 3, zenflow: {}}", "zero_optimization.zenflow"},
      {"zero_optimization: {zero_quantized_gradients: true}", "zero_optimization.zero_quantized_gradients"},
      {"zero_optimization: {mics_shard_size: 8}", "zero_optimization.mics_shard_size"},
      {"activation_checkpointing: {partition_activations: true}",
       "activation_checkpointing.partition_activations"},
      {"activation_checkpointing: {number_checkpoints: 4}", "activation_checkpointing.number_checkpoints"},
      {"pipeline: {activation_checkpoint_interval: 1}", "pipeline.activation_checkpoint_interval"},
      {"expert_parallel: {enabled: true}", "expert_parallel.enabled"},
      {"curriculum_learning: {enabled: true}", "curriculum_learning.enabled"},
      {"compression_training: {row_pruning: {shared_parameters: {enabled: true}}}",
       "compression_training.row_pruning.shared_parameters.enabled"},
      {"gradient_allreduce_op: 'sum'", "gradient_allreduce_op"},
      {"sparse_attention: {mode: 'fixed'}", "sparse_attention"},
      {"data_types: {buffer_dtype: 'bf16'}", "data_types.buffer_dtype"},
      {"optimizer: {type: 'OneBitAdam'}", "optimizer.type"},
      {"optimizer: {type: 'Muon'}", "optimizer.type"},
      {"optimizer: {type: 'RMSprop'}", "optimizer.type"},
  };
  for (auto [members, key] : cases) {
    Result<Config> config = readMembers(members);
    ASSERT_TRUE(config) << told(config);
    std::vector<Refusal> refusals = refusedForProgram(*config);
    ASSERT_EQ(refusals.size(), 1u) << members;
    EXPECT_EQ(refusals[0].key, key);
    EXPECT_FALSE(refusals[0].reason.empty());
    Status status = checkForProgram(*config);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::Invalid);
    EXPECT_THAT(status.error().message, HasSubstr("\"" + std::string(key) + "\" = "));
  }
}

TEST(Program, RefusesRanksAndParallelism) {
  auto keys = [](const char *members, int64_t ranks) {
    std::string out;
    Result<Config> config = readMembers(members, ranks);
    if (!config)
      return told(config);
    for (const Refusal &refusal : refusedForProgram(*config))
      out += refusal.key + "=" + refusal.value + " ";
    return out;
  };
  EXPECT_EQ(keys("", 2), "--ranks=2 ");
  EXPECT_EQ(keys("pipeline: {stages: 2}", 2), "pipeline.stages=2 --ranks=2 ");
  EXPECT_EQ(keys("tensor_parallel: {autotp_size: 2}", 2), "tensor_parallel.autotp_size=2 --ranks=2 ");
  EXPECT_EQ(keys("sequence_parallel_size: 2", 2), "sequence_parallel_size=2 --ranks=2 ");
  EXPECT_EQ(keys("pipeline: {stages: 1}, tensor_parallel: {autotp_size: 1}, sequence_parallel_size: 1", 1),
            "");
}

TEST(Program, AcceptsFp32ByName) {
  Result<Config> config =
      readMembers("communication_data_type: 'fp32', data_types: {grad_accum_dtype: 'float32', "
                  "param_dtype: 'torch.float32', buffer_dtype: 'fp32'}");
  ASSERT_TRUE(config) << told(config);
  EXPECT_TRUE(checkForProgram(*config)) << checkForProgram(*config).error().message;
}

TEST(Program, AcceptsWhatItHonoursAndNotesTheRest) {
  Result<Config> config =
      readMembers("gradient_accumulation_steps: 4, gradient_clipping: 0.5, steps_per_print: 10, "
                  "wall_clock_breakdown: true,"
                  "optimizer: {type: 'SGD', params: {lr: 0.1, momentum: 0.9}}, scheduler: {type: 'WarmupLR'},"
                  "zero_allow_untested_optimizer: true, zero_optimization: {stage: 2, overlap_comm: true, "
                  "reduce_bucket_size: 1e6},"
                  "tensorboard: {enabled: true, job_name: 'x'}, fp16: {enabled: false, loss_scale: 128}");
  ASSERT_TRUE(config) << told(config);
  EXPECT_TRUE(checkForProgram(*config)) << checkForProgram(*config).error().message;
  std::string notices = noticesOf(config);
  EXPECT_THAT(
      notices,
      HasSubstr(
          "c:2:57: \"steps_per_print\" = 10 has no effect here: ds-run prints one line for every step"));
  EXPECT_THAT(notices, HasSubstr("\"zero_optimization.stage\" = 2 has no effect on one data-parallel rank"));
  EXPECT_THAT(notices, HasSubstr("\"tensorboard.enabled\" = true has no effect here"));
  EXPECT_THAT(notices, HasSubstr("\"zero_allow_untested_optimizer\" = true has no effect"));
  EXPECT_THAT(notices, Not(HasSubstr("gradient_clipping")));
}

TEST(Print, ShowsValuesAndOrigins) {
  Result<Config> config = read("{\n  \"train_batch_size\": 8,\n  \"comet\": {\"api_key\": \"hush\"}\n}",
                               {"gradient_clipping=0.5"});
  ASSERT_TRUE(config) << told(config);
  std::string text = printConfig(*config, PrintFormat::Text);
  EXPECT_THAT(text, testing::ContainsRegex("train_batch_size = 8 +# c:2:3\n"));
  EXPECT_THAT(text, testing::ContainsRegex("gradient_clipping = 0.5 +# --set\n"));
  EXPECT_THAT(text, testing::ContainsRegex("gradient_accumulation_steps = 1 +# derived: 1 when absent\n"));
  EXPECT_THAT(text, testing::ContainsRegex("zero_optimization.stage = 0 +# DeepSpeed 0.19.6\n"));
  EXPECT_THAT(text, Not(HasSubstr("hush")));
  std::string json = printConfig(*config, PrintFormat::Json);
  EXPECT_THAT(
      json, HasSubstr("\"gradient_clipping\": {\"value\": 0.5, \"origin\": \"--set\", \"from\": \"--set\"}"));
  nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  ASSERT_TRUE(parsed.is_object());
  EXPECT_EQ(parsed.size(), config->settings.size());
  for (const Setting &setting : config->settings) {
    EXPECT_EQ(parsed[setting.key]["from"], setting.from);
    EXPECT_EQ(parsed[setting.key]["value"], nlohmann::json::parse(setting.value)) << setting.key;
  }
  EXPECT_THAT(summarizeConfig(*config), HasSubstr("optimizer.type = \"AdamW\""));
  EXPECT_THAT(summarizeConfig(*config), Not(HasSubstr("zero_optimization.reduce_scatter")));
}
