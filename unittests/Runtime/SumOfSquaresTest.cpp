//===- SumOfSquaresTest.cpp - The squares of many tensors, on the CPU ----------===//
//
// To the bit against the order that SumOfSquares.cpp describes, written down once more in plain loops, on
// every instruction set that the machine has and for any number of threads; and that order against long
// double.
//
//===---------------------------------------------------------------------------===//
#include "KernelTestUtil.h"
#include "SquaresInput.h"

namespace ds::rt {
namespace {

using test::SquaresInput;

/// Adds neighbours until one number is left.
float addNeighbours(std::vector<float> numbers) {
  for (; numbers.size() > 1; numbers.resize(numbers.size() / 2))
    for (size_t i = 0; i < numbers.size() / 2; ++i)
      numbers[i] = numbers[2 * i] + numbers[2 * i + 1];
  return numbers[0];
}

double inOrder(const std::vector<SquaresInput> &inputs) {
  std::vector<double> totals(1024);
  size_t block = 0;
  for (const SquaresInput &input : inputs)
    for (size_t begin = 0; begin < input.numbers.size(); begin += 16384, ++block) {
      std::vector<float> pieces;
      for (size_t first = begin; first < begin + 16384; first += 2048) {
        std::vector<float> sums(256);
        for (size_t i = first; i < std::min(first + 2048, input.numbers.size()); ++i)
          sums[(i - first) % 256] += input.numbers[i] * input.numbers[i];
        pieces.push_back(addNeighbours(sums));
      }
      totals[block % 1024] += addNeighbours(pieces);
    }
  for (size_t half = 512; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      totals[i] += totals[i + half];
  return totals[0];
}

class SumOfSquaresTest : public test::KernelTest {
protected:
  static double sum(std::vector<SquaresInput> &inputs, Isa isa, uint32_t threads = 2) {
    double result = NAN;
    test::SquaresCall call(inputs, &result);
    test::call(LibraryFn::SumOfSquares, isa, call.operands, {}, threads, call.sums.data());
    return result;
  }
};

TEST_P(SumOfSquaresTest, AddsInTheOrderThatSizesGive) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (int64_t size : {0, 1, 15, 257, 2047, 2049, 16383, 16384, 16385, 100000}) {
      std::vector<SquaresInput> inputs;
      inputs.emplace_back(dtype, std::vector<int64_t>{size}, 1);
      EXPECT_EQ(sum(inputs, GetParam()), inOrder(inputs)) << size;
    }
}

TEST_P(SumOfSquaresTest, TakesManyTensorsOfAnyTypeAndPlace) {
  std::vector<SquaresInput> inputs = test::manySquaresInputs();
  const double expected = inOrder(inputs);
  for (uint32_t threads : {1, 2, 5})
    EXPECT_EQ(sum(inputs, GetParam(), threads), expected) << threads << " threads";
  long double exact = 0;
  for (const SquaresInput &input : inputs)
    for (float number : input.numbers)
      exact += static_cast<long double>(number) * static_cast<long double>(number);
  EXPECT_NEAR(expected, static_cast<double>(exact), 1e-7 * static_cast<double>(exact));
}

/// Blocks of each tensor apart, then their sums: the bits of all at once.
TEST_P(SumOfSquaresTest, BlocksApartHaveTheSameBits) {
  std::vector<SquaresInput> inputs = test::manySquaresInputs();
  const double whole = sum(inputs, GetParam());
  std::vector<std::vector<float>> blocks;
  std::vector<int64_t> counts;
  for (SquaresInput &input : inputs) {
    counts.push_back((static_cast<int64_t>(input.numbers.size()) + 16383) / 16384);
    blocks.emplace_back(static_cast<size_t>(counts.back()), NAN);
  }
  const int64_t unit = 1;
  double got = NAN, ignored = NAN;
  test::SquaresCall all(inputs, &ignored);
  std::vector<View> sums;
  for (size_t i = 0; i < inputs.size(); ++i) {
    sums.push_back({blocks[i].data(), &counts[i], &unit, 1, DType::F32});
    test::call(LibraryFn::SumOfSquares, GetParam(), {all.operands[i], sums.back()}, {}, 2, nullptr);
  }
  sums.push_back({&got, nullptr, nullptr, 0, DType::F64});
  test::call(LibraryFn::SumOfSquares, GetParam(), sums, {1}, 2, nullptr);
  EXPECT_EQ(got, whole);
}

TEST_P(SumOfSquaresTest, GivesNoNumberForAnOverflow) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (float bad : {INFINITY, -INFINITY, NAN})
      for (int64_t place : {0, 20000, 40000}) {
        std::vector<SquaresInput> inputs;
        inputs.emplace_back(dtype, std::vector<int64_t>{7}, 1);
        inputs.emplace_back(dtype, std::vector<int64_t>{40001}, 2);
        inputs[1].set(place, bad);
        EXPECT_FALSE(std::isfinite(sum(inputs, GetParam()))) << place;
      }
}

INSTANTIATE_TEST_SUITE_P(Isas, SumOfSquaresTest, testing::ValuesIn(test::testableIsas()), test::isaName);

} // namespace
} // namespace ds::rt
