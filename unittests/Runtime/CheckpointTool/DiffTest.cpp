//===- DiffTest.cpp - In what two checkpoints differ ---------------------------------------===//

#include "ToolFixture.h"

#include "ds/Runtime/CheckpointTool/Diff.h"

#include <cmath>
#include <limits>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::HasSubstr;
using testing::Not;

namespace {

class Diff : public ToolFixture {
protected:
  std::vector<TensorDifference> diff(const std::string &a, const std::string &b) {
    const Checkpoint first = open(a), second = open(b);
    Result<std::vector<TensorDifference>> found = diffTensors(first, second);
    EXPECT_TRUE(found) << found.error().message;
    text = spellDifferences(first, second, *found, false);
    return *found;
  }
  /// The only tensor of two checkpoints.
  TensorDifference diff(const Given &a, const Given &b) { return diff(write(1, {a}), write(2, {b})).at(0); }
  std::string text;
};

Model modelOn(uint32_t dp) {
  Model model(Mesh{{"dp", dp}});
  model.addZero("a", {7, 11});
  model.addZero("b", {64, 33});
  model.add("c", {64, 300});
  model.add("empty", {0, 4});
  return model;
}

/// The same values, saved on one rank and on five: version 3 of both.
TEST_F(Diff, meshesDoNotMatter) {
  const std::string one = *save(systemFiles(), modelOn(1), root + "/one", 3);
  const std::string five = *save(systemFiles(), modelOn(5), root + "/five", 3);
  EXPECT_EQ(countDiffering(diff(one, five)), 0u);
  EXPECT_THAT(text, HasSubstr("all 6 tensors are equal to the bit"));
}

/// Versions differ by 1/8 in every element.
TEST_F(Diff, normsAndDistances) {
  const std::string a = *save(systemFiles(), modelOn(2), root, 1);
  const std::string b = *save(systemFiles(), modelOn(3), root, 2);
  const std::vector<TensorDifference> found = diff(a, b);
  EXPECT_EQ(countDiffering(found), 5u); // all but the empty one
  const TensorDifference &c = found[4];
  ASSERT_EQ(c.name, "c");
  double sumA = 0, sumB = 0;
  for (int e = 0; e < 64 * 300; ++e) {
    sumA += std::pow(4 * 10000 + e + 0.125, 2);
    sumB += std::pow(4 * 10000 + e + 0.25, 2);
  }
  EXPECT_EQ(c.differing, 64u * 300);
  EXPECT_EQ(c.first, 0u);
  EXPECT_EQ(c.largest, 0.125);
  EXPECT_NEAR(c.normA, std::sqrt(sumA), 1e-12 * std::sqrt(sumA));
  EXPECT_NEAR(c.normB, std::sqrt(sumB), 1e-12 * std::sqrt(sumB));
  EXPECT_NEAR(c.distance, 0.125 * std::sqrt(64 * 300), 1e-9);
}

TEST_F(Diff, namesTheFirstElement) {
  const TensorDifference found = diff(given<float>("w", FileDType::F32, {2, 3}, {0, 1, 2, 3, 4, 5}),
                                      given<float>("w", FileDType::F32, {2, 3}, {0, 1, 2, 3, 4.5, 7}));
  EXPECT_EQ(found.kind, Difference::Values);
  EXPECT_EQ(found.first, 4u);
  EXPECT_EQ(found.differing, 2u);
  EXPECT_EQ(found.largest, 2);
  EXPECT_THAT(text, HasSubstr("2 of 6 elements, first [1, 1]: 4 and 4.5"));
}

TEST_F(Diff, whatOnlyOneHasAndOtherForms) {
  const std::string a = write(1, {givenFloats("only", {1}), givenFloats("shape", {1, 2}),
                                  givenFloats("type", {1}), givenFloats("same", {1})});
  const std::string b = write(2, {given<float>("shape", FileDType::F32, {2, 1}, {1, 2}),
                                  given<double>("type", FileDType::F64, {1}, {1}), givenFloats("same", {1}),
                                  givenFloats("new", {1})});
  EXPECT_EQ(countDiffering(diff(a, b)), 4u);
  EXPECT_THAT(text, HasSubstr("only in A: 'only' F32 [1]\n"));
  EXPECT_THAT(text, HasSubstr("only in B: 'new' F32 [1]\n"));
  EXPECT_THAT(text, HasSubstr("shape: 'shape': [2] and [2, 1]\n"));
  EXPECT_THAT(text, HasSubstr("type: 'type': F32 and F64\n"));
  EXPECT_THAT(text, Not(HasSubstr("'same'")));
}

TEST_F(Diff, aliasesAreNames) {
  Given head = givenFloats("head", {1, 2}), tokens = givenFloats("tokens", {1, 2});
  head.tensor.aliases = {"tokens"};
  EXPECT_EQ(diff(head, tokens).kind, Difference::None);
  EXPECT_EQ(diff(write(3, {tokens}), write(4, {head})).size(), 1u);
}

/// Equal is equal to the bit: a NaN equals itself, and zeros of two signs differ by nothing.
TEST_F(Diff, nansAndZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = INFINITY;
  EXPECT_EQ(diff(givenFloats("w", {nan, 1}), givenFloats("w", {nan, 1})).kind, Difference::None);
  const TensorDifference zeros = diff(givenFloats("w", {0.0f}), givenFloats("w", {-0.0f}));
  EXPECT_EQ(zeros.kind, Difference::Values);
  EXPECT_EQ(zeros.largest, 0);
  const TensorDifference wild = diff(givenFloats("w", {nan, 1, infinity}), givenFloats("w", {1, 3, 0}));
  EXPECT_EQ(wild.differing, 3u);
  EXPECT_EQ(wild.undefined, 2u);
  EXPECT_EQ(wild.largest, 2);
  EXPECT_THAT(text, HasSubstr("(2 without a finite difference)"));
}

/// 2^62 and 2^62 + 1 are one double.
TEST_F(Diff, wholeNumbersAreExact) {
  const int64_t large = int64_t(1) << 62;
  const TensorDifference found = diff(given<int64_t>("step", FileDType::I64, {}, {large}),
                                      given<int64_t>("step", FileDType::I64, {}, {large + 1}));
  EXPECT_EQ(found.largest, 1);
  EXPECT_EQ(found.firstB, "4611686018427387905");
}

TEST_F(Diff, sixteenBitsAreRead) {
  const TensorDifference found = diff(given<uint16_t>("w", FileDType::BF16, {2}, {0x3f80, 0x4000}),
                                      given<uint16_t>("w", FileDType::BF16, {2}, {0x3f80, 0x4040}));
  EXPECT_EQ(found.largest, 1); // 2 and 3
  EXPECT_EQ(found.normA, std::sqrt(5.0));
  EXPECT_EQ(diff(given<uint16_t>("w", FileDType::F16, {1}, {0x3c00}),
                 given<uint16_t>("w", FileDType::F16, {1}, {0x4400}))
                .largest,
            3); // 1 and 4
  EXPECT_EQ(diff(given<uint8_t>("w", FileDType::F8E4M3, {2}, {1, 2}),
                 given<uint8_t>("w", FileDType::F8E4M3, {2}, {1, 3}))
                .first,
            1u);
}

/// 5 million floats are three batches; the first element that differs lies in the last.
TEST_F(Diff, largeTensorsComeInPieces) {
  std::vector<float> values(5'000'000, 1);
  const std::string a = write(1, {givenFloats("w", values), givenFloats("x", {1})}, 1 << 20);
  values[4'999'990] = 3;
  values[4'999'999] = 1.5;
  const std::string b = write(2, {givenFloats("w", values), givenFloats("x", {2})}, 1 << 18);
  const std::vector<TensorDifference> found = diff(a, b);
  EXPECT_EQ(found[0].first, 4'999'990u);
  EXPECT_EQ(found[0].differing, 2u);
  EXPECT_EQ(found[0].normA, std::sqrt(5e6));
  EXPECT_EQ(found[1].differing, 1u);
}

TEST_F(Diff, damageIsNoDifference) {
  const std::string a = write(1, {givenFloats("w", {1, 2})}), b = write(2, {givenFloats("w", {1, 2})});
  std::string bytes = readText(b + kFile);
  const Checkpoint first = open(a), second = open(b);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  writeText(b + kFile, bytes);
  const Result<std::vector<TensorDifference>> found = diffTensors(first, second);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ExitCode::Corrupt);
}

} // namespace
