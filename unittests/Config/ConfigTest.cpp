//===- ConfigTest.cpp - Values, defaults and mistakes ------------------------------===//
//
// What a configuration resolves to, and what is said about one that cannot be resolved.
//
//===---------------------------------------------------------------------------===//
#include "ConfigTestUtil.h"

using namespace ds;
using namespace ds::config;
using testing::HasSubstr;
using testing::StartsWith;

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
  EXPECT_THAT(message("type: 'WarmupCosineLR', params: {total_num_steps: null}"),
              HasSubstr("is required by WarmupCosineLR"));
  EXPECT_THAT(message("type: 'OneCycle', params: {cycle_min_lr: 1}"),
              HasSubstr("\"scheduler.params.cycle_max_lr\" is required"));
  EXPECT_THAT(message("type: 'WarmupLr'"), HasSubstr("[did you mean \"WarmupLR\"?]"));
  EXPECT_THAT(message("type: 'WarmupLR', params: {warmup_num_steps: 0}"), HasSubstr("greater than 0"));
  EXPECT_THAT(message("type: 'WarmupLR', params: {warmup_type: 'cosine'}"),
              HasSubstr("expects \"log\" or \"linear\""));
  EXPECT_THAT(message("type: 'WarmupLR', params: {total_num_steps: 5}"), HasSubstr("for type \"WarmupLR\""));
}

TEST(Config, ScheduleOfAutoLengthEndsWithTheRun) {
  ConfigSource source{"c",
                      "{train_batch_size: 1, scheduler: {type: 'WarmupDecayLR', params: {total_num_steps: "
                      "'auto', warmup_num_steps: 4}}}",
                      {}};
  Result<Config> open = readConfig(source);
  ASSERT_TRUE(open) << told(open);
  EXPECT_EQ(open->schedule.totalNumSteps, Schedule::kStepsOfRun);
  EXPECT_THAT(noticesOf(open),
              HasSubstr("\"scheduler.params.total_num_steps\" is \"auto\" and is the number of "
                        "steps of the run: ds-run --steps\n"));
  EXPECT_THAT(noticesOf(open), Not(HasSubstr("is less than warmup_num_steps")));
  source.totalSteps = 200;
  Result<Config> known = readConfig(source);
  ASSERT_TRUE(known) << told(known);
  EXPECT_EQ(known->schedule.totalNumSteps, 200);
  EXPECT_THAT(noticesOf(known), HasSubstr("is \"auto\" and resolves to 200 (--steps)\n"));
  // A number of the file stands.
  source.text = "{train_batch_size: 1, scheduler: {type: 'WarmupCosineLR', params: {total_num_steps: 5000}}}";
  EXPECT_EQ(readConfig(source)->schedule.totalNumSteps, 5000);
}

TEST(Config, KeysThatDeepSpeedIgnoresAreNoted) {
  for (auto [members, words] :
       {std::pair("_comment: 'x'", "\"_comment\" is taken for a comment"),
        {"zero_optimization: {_why: 3}", "\"zero_optimization._why\" is taken for"},
        {"comms_config: {verbose: false}", "\"comms_config\" = {\"verbose\": false} has no"},
        {"monitor_config: {}", "DeepSpeed reads no such key"},
        {"cuda_visible_devices: '0,1'", "the variable CUDA_VISIBLE_DEVICES counts"},
        {"compile: {disable: false, backend: 'inductor'}", "\"compile.backend\" = "}}) {
    Result<Config> config = readMembers(members);
    EXPECT_THAT(noticesOf(config), HasSubstr(words)) << members << ": " << told(config);
    if (config) {
      EXPECT_TRUE(refusedForProgram(*config).empty()) << members;
    }
  }
  // What the compiler's block does have is still held to its type.
  EXPECT_THAT(told(readMembers("compile: {deepcompile: 1}")), HasSubstr("expects true or false"));
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
       "expects \"auto\" or an integer of at least 0, but got the number 1e19"},
      {"zero_optimization: {offload_param: {device: 'cup'}}",
       "expects \"none\", \"cpu\" or \"nvme\", but got the string \"cup\" [did you mean \"cpu\"?]"},
      {"communication_data_type: 'fp8'", "expects \"fp16\", \"bf16\" or \"fp32\""},
      {"data_types: {param_dtype: 'float64'}", "expects \"fp32\", \"fp16\", \"bf16\" or \"int8\""},
  };
  for (auto [members, message] : cases)
    EXPECT_THAT(told(readMembers(members)), HasSubstr(message)) << members;
}

