//===- GeluTest.cpp - GELU over products, against its definition ----------------===//
#include "KernelTestUtil.h"

namespace ds::rt {
namespace {

using test::call;

float fromBits(uint16_t bits, DType dtype) {
  return dtype == DType::F16 ? static_cast<float>(std::bit_cast<_Float16>(bits))
                             : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

double gate(double x) { return std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }
double gelu(double x) { return x / 2 * (1 + gate(x)); }
double slope(double x) {
  return (1 + gate(x)) / 2 +
         x / 2 * (1 - gate(x) * gate(x)) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

/// All numbers of the type that a network may see, in order of their bits.
std::vector<uint16_t> allNumbers(DType dtype) {
  std::vector<uint16_t> numbers;
  for (unsigned bits = 0; bits < 65536; ++bits)
    if (std::abs(fromBits(static_cast<uint16_t>(bits), dtype)) < 1e4f)
      numbers.push_back(static_cast<uint16_t>(bits));
  return numbers;
}

class GeluTest : public testing::TestWithParam<std::tuple<Isa, DType>> {
protected:
  Isa isa() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  /// Runs what comes after a product of activation `activation`.
  void run(int64_t activation, std::vector<uint16_t> &result, std::vector<uint16_t> *input) {
    const int64_t shape[] = {1, static_cast<int64_t>(result.size())}, strides[] = {shape[1], 1};
    const int64_t row[] = {shape[1]};
    const View unread{nullptr, shape, strides, 2, dtype()}, bias{nullptr, row, strides + 1, 1, dtype()};
    std::vector<View> operands = {unread, unread, {result.data(), shape, strides, 2, dtype()}};
    if (activation == 2)
      operands.push_back(bias);
    if (input)
      operands.push_back({input->data(), shape, strides, 2, dtype()});
    call(LibraryFn::Matmul, isa(), operands, {0, 0, 0, activation});
  }
  /// Half a unit in the last place, and what f32 loses.
  void expectRounded(uint16_t bits, double expected, float x) const {
    const double relative = dtype() == DType::F16 ? 0x1p-11 : 0x1p-8;
    ASSERT_NEAR(fromBits(bits, dtype()), expected, std::abs(expected) * relative * 1.01 + 1e-7) << x;
  }
};

TEST_P(GeluTest, IsItsDefinition) {
  std::vector<uint16_t> input = allNumbers(dtype()), aside(input.size()), inPlace = input;
  run(2, aside, &input);
  run(2, inPlace, nullptr);
  for (size_t i = 0; i < input.size(); ++i) {
    const float x = fromBits(input[i], dtype());
    expectRounded(aside[i], gelu(x), x);
    ASSERT_EQ(inPlace[i], aside[i]) << x;
  }
}

TEST_P(GeluTest, GradientIsItsDerivative) {
  std::vector<uint16_t> input = allNumbers(dtype()), result = input;
  std::reverse(result.begin(), result.end());
  const std::vector<uint16_t> grads = result;
  run(3, result, &input);
  for (size_t i = 0; i < input.size(); ++i) {
    const float x = fromBits(input[i], dtype()), grad = fromBits(grads[i], dtype());
    // The derivative of large numbers is 0 or 1 to within what f32 rounds of 1.
    const double error = std::abs(grad) * 2e-6;
    const double want = grad * slope(x), relative = dtype() == DType::F16 ? 0x1p-11 : 0x1p-8;
    ASSERT_NEAR(fromBits(result[i], dtype()), want, std::abs(want) * relative * 1.01 + error + 1e-7)
        << x << ", " << grad;
  }
}

TEST_P(GeluTest, KeepsWhatIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto bits = [&](float value) {
    return dtype() == DType::F16 ? std::bit_cast<uint16_t>(static_cast<_Float16>(value))
                                 : static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  };
  std::vector<uint16_t> values = {bits(infinity), bits(NAN), bits(0)};
  run(2, values, nullptr);
  EXPECT_EQ(fromBits(values[0], dtype()), infinity);
  EXPECT_TRUE(std::isnan(fromBits(values[1], dtype())));
  EXPECT_EQ(values[2], 0);
}

INSTANTIATE_TEST_SUITE_P(Isas, GeluTest,
                         testing::Combine(testing::ValuesIn(test::testableIsas()),
                                          testing::Values(DType::BF16, DType::F16)),
                         [](const auto &info) {
                           return "v" + std::to_string(static_cast<int>(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) == DType::F16 ? "_f16" : "_bf16");
                         });

} // namespace
} // namespace ds::rt
