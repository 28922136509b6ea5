//===- MatmulGeluTest.cpp - Products with GELU are products and GELU -------------===//
//
// One command against two: the plain product, which is tested in MatmulTest.cpp, and what GELU or its
// derivative makes of its rounded result.
//
//===---------------------------------------------------------------------------===//
#include "ProgramBuilder.h"

#include "Program/Elements.h"
#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Onednn/ProductBlocks.h"
#include "ds/Runtime/Program/Library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ds::rt {
namespace {

using test::ProgramBuilder;

constexpr int64_t kRows = 9, kColumns = 10, kDepth = 7;

/// x [.., kRows, kDepth] times w [kDepth, kColumns] with bias b; its result and what GELU is taken of.
struct Product {
  ProgramBuilder b;
  DType dtype;
  uint32_t x, w, bias, result, input;

  Product(DType dtype, std::vector<int64_t> batch) : dtype(dtype) {
    const auto shape = [&](int64_t columns) {
      std::vector<int64_t> all = batch;
      all.insert(all.end(), {kRows, columns});
      return all;
    };
    x = b.keep(shape(kDepth), dtype), w = b.keep({kDepth, kColumns}, dtype), bias = b.keep({kColumns}, dtype);
    result = b.keep(shape(kColumns), dtype), input = b.keep(shape(kColumns), dtype);
  }
  void add(const std::vector<uint32_t> &operands, int64_t activation) {
    const std::vector<int64_t> params = {0, 0, 0, activation};
    std::vector<const Buffer *> buffers;
    for (uint32_t id : operands)
      buffers.push_back(&b.program.buffers[id]);
    const Result<uint64_t> bytes =
        productWorkspaceBytes(describeMatmul(*buffers[0], *buffers[1], *buffers[2],
                                             matmulExtras(buffers, params).bias, params.data()),
                              b.program.threads);
    ASSERT_TRUE(bytes);
    const uint32_t workspace = b.keep({static_cast<int64_t>(*bytes) + 1}, DType::U8);
    b.library(LibraryFn::Matmul, operands, params).workspace = workspace;
    b.segment();
  }
  /// Runs it with random operands; returns the elements of `buffers`.
  std::vector<std::vector<double>> run(std::initializer_list<uint32_t> buffers) {
    EXPECT_TRUE(verifyProgram(b.program)) << verifyProgram(b.program).error().message;
    auto loaded = Executor::load(b.program);
    EXPECT_TRUE(loaded) << loaded.error().message;
    Executor &e = **loaded;
    std::mt19937 random(1);
    for (uint32_t id : {x, w, bias, input})
      for (int64_t i = 0; i < numElements(b.program.buffers[id]); ++i)
        storeElement(at(e, id, i), dtype, (int(random() % 17) - 8) / 4.0);
    EXPECT_TRUE(e.run(0));
    std::vector<std::vector<double>> all;
    for (uint32_t id : buffers) {
      std::vector<double> &values = all.emplace_back();
      for (int64_t i = 0; i < numElements(b.program.buffers[id]); ++i)
        values.push_back(loadElement(at(e, id, i), dtype));
    }
    return all;
  }
  std::byte *at(Executor &e, uint32_t id, int64_t i) {
    return static_cast<std::byte *>(e.data(id)) + i * byteSize(dtype);
  }
};

double gate(double x) { return std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }
double slope(double x) {
  return (1 + gate(x)) / 2 +
         x / 2 * (1 - gate(x) * gate(x)) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

class MatmulGelu : public testing::TestWithParam<DType> {
protected:
  /// Rounding to 16 bits.
  void expectNear(const std::vector<double> &got, const std::vector<double> &expected) const {
    const double relative = GetParam() == DType::F16 ? 0x1p-10 : 0x1p-7;
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], std::abs(expected[i]) * relative + 1e-6) << i;
  }
};

TEST_P(MatmulGelu, TakesGeluOfWhatItRounds) {
  for (const std::vector<int64_t> &batch : {std::vector<int64_t>{}, {3}})
    for (bool hasBias : {false, true})
      for (bool keepsInput : {false, true}) {
        Product plain(GetParam(), batch), gelu(GetParam(), batch);
        std::vector<uint32_t> operands = {plain.x, plain.w, plain.result};
        if (hasBias)
          operands.push_back(plain.bias);
        plain.add(operands, 0);
        if (keepsInput)
          operands.push_back(plain.input);
        gelu.add(operands, 2);
        const std::vector<double> sums = plain.run({plain.result})[0];
        const auto got = gelu.run({gelu.result, gelu.input});
        std::vector<double> expected;
        for (double sum : sums)
          expected.push_back(sum / 2 * (1 + gate(sum)));
        expectNear(got[0], expected);
        if (keepsInput)
          EXPECT_EQ(got[1], sums);
      }
}

TEST_P(MatmulGelu, MultipliesByTheDerivative) {
  for (const std::vector<int64_t> &batch : {std::vector<int64_t>{}, {3}}) {
    Product plain(GetParam(), batch), gradient(GetParam(), batch);
    plain.add({plain.x, plain.w, plain.result}, 0);
    gradient.add({plain.x, plain.w, plain.result, plain.input}, 3);
    const auto sums = plain.run({plain.result, plain.input});
    const auto got = gradient.run({gradient.result, gradient.input});
    std::vector<double> expected;
    for (size_t i = 0; i < sums[0].size(); ++i)
      expected.push_back(sums[0][i] * slope(sums[1][i]));
    expectNear(got[0], expected);
    EXPECT_EQ(got[1], sums[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MatmulGelu, testing::Values(DType::BF16, DType::F16), [](const auto &info) {
  return std::string(info.param == DType::F16 ? "f16" : "bf16");
});

} // namespace
} // namespace ds::rt
