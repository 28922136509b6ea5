//===- SourceTest.cpp - Where a configuration comes from ---------------------------===//
//
// Files, base64 and --set.
//
//===---------------------------------------------------------------------------===//
#include "ConfigTestUtil.h"

#include <cstdio>
#include <fstream>

using namespace ds;
using namespace ds::config;
using testing::HasSubstr;

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

TEST(Set, FillsAnEmptySection) {
  EXPECT_EQ(valueOf(read("{train_batch_size: 8, optimizer: null}", {"optimizer.type=SGD"}), "optimizer.type"),
            "\"SGD\"");
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
