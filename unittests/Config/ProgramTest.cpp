//===- ProgramTest.cpp - Refusals, notices and printing ----------------------------===//
//
// What a program does not have yet is refused by name; what is accepted is shown with its origin.
//
//===---------------------------------------------------------------------------===//
#include "ConfigTestUtil.h"

#include <nlohmann/json.hpp>

using namespace ds;
using namespace ds::config;
using testing::HasSubstr;
using testing::Not;

TEST(Program, RefusesByName) {
  const std::pair<const char *, const char *> cases[] = {
      {"amp: {enabled: true}", "amp.enabled"},
      {"torch_autocast: {enabled: true}, bf16: {enabled: true}", "torch_autocast.enabled"},
      {"torch_autocast: {enabled: true, dtype: 'fp32'}", "torch_autocast.dtype"},
      {"data_types: {grad_accum_dtype: 'int8'}, zero_optimization: {stage: 1}",
       "data_types.grad_accum_dtype"},
      {"data_types: {buffer_dtype: 'int8'}", "data_types.buffer_dtype"},
      {"zero_optimization: {stage: 3, zenflow: {}}", "zero_optimization.zenflow"},
      {"zero_optimization: {stage: 3, zero_quantized_gradients: true}",
       "zero_optimization.zero_quantized_gradients"},
      {"zero_optimization: {stage: 3, mics_shard_size: 1, zero_hpz_partition_size: 2}",
       "zero_optimization.zero_hpz_partition_size"},
      {"expert_parallel: {enabled: true}", "expert_parallel.enabled"},
      {"curriculum_learning: {enabled: true}", "curriculum_learning.enabled"},
      {"compression_training: {row_pruning: {shared_parameters: {enabled: true}}}",
       "compression_training.row_pruning.shared_parameters.enabled"},
      {"sparse_attention: {mode: 'fixed'}", "sparse_attention"},
      {"zero_optimization: {offload_optimizer: {device: 'nvme', nvme_path: '/n', super_offload: true}}",
       "zero_optimization.offload_optimizer.super_offload"},
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

TEST(Program, OffloadsToTheHostAndToStorage) {
  for (const char *members :
       {"zero_optimization: {stage: 2, offload_optimizer: {device: 'cpu'}}",
        "zero_optimization: {stage: 3, offload_param: {device: 'cpu'}}",
        "zero_optimization: {offload_optimizer: {device: 'nvme', nvme_path: '/n'}}",
        "zero_optimization: {stage: 3, offload_param: {device: 'nvme', nvme_path: '/n'}}",
        "zero_optimization: {offload_optimizer: {device: 'cpu', super_offload: true}}",
        "compile: {offload_opt_states: true, offload_parameters: true}"}) {
    Result<Config> config = readMembers(members);
    ASSERT_TRUE(config) << told(config);
    EXPECT_TRUE(checkForProgram(*config)) << members;
  }
}

TEST(Program, StorageHasADirectoryForParametersAndOneForTheRest) {
  struct {
    const char *optimizer, *parameters, *states, *parameterPath;
  } cases[] = {
      {"device: 'nvme', nvme_path: '/n'", "device: 'nvme', nvme_path: '/m'", "/n", "/m"},
      {"device: 'nvme', nvme_path: '/n'", "device: 'nvme', nvme_path: '/n'", "/n", "/n"},
      {"device: 'cpu'", "device: 'nvme', nvme_path: '/m'", "/m", "/m"},
      {"device: 'nvme', nvme_path: '/n'", "device: 'cpu'", "/n", "/n"},
      {"device: 'none', nvme_path: '/n'", "device: 'nvme', nvme_path: '/m'", "/n", "/m"},
      {"device: 'cpu'", "device: 'cpu'", "", ""},
  };
  for (const auto &[optimizer, parameters, states, parameterPath] : cases) {
    Result<Config> config = readMembers("zero_optimization: {stage: 3, offload_optimizer: {" +
                                        std::string(optimizer) + "}, offload_param: {" + parameters + "}}");
    ASSERT_TRUE(config) << told(config);
    EXPECT_TRUE(checkForProgram(*config)) << parameters;
    EXPECT_EQ(config->zero.statePath(), states);
    EXPECT_EQ(config->zero.parameterPath(), parameterPath);
  }
}

TEST(Program, RefusesParallelismThatIsNotOfData) {
  auto keys = [](const char *members, int64_t ranks) {
    std::string out;
    Result<Config> config = readMembers(members, ranks);
    if (!config)
      return told(config);
    for (const Refusal &refusal : refusedForProgram(*config))
      out += refusal.key + "=" + refusal.value + " ";
    return out;
  };
  EXPECT_EQ(keys("", 2), "");
  EXPECT_EQ(keys("zero_optimization: {stage: 3}", 1024), "");
  EXPECT_EQ(keys("pipeline: {stages: 2, partition: 'uniform', schedule: 'gpipe'}", 2), "");
  EXPECT_EQ(keys("pipeline: {stages: 2, schedule: 'zb-h1'}", 2), "pipeline.schedule=\"zb-h1\" ");
  EXPECT_EQ(keys("pipeline: {stages: 2}, skip_bad_steps: true", 2), "skip_bad_steps=true ");
  EXPECT_EQ(keys("tensor_parallel: {autotp_size: 2, sequence_parallel: true}", 2), "");
  EXPECT_EQ(keys("tensor_parallel: {tp: {tp_size: 2}}", 4), "");
  EXPECT_EQ(keys("sequence_parallel_size: 2, seq_parallel_communication_data_type: 'bf16'", 2), "");
  // Lamb needs whole parameters: on one rank.
  const char *lamb = "optimizer: {type: 'Lamb'}, zero_allow_untested_optimizer: true, "
                     "zero_optimization: {stage: 1}";
  EXPECT_EQ(keys(lamb, 2), "optimizer.type=\"Lamb\" ");
  EXPECT_EQ(keys(lamb, 1), "");
  EXPECT_EQ(keys("optimizer: {type: 'Lamb'}", 2), "optimizer.type=\"Lamb\" ");
  EXPECT_EQ(keys("optimizer: {type: 'Lamb'}", 1), "");
  EXPECT_EQ(keys("optimizer: {type: 'Lamb'}, tensor_parallel: {autotp_size: 2}", 2),
            "optimizer.type=\"Lamb\" ");
  EXPECT_EQ(keys("pipeline: {stages: 1}, tensor_parallel: {autotp_size: 1}, sequence_parallel_size: 1", 1),
            "");
}

TEST(Program, OffloadsWhateverOptimizerTheConfigurationNames) {
  // DeepSpeed forbids only what a script hands in: its own line of the check is on the client's optimizer.
  for (const char *optimizer :
       {"{type: 'AdamW', params: {torch_adam: true}}", "{type: 'Adam', params: {torch_adam: true}}",
        "{type: 'SGD'}", "{type: 'Lamb'}", "{type: 'Adagrad'}", "{type: 'Lion'}"}) {
    Result<Config> config =
        readMembers("zero_allow_untested_optimizer: true, optimizer: " + std::string(optimizer) +
                    ", zero_optimization: {stage: 2, offload_optimizer: {device: 'cpu'}}");
    ASSERT_TRUE(config) << optimizer << ": " << told(config);
    EXPECT_TRUE(checkForProgram(*config)) << optimizer;
    EXPECT_EQ(config->zero.offloadOptimizer.device, Home::Cpu);
  }
}

namespace {
/// Keys of a block that is off, why they say nothing, and what turns the block on.
struct OffBlock {
  const char *members, *key, *why, *on;
  int64_t ranks = 1;
};
} // namespace

TEST(Program, PartitionsOfNoEffectSayWhy) {
  const std::string node = "zero_optimization.zero_hpz_partition_size",
                    gather = "zero_optimization.mics_hierarchical_params_gather";
  const std::tuple<const char *, int64_t, std::string, const char *> cases[] = {
      {"stage: 2, zero_hpz_partition_size: 4", 8, node, "stage 3 alone has a secondary partition"},
      {"stage: 3, zero_hpz_partition_size: 4", 1, node, "there is one data-parallel rank"},
      {"stage: 1, mics_hierarchical_params_gather: true", 8, gather, "MiCS is a form of stage 3"},
      {"stage: 3, mics_hierarchical_params_gather: true", 8, gather, "MiCS is off"},
      {"stage: 3, mics_shard_size: 4, mics_hierarchical_params_gather: true", 1, gather,
       "there is one data-parallel rank"},
      {"stage: 3, mics_shard_size: 4, mics_hierarchical_params_gather: true", 8, gather,
       "no group of mics_shard_size"},
  };
  for (const auto &[members, ranks, key, why] : cases) {
    Result<Config> config = readMembers("zero_optimization: {" + std::string(members) + "}", ranks);
    ASSERT_TRUE(config) << members << ": " << told(config);
    EXPECT_TRUE(refusedForProgram(*config).empty()) << members;
    EXPECT_THAT(noticesOf(config), HasSubstr("\"" + key + "\" = ")) << members;
    EXPECT_THAT(noticesOf(config), HasSubstr("has no effect here: " + std::string(why))) << members;
  }
  Result<Config> config = readMembers("zero_optimization: {stage: 3, zero_hpz_partition_size: 4}", 8);
  ASSERT_TRUE(config) << told(config);
  EXPECT_TRUE(refusedForProgram(*config).empty());
  EXPECT_THAT(noticesOf(config), Not(HasSubstr("has no effect here")));
}

TEST(Program, KeysOfABlockThatIsOffRefuseNothing) {
  const OffBlock cases[] = {
      {"pipeline: {virtual_stages: 2}", "pipeline.virtual_stages", "there is one pipeline stage",
       "zero_optimization: {stage: 1}, pipeline: {stages: 2, virtual_stages: 2}", 2},
      {"tensor_parallel: {injection_policy_tuple: ['x']}", "tensor_parallel.injection_policy_tuple",
       "there is one tensor-parallel rank",
       "tensor_parallel: {autotp_size: 2, injection_policy_tuple: ['x']}", 2},
      {"use_data_before_expert_parallelism: true", "use_data_before_expert_parallelism",
       "expert_parallel is off", "expert_parallel: {enabled: true}"},
      {"zero_optimization: {stage: 2, zero_quantized_weights: true}",
       "zero_optimization.zero_quantized_weights", "stage 3 alone",
       "zero_optimization: {stage: 3, zero_quantized_weights: true}"},
      {"zero_optimization: {stage: 3, zeropp_loco_param: {}}", "zero_optimization.zeropp_loco_param",
       "gradients are not quantised",
       "zero_optimization: {stage: 3, zeropp_loco_param: {}, zero_quantized_gradients: true}"},
      {"aio: {use_gds: true}", "aio.use_gds", "nothing is on NVMe",
       "aio: {use_gds: true}, zero_optimization: {offload_optimizer: {device: 'nvme', nvme_path: '/n'}}"},
      {"fp16: {enabled: false, fp16_master_weights_and_grads: true}", "fp16.fp16_master_weights_and_grads",
       "fp16 is off",
       "fp16: {enabled: true, fp16_master_weights_and_grads: true}, "
       "zero_optimization: {stage: 2, offload_optimizer: {device: 'cpu'}}"},
  };
  for (const OffBlock &block : cases) {
    Result<Config> off = readMembers(block.members), on = readMembers(block.on, block.ranks);
    ASSERT_TRUE(off && on) << block.members << ": " << told(off) << told(on);
    EXPECT_TRUE(refusedForProgram(*off).empty()) << block.members;
    EXPECT_THAT(noticesOf(off), HasSubstr("c:2:")) << block.members;
    EXPECT_THAT(noticesOf(off), HasSubstr("\"" + std::string(block.key) + "\" = ")) << block.members;
    EXPECT_THAT(noticesOf(off), HasSubstr("has no effect here: " + std::string(block.why)));
    EXPECT_FALSE(refusedForProgram(*on).empty()) << block.on;
  }
  EXPECT_THAT(noticesOf(readMembers("seq_parallel_communication_data_type: 'bf16'")),
              HasSubstr("has no effect here: sequences are not divided among ranks"));
  // The switches themselves say nothing where they are off.
  Result<Config> config =
      readMembers("sequence_parallel_size: 1, pipeline: {stages: 1}, tensor_parallel: {autotp_size: 1}, "
                  "quantize_training: {enabled: false, quantize_verbose: true}, "
                  "zero_optimization: {stage: 3, zero_hpz_partition_size: 0, mics_shard_size: 0}");
  ASSERT_TRUE(config) << told(config);
  EXPECT_TRUE(checkForProgram(*config)) << checkForProgram(*config).error().message;
  EXPECT_THAT(noticesOf(config), Not(HasSubstr("has no effect here")));
  EXPECT_FALSE(refusedForProgram(*readMembers("quantize_training: {enabled: true}")).empty());
  // A mode that is off asks for no masters.
  config = readMembers("bf16: {enabled: false, bf16_master_weights_and_grads: true}");
  ASSERT_TRUE(config) << told(config);
  EXPECT_FALSE(config->precision.bf16.masterWeightsAndGrads);
  EXPECT_THAT(noticesOf(config),
              HasSubstr("bf16_master_weights_and_grads\" = true has no effect here: bf16"));
}

TEST(Program, EntriesOfLayerSpecsAreChecked) {
  const std::pair<const char *, const char *> cases[] = {
      {"5", "\"tensor_parallel.partition_config.layer_specs\" expects a list, but got the number 5"},
      {"['x']", "layer_specs[0]\" expects an object, but got the string \"x\""},
      {"[{patterns: ['a']}, {partition_type: 'row'}]", "layer_specs[1]\" expects \"patterns\", but got none"},
      {"[{patterns: 'a'}]", "expects a list of strings for \"patterns\", but got the string \"a\""},
      {"[{patterns: ['(']}]", "has the pattern \"(\", which is no regular expression"},
      {"[{patterns: ['a'], partition_type: 'rows'}]",
       "expects \"column\", \"row\" or \"skip\" for \"partition_type\", but got the string \"rows\""},
      {"[{patterns: ['a'], shape: [[3, 0], -1]}]", "in \"shape\", but got"},
      {"[{patterns: ['a'], shape: [-2]}]", "in \"shape\", but got the number -2"},
      {"[{patterns: ['a'], partition_dim: -1}]", "expects the number of a dimension for \"partition_dim\""},
      {"[{patterns: ['a'], pattern: ['b']}]", "has no key \"pattern\""}};
  for (auto [specs, message] : cases)
    EXPECT_THAT(told(readMembers("tensor_parallel: {autotp_size: 2, partition_config: {layer_specs: " +
                                     std::string(specs) + "}}",
                                 2)),
                HasSubstr(message));
}

TEST(Program, GroupsThatDoNotDivideNodesAreWarnedOf) {
  auto notices = [](const char *size, int64_t ranksPerNode) {
    ConfigSource source;
    source.path = "c";
    source.text = "{\"train_micro_batch_size_per_gpu\": 1, \"tensor_parallel\": {\"autotp_size\": " +
                  std::string(size) + "}}";
    source.ranks = 48;
    source.ranksPerNode = ranksPerNode;
    return noticesOf(readConfig(source));
  };
  EXPECT_THAT(notices("16", 8),
              HasSubstr("\"tensor_parallel.autotp_size\" = 16 does not divide the 8 ranks of a node"));
  EXPECT_THAT(notices("4", 6), HasSubstr("does not divide the 6 ranks of a node"));
  EXPECT_THAT(notices("8", 8), Not(HasSubstr("of a node")));
  EXPECT_THAT(notices("16", 48), Not(HasSubstr("of a node"))); // all ranks are one node's
}

TEST(Program, AcceptsFp32ByName) {
  Result<Config> config =
      readMembers("communication_data_type: 'fp32', data_types: {grad_accum_dtype: 'float32', "
                  "param_dtype: 'torch.float32', buffer_dtype: 'fp32'}");
  ASSERT_TRUE(config) << told(config);
  EXPECT_TRUE(checkForProgram(*config)) << checkForProgram(*config).error().message;
}

TEST(Program, AcceptsPrecision) {
  for (const char *members :
       {"fp16: {enabled: true, loss_scale: 128}",
        "fp16: {enabled: true, hysteresis: 4, loss_scale_window: 10}",
        "bf16: {enabled: true, check_grad_overflow: false}",
        "bf16: {enabled: true}, data_types: {grad_accum_dtype: 'fp32', buffer_dtype: 'bf16'}",
        "torch_autocast: {enabled: true, dtype: 'fp16'}",
        "zero_optimization: {stage: 1}, bf16: {enabled: true, bf16_master_weights_and_grads: true, "
        "bf16_optimizer_states: true}"}) {
    Result<Config> config = readMembers(members);
    ASSERT_TRUE(config) << told(config);
    EXPECT_TRUE(checkForProgram(*config)) << members << ": " << checkForProgram(*config).error().message;
  }
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
  EXPECT_THAT(notices,
              HasSubstr("c:2:78: \"wall_clock_breakdown\" = true has no effect here: ds-run --trace"));
  EXPECT_EQ(config->watch.stepsPerPrint, 10);
  EXPECT_EQ(config->watch.tensorboard.jobName, "x");
  EXPECT_TRUE(config->watch.tensorboard.enabled);
  EXPECT_FALSE(config->watch.csv.enabled);
  EXPECT_THAT(notices, HasSubstr("\"zero_optimization.stage\" = 2 has no effect on one data-parallel rank"));
  EXPECT_THAT(notices, HasSubstr("\"zero_allow_untested_optimizer\" = true has no effect"));
  EXPECT_THAT(notices, Not(HasSubstr("gradient_clipping")));
}

TEST(Program, SaysWhatTheWriterOfCheckpointsDoesInstead) {
  const std::pair<const char *, const char *> cases[] = {
      {"type: 'mock'", "written as by fast"},
      {"io_buffer_size: 1048576", "4 MiB, and each rank has eight"},
      {"io_buffer_double: false", "four blocks are filled while four are written"},
      {"show_statistics: true", "bytes and seconds of every save"},
      {"data_parallel: 'machine'", "divide it among themselves"},
      {"decoupled: true", "--save-mode async"},
      {"io_multiplier: 2", "four threads of each rank"},
  };
  for (auto [member, words] : cases) {
    Result<Config> config = readMembers("checkpoint: {writer: {" + std::string(member) + "}}");
    ASSERT_TRUE(config) << told(config);
    EXPECT_TRUE(checkForProgram(*config)) << member;
    EXPECT_THAT(noticesOf(config), HasSubstr(words)) << member;
  }
}

TEST(Program, NodesMayKeepCheckpointsForThemselves) {
  EXPECT_FALSE(readMembers("")->nodeLocalSaves);
  const Result<Config> config = readMembers("checkpoint: {use_node_local_storage: true}");
  EXPECT_TRUE(config->nodeLocalSaves);
  EXPECT_TRUE(checkForProgram(*config));
}

TEST(Program, RanksThatShareSequencesShardStates) {
  auto notices = [](int64_t sp, int64_t ranks) {
    Result<Config> config =
        readMembers("zero_optimization: {stage: 3}, sequence_parallel_size: " + std::to_string(sp), ranks);
    EXPECT_TRUE(config) << told(config);
    return noticesOf(config);
  };
  const char *words = "has no effect on one data-parallel rank";
  EXPECT_THAT(notices(8, 8), Not(HasSubstr(words))); // dp 1, sp 8
  EXPECT_THAT(notices(4, 8), Not(HasSubstr(words)));
  EXPECT_THAT(notices(1, 1), HasSubstr(words));
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

TEST(Unavailable, WhatChangesNoNumberIsLeftOutAloud) {
  auto readIgnoring = [](const char *members) {
    return readIgnoringUnavailable(
        {"c", "{train_micro_batch_size_per_gpu: 1,\n" + std::string(members) + "}", {}});
  };
  Result<Config> config = readIgnoring(
      "zero_optimization: {stage: 3, offload_optimizer: {device: 'cpu'}, "
      "zero_hpz_partition_size: 1}, autotuning: {enabled: true}, hybrid_engine: {enabled: true}, "
      "activation_checkpointing: {number_checkpoints: 4}");
  ASSERT_TRUE(config) << told(config);
  EXPECT_TRUE(refusedForProgram(*config).empty()) << told(Result<Config>(checkForProgram(*config).error()));
  EXPECT_EQ(config->zero.stage, 3);
  // Told before anything else, a line each.
  ASSERT_GE(config->notices.size(), 2u);
  for (int k = 0; k < 2; ++k)
    EXPECT_THAT(config->notices[k].text, testing::StartsWith("IGNORED: c:2:"));
  EXPECT_THAT(noticesOf(config),
              HasSubstr("\"hybrid_engine.enabled\" = true changes no number, and is left out: "));
  // What programs have stays.
  EXPECT_EQ(config->activationCheckpointing.numberCheckpoints, 4);
  EXPECT_EQ(config->zero.offloadOptimizer.device, Home::Cpu);
  // So does what changes numbers, to be refused.
  for (const char *members :
       {"zero_optimization: {stage: 3, zero_quantized_weights: true}", "amp: {enabled: true}",
        "zero_optimization: {zenflow: {}}", "optimizer: {type: 'OneBitAdam'}",
        "curriculum_learning: {enabled: true}", "progressive_layer_drop: {enabled: true}"}) {
    config = readIgnoring(members);
    ASSERT_TRUE(config) << members << ": " << told(config);
    EXPECT_FALSE(refusedForProgram(*config).empty()) << members;
    EXPECT_THAT(noticesOf(config), Not(HasSubstr("IGNORED"))) << members;
  }
}
