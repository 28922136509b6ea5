//===- MutationTest.cpp - Damaged configurations never crash the reader ---------------===//
//
// Every truncation and many random edits of a configuration that has every kind of value. The reader either
// accepts or says what is wrong; under the sanitizers this is a fuzz test with a fixed seed.
//
//===---------------------------------------------------------------------------===//
#include "ConfigTestUtil.h"

#include <random>

using namespace ds;
using namespace ds::config;

static const std::string kValid = R"({
  // a configuration with every kind of value
  "train_batch_size": 32, train_micro_batch_size_per_gpu: 4, 'gradient_accumulation_steps': 8e0,
  "optimizer": {"type": "Adam", "params": {"lr": 3e-4, "betas": [0.9, 0.95], "weight_decay": 1e-1}}, # note
  "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 100, "warmup_num_steps": "auto"}},
  "zero_optimization": {"stage": 2, "cpu_offload": false, "reduce_bucket_size": 5e8, "offload_param": null},
  "bfloat16": {"enabled": false}, /* block */
  "compression_training": {"row_pruning": {"different_groups": {"rp1": {"params": {"dense_ratio": 0.5}}}}},
  "comet": {"project": "caf\u00e9 \ud83d\ude00"},
  "pipeline": {"stages": "auto"},
})";

static void expectVerdict(const std::string &text) {
  Result<Config> config = read(text);
  if (config) {
    EXPECT_GT(config->batch.global, 0);
    (void)printConfig(*config, PrintFormat::Json);
    return;
  }
  EXPECT_EQ(config.error().code, ExitCode::Invalid) << text;
  EXPECT_FALSE(config.error().message.empty()) << text;
}

TEST(Mutation, TheOriginalIsValid) { EXPECT_EQ(told(read(kValid)), "ok"); }

TEST(Mutation, EveryTruncationIsRefused) {
  for (size_t length = 0; length < kValid.size(); ++length)
    EXPECT_FALSE(read(kValid.substr(0, length))) << length;
}

TEST(Mutation, EveryMissingByteHasAVerdict) {
  for (size_t i = 0; i < kValid.size(); ++i)
    expectVerdict(kValid.substr(0, i) + kValid.substr(i + 1));
}

TEST(Mutation, RandomEditsHaveAVerdict) {
  static const std::string kSpice = "{}[]:,\"'\\/#*-+.eE0189 \nautonullTrue\xC3\xFF";
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = kValid;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      size_t at = random() % text.size();
      switch (random() % 4) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text[at] = kSpice[random() % kSpice.size()];
        break;
      case 2:
        text.insert(at, 1, kSpice[random() % kSpice.size()]);
        break;
      default:
        text.erase(at, 1 + random() % 8);
      }
      if (text.empty())
        text = " ";
    }
    expectVerdict(text);
  }
}

TEST(Mutation, RandomSetsHaveAVerdict) {
  static const std::string kSpice = "zero_optimization.stage=3{}[]\"\\train.e";
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string set;
    for (unsigned length = random() % 40; length > 0; --length)
      set += kSpice[random() % kSpice.size()];
    Result<Config> config = read(kValid, {set});
    if (!config) {
      EXPECT_EQ(config.error().code, ExitCode::Invalid) << set;
    }
  }
}
