//===- ChooseTokenTest.cpp - The next token, by its logits -----------------------------===//
#include "Sampling/ChooseToken.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace ds;
using namespace ds::rt;

namespace {

SampleOptions optionsOf(double temperature, uint64_t topK = 0, uint64_t seed = 0) {
  SampleOptions options;
  options.temperature = temperature;
  options.topK = topK;
  options.seed = seed;
  return options;
}

int64_t chosen(const std::vector<float> &logits, const SampleOptions &options, uint64_t index = 0) {
  const Result<int64_t> token = chooseToken(logits, options, index);
  EXPECT_TRUE(token) << token.error().message;
  return token ? *token : -1;
}

/// How often each token is drawn, of `draws`.
std::vector<double> shares(const std::vector<float> &logits, const SampleOptions &options, uint64_t draws) {
  std::vector<double> shares(logits.size());
  for (uint64_t index = 0; index < draws; ++index)
    shares[static_cast<size_t>(chosen(logits, options, index))] += 1.0 / static_cast<double>(draws);
  return shares;
}

TEST(ChooseToken, TakesTheFirstOfTheLikeliest) {
  EXPECT_EQ(chosen({1, 3, 2, 3}, optionsOf(0)), 1);
  EXPECT_EQ(chosen({-INFINITY, -5}, optionsOf(0)), 1);
}

TEST(ChooseToken, DrawsBySoftmax) {
  // exp(0), exp(1), exp(2) at temperature 1, and their roots at 2; 5 deviations of 10000 draws are 0.025.
  const std::vector<float> logits = {0, 1, 2};
  for (const double temperature : {1.0, 2.0}) {
    const std::vector<double> drawn = shares(logits, optionsOf(temperature), 10000);
    double total = 0;
    for (const float logit : logits)
      total += std::exp(logit / temperature);
    for (size_t token = 0; token < logits.size(); ++token)
      EXPECT_NEAR(drawn[token], std::exp(logits[token] / temperature) / total, 0.025) << token;
  }
}

TEST(ChooseToken, LeavesOutAllButTheTopK) {
  const std::vector<double> drawn = shares({0, 1, 2, 1.5F}, optionsOf(1, 2), 2000);
  EXPECT_EQ(drawn[0], 0);
  EXPECT_EQ(drawn[1], 0);
  EXPECT_GT(drawn[2], drawn[3]);
  EXPECT_GT(drawn[3], 0.2);
  // Equals of the last one stay; more than there are is all of them.
  EXPECT_GT(shares({1, 1, 0}, optionsOf(1, 1), 2000)[1], 0.4);
  EXPECT_GT(shares({1, 1, 0}, optionsOf(1, 9), 2000)[2], 0.1);
}

TEST(ChooseToken, NeverDrawsWhatHasNoWeight) {
  for (uint64_t index = 0; index < 1000; ++index)
    EXPECT_EQ(chosen({-INFINITY, 1, -INFINITY}, optionsOf(1), index), 1);
}

TEST(ChooseToken, IsAFunctionOfSeedAndIndex) {
  const std::vector<float> logits(1000, 0.0F);
  EXPECT_EQ(chosen(logits, optionsOf(1, 0, 7), 3), chosen(logits, optionsOf(1, 0, 7), 3));
  EXPECT_NE(chosen(logits, optionsOf(1, 0, 7), 3), chosen(logits, optionsOf(1, 0, 8), 3));
  EXPECT_NE(chosen(logits, optionsOf(1, 0, 7), 3), chosen(logits, optionsOf(1, 0, 7), 4));
}

TEST(ChooseToken, RefusesLogitsThatAreNotFinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float> &logits :
       {std::vector<float>{1, kNan}, {kNan, 1}, {INFINITY, 1}, {-INFINITY, -INFINITY}}) {
    const Result<int64_t> token = chooseToken(logits, optionsOf(0), 4);
    ASSERT_FALSE(token);
    EXPECT_EQ(token.error().code, ExitCode::Diverged);
    EXPECT_EQ(token.error().message, "token 5: a logit is not finite");
  }
}

} // namespace
