//===- KeysTest.cpp - The key table is whole and agrees with the documentation --------===//
//
// Properties that every row has, so that adding one cannot go wrong quietly.
//
//===---------------------------------------------------------------------------===//
#include "Keys.h"
#include "ConfigTestUtil.h"
#include "Resolve.h"

#include <fstream>
#include <set>
#include <sstream>

using namespace ds;
using namespace ds::config;

TEST(Keys, DefaultsPassTheirOwnChecks) {
  for (const Key &key : keyTable()) {
    const Value &fallback = defaultValue(key); // asserts that it parses and passes
    EXPECT_EQ(fallback.is(Value::Kind::Null), key.fallback == "null") << key.path;
    EXPECT_FALSE(key.note.empty()) << key.path;
  }
}

TEST(Keys, OfOursTheReferenceSaysSo) {
  for (const Key &key : keyTable())
    EXPECT_EQ(key.isOwn, key.note.find("not DeepSpeed's") != std::string_view::npos) << key.path;
}

TEST(Keys, PathsAreUniqueForEveryType) {
  std::set<std::string> seen;
  for (const Key &key : keyTable()) {
    if (key.only.empty()) {
      EXPECT_TRUE(seen.insert(std::string(key.path)).second) << key.path;
      EXPECT_EQ(findKey(key.path), key.path.find('*') == std::string_view::npos ? &key : findKey(key.path));
    }
    for (std::string_view type : splitAt(key.only, ' ')) {
      EXPECT_TRUE(seen.insert(std::string(key.path) + " " + std::string(type)).second)
          << key.path << " " << type;
      EXPECT_EQ(findKey(key.path, type), &key) << key.path;
    }
  }
}

/// Whether a row above decides if `detail` speaks: a switch or section of the same block that is refused or
/// noted.
static bool hasSwitch(const Key &detail) {
  for (const Key &key : keyTable()) {
    if (key.status != KeyStatus::Refused && key.status != KeyStatus::Noted)
      continue;
    std::string_view block = key.path;
    if (key.kind != KeyKind::Section)
      block = block.substr(0, std::min(block.rfind('.'), block.size()));
    if (block.ends_with(".shared_parameters"))
      block.remove_suffix(std::string_view(".shared_parameters").size());
    bool switches =
        key.kind == KeyKind::Section || key.path.ends_with(".enabled") || key.path.ends_with(".device");
    if (switches && detail.path.starts_with(block) && detail.path.substr(block.size()).starts_with("."))
      return true;
  }
  return false;
}

TEST(Keys, DetailsHangOnASwitchThatIsNotYetReal) {
  // A switch that becomes Honoured must take its details with it.
  for (const Key &key : keyTable())
    EXPECT_TRUE(key.status != KeyStatus::Detail || hasSwitch(key)) << key.path;
}

TEST(Keys, NearestFindsTypos) {
  const std::pair<const char *, const char *> cases[] = {
      {"grandient_accumulation_steps", "gradient_accumulation_steps"}, // DeepSpeed's own tests have this one,
      {"torch_autocast.enable", "torch_autocast.enabled"},             // this one
      {"flops_profiler.step", "flops_profiler.profile_step"},          // and this one
      {"train_batchsize", "train_batch_size"},
      {"zero_optimisation", "zero_optimization"},
      {"zero_optimization.stge", "zero_optimization.stage"},
      {"zero_optimization.offload_optimizer.devcie", "zero_optimization.offload_optimizer.device"},
      {"gradient_cliping", "gradient_clipping"},
      {"fp16.enable", "fp16.enabled"},
      {"optimiser", "optimizer"},
      {"zero_optimization.allgather_bucketsize", "zero_optimization.allgather_bucket_size"},
      {"stage", "zero_optimization.stage"}, // the right name in the wrong place
      {"loss_scale", "fp16.loss_scale"},
      {"overlap_comm", "zero_optimization.overlap_comm"},
      {"qqqqqqqqqqqqqqqq", ""},
  };
  for (auto [typo, meant] : cases)
    EXPECT_EQ(nearestKey(typo), meant) << typo;
  EXPECT_EQ(nearestKey("optimizer.params.weight_deacy", "AdamW"), "optimizer.params.weight_decay");
  EXPECT_EQ(nearestKey("scheduler.params.warmup_steps", "WarmupLR"), "scheduler.params.warmup_num_steps");
}

TEST(Keys, SwappedLettersAreOneEdit) {
  const std::string_view words[] = {"abxy", "bacd"}; // two replacements; one swap
  EXPECT_EQ(nearestWord("abcd", words), "bacd");
}

TEST(Keys, DocumentationIsGenerated) {
  std::stringstream text;
  text << std::ifstream(DS_CONFIG_REFERENCE).rdbuf();
  EXPECT_THAT(text.str(), testing::EndsWith("\n" + keyReference()))
      << "run build/unittests/ds-config-reference docs/config.md";
}

TEST(Keys, EveryKeyIsReadableAtItsDefault) {
  // Rows without wildcards and types, whose default is not null: written out, they change nothing.
  std::string text = "{train_micro_batch_size_per_gpu: 1";
  std::vector<std::string> sets = {"optimizer.type=AdamW"};
  for (const Key &key : keyTable())
    if (key.only.empty() && key.fallback != "null" && key.path.find('*') == std::string_view::npos &&
        !key.path.starts_with("zero_optimization.zenflow") && !key.path.starts_with("sparse_attention") &&
        !key.path.starts_with("zero_optimization.zeropp_loco_param") &&
        !key.path.starts_with("checkpoint.writer"))
      sets.push_back(std::string(key.path) + "=" + std::string(key.fallback));
  EXPECT_GT(sets.size(), 200u);
  Result<Config> config = read(text + "}", sets);
  ASSERT_TRUE(config) << told(config);
  for (const Setting &setting : config->settings)
    EXPECT_EQ(setting.changed && setting.origin != Origin::Derived &&
                  setting.key != "train_micro_batch_size_per_gpu" && setting.key != "optimizer.type",
              false)
        << setting.key << " = " << setting.value;
  EXPECT_TRUE(refusedForProgram(*config).empty());
}
