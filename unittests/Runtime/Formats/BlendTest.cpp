//===- BlendTest.cpp - Weights, shares and the order of a blend ----------------===//

#include "Data/Blend.h"

#include "gmock/gmock.h"

#include <numeric>
#include <random>

using namespace ds;
using namespace ds::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::vector<uint32_t> shares(std::vector<std::string> texts) {
  std::vector<Weight> weights;
  for (const std::string &text : texts) {
    Result<Weight> weight = parseWeight(text);
    EXPECT_TRUE(weight) << text;
    weights.push_back(*weight);
  }
  Result<std::vector<uint32_t>> result = sharesOf(weights);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : std::vector<uint32_t>();
}

/// After n positions each source is less than 1 from its share of n, for each n of a period, and the samples
/// that places name are each source's 0, 1, 2, ...
void expectBalanced(const std::vector<uint32_t> &shares) {
  const Blend blend(shares);
  const int64_t period = std::accumulate(shares.begin(), shares.end(), int64_t(0));
  ASSERT_EQ(blend.period(), period);
  std::vector<int64_t> given(shares.size());
  for (int64_t n = 0; n < period; ++n) {
    const Blend::Place place = blend(Position(n));
    ASSERT_LT(place.source, shares.size());
    ASSERT_EQ(int64_t(place.sample), given[place.source]++);
    for (size_t k = 0; k < shares.size(); ++k) { // |given - (n + 1) share / period| < 1
      ASSERT_LT(std::abs(given[k] * period - (n + 1) * shares[k]), period)
          << "source " << k << " of share " << shares[k] << " after " << n + 1 << " of " << period;
      ASSERT_EQ(int64_t(blend.count(k, Position(n + 1))), given[k]);
    }
  }
  for (size_t k = 0; k < shares.size(); ++k)
    ASSERT_EQ(given[k], shares[k]); // so that the next periods keep the bound
}

TEST(BlendTest, CountsAreWithinOneOfTheWeights) {
  for (const auto &some : std::vector<std::vector<uint32_t>>{{1},
                                                             {1, 1},
                                                             {7, 3},
                                                             {1, 99},
                                                             {5, 3, 2},
                                                             {1, 1, 1, 1, 1},
                                                             {500, 499, 1},
                                                             {400, 400, 1, 1, 1, 1, 97, 99}})
    expectBalanced(some);
  // What a rounded clock per source (Webster's order) gets wrong: many small ones beside a large one.
  std::vector<uint32_t> many(30, 1);
  many.push_back(700);
  expectBalanced(many);
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> drawn(1 + random() % 12);
    for (uint32_t &share : drawn)
      share = 1 + random() % (random() % 2 ? 10 : 300);
    expectBalanced(drawn);
  }
}

TEST(BlendTest, LongestPeriod) {
  std::vector<uint32_t> wide = {524287, 131071, 8191, 127, 3};
  wide.push_back(kLongestPeriod - std::accumulate(wide.begin(), wide.end(), 0u));
  expectBalanced(wide);
}

TEST(BlendTest, PositionsFarOff) {
  const Blend blend({7, 3});
  const Position far = (Position(1) << 100) / 10 * 10; // whole periods
  for (uint32_t i = 0; i < 25; ++i) {
    EXPECT_EQ(blend(far + i).source, blend(i).source);
    EXPECT_TRUE(blend(far + i).sample == far / 10 * blend.share(blend(i).source) + blend(i).sample);
  }
}

TEST(BlendTest, SharesAreTheWeightsRatio) {
  EXPECT_THAT(shares({"0.7", "0.3"}), ElementsAre(7, 3));
  EXPECT_THAT(shares({"70", "3e1"}), ElementsAre(7, 3));
  EXPECT_THAT(shares({"2.5E-3"}), ElementsAre(1));
  EXPECT_THAT(shares({"1e5", "100000", "0.5e+5"}), ElementsAre(2, 2, 1));
  EXPECT_THAT(shares({"0.0131", "0.9869"}), ElementsAre(131, 9869));
  EXPECT_THAT(shares({".5", "1."}), ElementsAre(1, 2));
  EXPECT_THAT(shares({"0.000001", "0.999999"}), ElementsAre(1, 999999)); // exact to 2^20
}

// Weights that are counts of tokens.
TEST(BlendTest, FineSharesAreRounded) {
  const std::vector<uint64_t> counts = {123456789012, 98765432101, 555555555};
  std::vector<uint32_t> rounded =
      shares({std::to_string(counts[0]), std::to_string(counts[1]), std::to_string(counts[2])});
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double period = std::accumulate(rounded.begin(), rounded.end(), 0.0);
  EXPECT_LE(period, kLongestPeriod);
  for (size_t k = 0; k < counts.size(); ++k)
    EXPECT_LT(std::abs(rounded[k] / period - double(counts[k]) / all), 1.0 / kLongestPeriod);
}

TEST(BlendTest, WeightsThatVanish) {
  auto refusal = [](std::vector<Weight> weights) {
    Result<std::vector<uint32_t>> result = sharesOf(weights);
    EXPECT_FALSE(result);
    return result ? "" : result.error().message;
  };
  EXPECT_THAT(refusal({{1, 0}, {9, -8}}), HasSubstr("weight 2 of the blend is less than 1/1048576"));
  EXPECT_THAT(refusal({{1, -999}, {1, 999}}), HasSubstr("weight 1 of the blend"));
  EXPECT_THAT(shares({"1", "0.00001"}), ElementsAre(100000, 1));
}

TEST(BlendTest, WeightsThatAreNone) {
  for (const char *text : {"0", "0.000", "-0.5", "-1", "", ".", "1.2.3", "nan", "inf", "1e", "1e+", "1ex",
                           "0x1", "1e9999", "1234567890123456789", " 1", "1 "}) {
    Result<Weight> weight = parseWeight(text);
    EXPECT_FALSE(weight) << text;
    if (!weight)
      EXPECT_EQ(weight.error().code, ExitCode::Usage);
  }
}
} // namespace
