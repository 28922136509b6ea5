//===- ForeignConfigTest.cpp - Configurations of other tools are named as such ------===//
#include "ConfigTestUtil.h"

#include "ds/Config/ForeignConfig.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::config;

static std::string whatOf(const std::string &text) {
  const std::optional<ForeignConfig> found = findForeignConfig(text);
  return found ? found->what : "";
}

/// The error of a configuration with this text.
static Error errorOf(const std::string &text) {
  ConfigSource source;
  source.path = "c.yml";
  source.text = text;
  Result<Config> config = readConfig(source);
  return config ? Error{ExitCode::Ok, "", ""} : config.error();
}

constexpr const char *kAccelerate = "compute_environment: LOCAL_MACHINE\ndeepspeed_config:\n"
                                    "  zero_stage: 3\ndistributed_type: DEEPSPEED\nnum_processes: 8\n";
constexpr const char *kNeox = "# GPT-2 pretraining setup\n{\n   \"pipe_parallel_size\": 1,\n"
                              "   \"model_parallel_size\": 1,\n   \"num_layers\": 12,\n}\n";

TEST(ForeignConfig, IsRecognised) {
  EXPECT_EQ(whatOf(kAccelerate), "a configuration of Accelerate's");
  EXPECT_EQ(whatOf("{\"compute_environment\": \"LOCAL_MACHINE\", \"num_processes\": 2}"),
            "a configuration of Accelerate's");
  EXPECT_EQ(whatOf(kNeox), "a configuration of GPT-NeoX, of a model and its training in one");
  EXPECT_EQ(whatOf("{\"pipe-parallel-size\": 1, \"num-layers\": 12}"),
            "a configuration of GPT-NeoX, of a model and its training in one");
  EXPECT_EQ(whatOf("# of ours\n\ntrain_batch_size: 8\n"), "YAML");
  EXPECT_EQ(whatOf("---\ntrain_batch_size: 8\n"), "YAML");
  EXPECT_EQ(whatOf("optimizer:\n  type: Adam\n"), "YAML");
}

TEST(ForeignConfig, JsonAndItsMistakesAreNone) {
  for (const char *text : {"", "{}", "{\"train_batch_size\": 8}", "{train_batch_size: 8}",
                           "{\"num_layers\": 12}", "[1]", "text", "\"a\": 1", "http://a/b", ":", "a:b"})
    EXPECT_EQ(whatOf(text), "") << text;
}

TEST(ForeignConfig, ReadingOneSaysWhatItIs) {
  Error error = errorOf(kAccelerate);
  EXPECT_EQ(error.code, ExitCode::Invalid);
  EXPECT_EQ(error.message,
            "c.yml: expects a configuration of DeepSpeed's, but got a configuration of Accelerate's");
  EXPECT_NE(error.hint.find("deepspeed_config_file"), std::string::npos);
  EXPECT_EQ(errorOf("train_batch_size: 8\n").message,
            "c.yml: expects a configuration of DeepSpeed's, but got YAML");
  EXPECT_NE(errorOf(kNeox).message.find("GPT-NeoX"), std::string::npos);
  EXPECT_EQ(errorOf("{\"train_batch_size\": 8}").code, ExitCode::Ok);
}