TEST(Config, MessagesStayShort) {
  const std::string letter = "\xC3\xA4"; // two bytes, so that a cut may fall inside
  for (size_t padding : {0, 1}) {
    std::string text(padding, 'x');
    for (int i = 0; i < 1000; ++i)
      text += letter;
    Result<Config> config = readMembers("fp16: {enabled: '" + text + "'}");
    ASSERT_FALSE(config);
    EXPECT_LT(config.error().message.size(), 200u);
    EXPECT_THAT(config.error().message, testing::EndsWith(letter + "...\""));
  }
  EXPECT_THAT(told(readMembers("fp16: {enabled: {a: 1}}")), HasSubstr("but got an object {\"a\": 1}"));
}

TEST(Config, BlocksThatExistOnlyWhereGiven) {
  Result<Config> config = readMembers("zero_optimization: {stage: 3, zeropp_loco_param: {err_beta: 0.5}, "
                                      "zenflow: {topk_ratio: 0.2, update_interval: 4}}");
  ASSERT_TRUE(config) << told(config);
  EXPECT_EQ(config->zero.locoErrBeta, 0.5);
  EXPECT_EQ(config->zero.locoResetT, 1024);
  ASSERT_TRUE(config->zero.zenflow);
  EXPECT_EQ(config->zero.zenflow->topkRatio, 0.2);
  EXPECT_EQ(config->zero.zenflow->updateInterval, 4);
  EXPECT_EQ(config->zero.zenflow->selectInterval, std::nullopt); // "auto"
  EXPECT_FALSE(readMembers("zero_optimization: {zenflow: null}")->zero.zenflow);
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

TEST(Config, NamesOfOtherToolsLeadToTheKey) {
  const std::pair<const char *, const char *> cases[] = {
      {"optimizer: {type: 'AdamW', params: {learning_rate: 0.1}}", "did you mean \"optimizer.params.lr\"?"},
      {"learning_rate: 0.1", "did you mean \"optimizer.params.lr\"?"},
      {"optimizer: {type: 'SGD', params: {wd: 0.1}}", "did you mean \"optimizer.params.weight_decay\"?"},
      {"max_grad_norm: 1.0", "did you mean \"gradient_clipping\"?"},
      {"micro_batch_size: 4", "did you mean \"train_micro_batch_size_per_gpu\"?"},
      {"scheduler: {type: 'WarmupLR', params: {warmup_steps: 4}}",
       "did you mean \"scheduler.params.warmup_num_steps\"?"},
      {"optimizer: {type: 'Lion', params: {quux_of_zebras: 1}}",
       "[Lion has lr, betas, weight_decay and fp32_optimizer_states]"},
  };
  for (auto [members, message] : cases)
    EXPECT_THAT(told(readMembers(members)), HasSubstr(message)) << members;
}

// A warning would let it train with the default of what was meant, which DeepSpeed's optimizers refuse too.
TEST(Config, UnknownParametersAreRefusedWhateverIsAllowed) {
  for (const char *params : {"optimizer: {type: 'AdamW', params: {learning_rate: 0.1}}",
                             "scheduler: {type: 'WarmupLR', params: {min_lr_of_all: 0.1}}"}) {
    Result<Config> config =
        readConfig({"c", std::string("{train_batch_size: 1, ") + params + "}", {}, 1, true});
    EXPECT_THAT(told(config), HasSubstr("unknown key"));
    EXPECT_THAT(told(config), Not(HasSubstr("allow-unknown-keys")));
  }
}

TEST(Config, NoticesSayWhatCostsMemory) {
  const auto costly = [](const Result<Config> &config) {
    std::string out;
    for (const Notice &notice : config->notices)
      out += notice.isCostly ? notice.text + "\n" : "";
    return out;
  };
  Result<Config> both = read("{train_batch_size: 1, fp16: {enabled: 'auto'}, bf16: {enabled: 'auto'}, "
                             "gradient_clipping: 'auto', zero_optimization: {stage: 2}}");
  ASSERT_TRUE(both) << told(both);
  EXPECT_THAT(costly(both), HasSubstr("\"fp16.enabled\" is \"auto\" and resolves to false: all is fp32"));
  EXPECT_THAT(costly(both), HasSubstr("\"zero_optimization.stage\" = 2 has no effect"));
  EXPECT_THAT(costly(both), Not(HasSubstr("bf16.enabled\" is")));
  EXPECT_THAT(costly(both), Not(HasSubstr("gradient_clipping")));
  Result<Config> one = read("{train_batch_size: 1, fp16: {enabled: 'auto'}, bf16: {enabled: true}}");
  ASSERT_TRUE(one) << told(one);
  EXPECT_EQ(costly(one), "");
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
