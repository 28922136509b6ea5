//===- ModelConfigTest.cpp - Which texts a model may bring along -----------------===//
#include "ds/Support/ModelConfig.h"

#include <gtest/gtest.h>

#include <string>

namespace ds {
namespace {

TEST(ModelConfig, IsOneObjectThatEverybodyReads) {
  EXPECT_TRUE(isModelConfig(" {\"model_type\": \"gpt2\", \"name\": \"\u00e9\"}\n"));
  EXPECT_TRUE(isModelConfig("{}"));
  EXPECT_FALSE(isModelConfig(""));
  EXPECT_FALSE(isModelConfig(" \n"));
  EXPECT_FALSE(isModelConfig("[1]"));
  EXPECT_FALSE(isModelConfig("{} {}"));
  EXPECT_FALSE(isModelConfig("{\"a\": 1, // so much\n}"));
  EXPECT_FALSE(isModelConfig("{\"a\": 1,}"));
  EXPECT_FALSE(isModelConfig("{\"a\": NaN}"));
  EXPECT_FALSE(isModelConfig("\xef\xbb\xbf{}")); // byte order mark
  EXPECT_FALSE(isModelConfig("{\"a\": \"\xff\"}"));
  EXPECT_FALSE(isModelConfig(std::string("{}\0", 3)));
}

TEST(ModelConfig, IsBoundedInLengthAndNotInDepth) {
  EXPECT_FALSE(isModelConfig("{" + std::string(kMaxModelConfigBytes, ' ') + "}"));
  const size_t deep = 1 << 20; // a stack would not hold so many calls
  EXPECT_TRUE(isModelConfig("{\"a\": " + std::string(deep, '[') + std::string(deep, ']') + "}"));
}

} // namespace
} // namespace ds
