//===- CudaKernelTest.cpp - The kernels of the CUDA library against the CPU's ---===//
//
// The .cu files as C++, launched as cudaLaunches() says and run thread by thread. What they compute is held
// to the kernels of kernels/*.cpp: to the bit where both add in one order, else to rounding.
//
//===---------------------------------------------------------------------------===//
#include "../Runtime/ConvReference.h"
#include "EmulatedLaunch.h"

#include "ds/Runtime/Program/IdSort.h"

namespace ds::rt {
namespace {

class CudaKernelTest : public testing::TestWithParam<DType> {
protected:
  DType dtype() const { return GetParam(); }
  /// Half a unit in the last place of a result, and what f32 sums in another order lose.
  float rounding() const { return dtype() == DType::F32 ? 2e-6f : dtype() == DType::F16 ? 1e-3f : 8e-3f; }
};

TEST_P(CudaKernelTest, EmbeddingLooksUpRows) {
  const std::vector<int64_t> whole, part = {1};
  Numbers table(dtype(), {50, 70}, 1, 6), got(dtype(), {3, 20, 70}, 2), expected(dtype(), {3, 20, 70}, 3);
  Tensor<int64_t> ids({3, 20});
  for (size_t i = 0; i < ids.data.size(); ++i)
    ids.data[i] = i == 7 ? -1 : i == 9 ? 50 : int64_t(i * i % 50);
  for (const std::vector<int64_t> &params : {whole, part}) {
    callCpu(LibraryFn::EmbeddingForward, {table.view(), ids.view(), expected.view()}, params);
    callCuda(LibraryFn::EmbeddingForward, {table.view(), ids.view(), got.view()}, params);
    expectNear(got, expected, 0, "rows");
    for (int64_t outside : {7, 9})
      EXPECT_EQ(std::isnan(got.at(static_cast<size_t>(outside * 70))), params.empty()) << outside;
  }
}

struct EmbeddingCase {
  int64_t tokens, rows, width, gap;
  bool wideIds = false;
};

/// Half of the tokens have one id, some have ids outside the table, on either side.
template <class Id>
Tensor<Id> idsOf(const EmbeddingCase &c) {
  Tensor<Id> ids({c.tokens});
  for (int64_t i = 0; i < c.tokens; ++i)
    ids.data[i] = static_cast<Id>(i % 2          ? c.rows / 2
                                  : i % 41 == 40 ? c.rows
                                  : i % 43 == 42 ? -1
                                                 : i * 7919 % c.rows);
  return ids;
}

/// To the bit what the CPU adds, and nothing beyond the workspace that is planned.
void checkEmbeddingGradient(const EmbeddingCase &c, DType dtype, DType tableType, int64_t accumulate) {
  SCOPED_TRACE(testing::Message() << c.tokens << " tokens of " << c.rows << ", " << spell(tableType));
  Numbers dout(dtype, {c.tokens, c.width}, 1), got(tableType, {c.rows, c.width}, 2, c.gap),
      expected(tableType, {c.rows, c.width}, 2, c.gap);
  Tensor<int32_t> ids = idsOf<int32_t>(c);
  Tensor<int64_t> wide = idsOf<int64_t>(c);
  const View view = c.wideIds ? wide.view() : ids.view();
  std::vector<int32_t> workspace(2 * c.tokens),
      onCuda(IdSort::of(c.tokens, c.rows).workspaceBytes() / sizeof(int32_t) + 1, 7);
  callCpu(LibraryFn::EmbeddingBackward, {view, dout.view(), expected.view()}, {accumulate}, workspace.data());
  callCuda(LibraryFn::EmbeddingBackward, {view, dout.view(), got.view()}, {accumulate}, onCuda.data());
  expectNear(got, expected, 0, "gradients");
  EXPECT_EQ(onCuda.back(), 7) << "beyond the workspace";
}

TEST_P(CudaKernelTest, EmbeddingAddsGradientsInOrder) {
  for (DType tableType : {DType::F32, dtype()})
    for (int64_t accumulate : {0, 1}) {
      checkEmbeddingGradient({300, 40, 1030, 4}, dtype(), tableType, accumulate);
      checkEmbeddingGradient({300, 40, 264, 8, true}, dtype(), tableType, accumulate);
    }
}

/// Several tiles of ids, one of them partly filled; tables of one, two and three digits.
TEST_P(CudaKernelTest, EmbeddingGradientSortsIds) {
  for (const EmbeddingCase &c : {EmbeddingCase{1300, 500, 16, 0},
                                 {1300, 50257, 3, 0, true},
                                 {600, 300000, 1, 0},
                                 {1, 7, 5, 0},
                                 {17, 1, 8, 0},
                                 {512, 511, 8, 8}})
    checkEmbeddingGradient(c, dtype(), dtype(), 0);
}

struct AttentionCase {
  int64_t b, t, s, h, g, d;
  bool causal, mask;
  int64_t gap;
  int64_t window = 0; ///< 0: none
  double cap = 0;     ///< 0: none
  bool slopes = false;
  double dropout = 0;                  ///< 0: none
  int64_t firstHead = 0, allHeads = 0; ///< of those that dropout counts; 0: these are all
};

void checkAttention(const AttentionCase &c, DType dtype, float rounding) {
  SCOPED_TRACE(testing::Message() << "T=" << c.t << " S=" << c.s << " D=" << c.d);
  Numbers q(dtype, {c.b, c.t, c.h, c.d}, 1, c.gap), k(dtype, {c.b, c.s, c.g, c.d}, 2, c.gap),
      v(dtype, {c.b, c.s, c.g, c.d}, 3, c.gap), dout(dtype, {c.b, c.t, c.h, c.d}, 4);
  Numbers mask(DType::F32, {1, c.h, 1, c.s}, 5);
  mask.shape.data[0] = -INFINITY;
  Numbers out(dtype, {c.b, c.t, c.h, c.d}, 6), lse(DType::F32, {c.b, c.h, c.t}, 7),
      dq(dtype, {c.b, c.t, c.h, c.d}, 8, c.gap), dk(dtype, {c.b, c.s, c.g, c.d}, 9, c.gap),
      dv(dtype, {c.b, c.s, c.g, c.d}, 10, c.gap);
  Numbers out2 = out, lse2 = lse, dq2 = dq, dk2 = dk, dv2 = dv;
  std::vector<int64_t> params{c.causal, std::bit_cast<int64_t>(1.0 / std::sqrt(double(c.d)))};
  if (c.window != 0 || c.cap != 0 || c.dropout != 0)
    params.insert(params.end(), {c.window, std::bit_cast<int64_t>(c.cap)});
  if (c.dropout != 0)
    params.insert(params.end(), {std::bit_cast<int64_t>(c.dropout), 3, c.allHeads > 0 ? c.allHeads : c.h});
  Tensor<int64_t> generator({2}), first({});
  generator.data = {-987654321098, 41};
  first.data = {c.firstHead};
  Numbers slopes(DType::F32, {c.h}, 11);
  auto with = [&](std::vector<View> operands) {
    if (c.mask)
      operands.push_back(mask.view());
    if (c.slopes)
      operands.push_back(slopes.view());
    if (c.dropout != 0)
      operands.push_back(generator.view());
    if (c.allHeads > 0)
      operands.push_back(first.view());
    return operands;
  };
  callCpu(LibraryFn::AttentionForward, with({q.view(), k.view(), v.view(), out.view(), lse.view()}), params);
  callCuda(LibraryFn::AttentionForward, with({q.view(), k.view(), v.view(), out2.view(), lse2.view()}),
           params);
  expectNear(out2, out, rounding, "out");
  expectNear(lse2, lse, 2e-6f, "lse");
  std::vector<float> workspace(2 * c.s * c.d);
  callCpu(LibraryFn::AttentionBackward,
          with({q.view(), k.view(), v.view(), out.view(), lse.view(), dout.view(), dq.view(), dk.view(),
                dv.view()}),
          params, workspace.data());
  callCuda(LibraryFn::AttentionBackward,
           with({q.view(), k.view(), v.view(), out.view(), lse.view(), dout.view(), dq2.view(), dk2.view(),
                 dv2.view()}),
           params);
  expectNear(dq2, dq, rounding, "dq");
  expectNear(dk2, dk, rounding, "dk");
  expectNear(dv2, dv, rounding, "dv");
}

TEST_P(CudaKernelTest, Attention) {
  const float bound = dtype() == DType::F32 ? 1e-5f : rounding();
  checkAttention({2, 40, 40, 2, 1, 64, true, false, 0}, dtype(), bound);
  checkAttention({1, 40, 40, 2, 2, 33, true, true, 7}, dtype(), bound);
  checkAttention({1, 50, 20, 2, 1, 24, true, false, 0}, dtype(), bound); // the first queries see nothing
  checkAttention({1, 33, 34, 2, 1, 256, false, true, 5}, dtype(), bound);
  checkAttention({1, 20, 50, 1, 1, 8, true, false, 0}, dtype(), bound);
}

TEST_P(CudaKernelTest, AttentionWithWindowsCapsAndSlopes) {
  const float bound = dtype() == DType::F32 ? 1e-5f : rounding();
  checkAttention({1, 100, 100, 2, 1, 16, true, false, 0, 40}, dtype(), bound);
  checkAttention({1, 100, 100, 2, 2, 16, false, false, 0, 20}, dtype(), bound);
  checkAttention({1, 40, 100, 2, 1, 24, true, false, 0, 35}, dtype(),
                 bound); // the first keys are seen by none
  checkAttention({1, 100, 40, 2, 1, 24, false, false, 0, 7}, dtype(), bound); // some queries see nothing
  checkAttention({1, 40, 40, 2, 1, 33, true, true, 7, 0, 0.8}, dtype(), bound);
  checkAttention({1, 40, 50, 4, 2, 8, true, false, 0, 0, 0, true}, dtype(), bound);
  checkAttention({1, 70, 70, 4, 2, 40, true, true, 0, 37, 1.5, true}, dtype(), bound);
}

TEST_P(CudaKernelTest, AttentionDropsWhatTheCpuDrops) {
  const float bound = dtype() == DType::F32 ? 1e-5f : rounding();
  checkAttention({2, 40, 40, 2, 1, 64, true, false, 0, 0, 0, false, 0.1}, dtype(), bound);
  checkAttention({2, 35, 37, 4, 2, 8, false, true, 7, 0, 0, false, 0.6}, dtype(), bound);
  checkAttention({2, 35, 37, 2, 1, 8, true, false, 0, 0, 0, false, 0.6, 3, 6}, dtype(), bound); // of six
}

/// Keys that no query sees, and queries that see no key of a block, are not read.
TEST(CudaAttention, SkipsWhatLiesOutsideTheWindow) {
  // Queries stand at keys 64 to 95 and see 10: none sees those before 55, of which the first 32 make a tile.
  Numbers q(DType::F32, {1, 32, 1, 8}, 1), k(DType::F32, {1, 96, 1, 8}, 2), out(DType::F32, {1, 32, 1, 8}, 3),
      lse(DType::F32, {1, 1, 32}, 4), dq = out, dk = k, dv = k;
  const std::vector<int64_t> params = {1, std::bit_cast<int64_t>(1.0), 10, 0};
  constexpr int64_t kTile = 32 * 8, kUnseen = 55 * 8;
  for (int64_t at = 0; at < kTile; ++at)
    k.shape.data[at] = NAN;
  callCuda(LibraryFn::AttentionForward, {q.view(), k.view(), k.view(), out.view(), lse.view()}, params);
  callCuda(LibraryFn::AttentionBackward,
           {q.view(), k.view(), k.view(), out.view(), lse.view(), q.view(), dq.view(), dk.view(), dv.view()},
           params);
  for (Numbers *result : {&out, &lse, &dq})
    result->shape.each([](float value) { ASSERT_TRUE(std::isfinite(value)); });
  for (int64_t at = 0; at < 96 * 8; ++at) {
    ASSERT_EQ(dk.at(at) != 0, at >= kUnseen);
    ASSERT_EQ(dv.at(at) != 0, at >= kUnseen);
  }
}

/// `offset` elements behind an address of 16 bytes: 0 lets the kernel take 16 bytes at once.
void checkGelu(DType dtype, float rounding, int64_t columns, int64_t offset) {
  SCOPED_TRACE(testing::Message() << columns << " columns, at " << offset);
  Numbers memory(dtype, {13, columns + 1}, 1), result(dtype, {13, columns + 1}, 2), bias(dtype, {columns}, 3);
  Numbers expected = result;
  const int64_t shape[] = {13, columns}, strides[] = {columns, 1};
  const auto view = [&](Numbers &numbers) {
    return View{numbers.words.data() + offset, shape, strides, 2, dtype};
  };
  const View any = view(bias);
  for (int64_t activation : {2, 3}) {
    std::vector<View> operands = {any, any, view(expected), view(memory)};
    callCpu(LibraryFn::Matmul, operands, {0, 0, 0, activation});
    operands[2] = view(result);
    callCuda(LibraryFn::Matmul, operands, {0, 0, 0, activation});
    expectNear(result, expected, rounding, "GELU of another buffer");
  }
  callCpu(LibraryFn::Matmul, {any, any, view(expected), bias.view()}, {0, 0, 0, 2});
  callCuda(LibraryFn::Matmul, {any, any, view(result), bias.view()}, {0, 0, 0, 2});
  expectNear(result, expected, 2 * rounding, "GELU in place");
}

TEST_P(CudaKernelTest, GeluAfterProducts) {
  if (dtype() == DType::F32)
    GTEST_SKIP() << "products with GELU have 16 bits";
  checkGelu(dtype(), rounding(), 1000, 0);
  checkGelu(dtype(), rounding(), 77, 0); // 1001 elements: one is left over
  checkGelu(dtype(), rounding(), 77, 1);
  const int64_t params[] = {0, 0, 0, 1};
  Numbers x(dtype(), {4, 4}, 1);
  const std::vector<View> operands(3, x.view());
  EXPECT_TRUE(cuda::cudaLaunches(LibraryFn::Matmul, {operands.data(), params, 3, 4, 1}).empty())
      << "of a product without GELU";
}

TEST_P(CudaKernelTest, ConvolutionsAreWhatTheirDefinitionSays) {
  for (const test::ConvCase &c : test::convCases())
    for (LibraryFn fn :
         {LibraryFn::ConvForward, LibraryFn::ConvBackwardInput, LibraryFn::ConvBackwardWeight}) {
      std::vector<Numbers> operands;
      std::vector<std::vector<double>> values;
      std::vector<View> views;
      for (const std::vector<int64_t> &shape : c.operandShapes(fn))
        operands.emplace_back(dtype(), shape, static_cast<uint32_t>(operands.size() + 1));
      for (Numbers &operand : operands) {
        std::vector<double> &list = values.emplace_back();
        for (size_t i = 0; i < operand.size(); ++i)
          list.push_back(operand.at(i));
        views.push_back(operand.view());
      }
      const std::vector<double> sums = test::convolve(c, fn, values);
      callCuda(fn, views, c.params());
      double largest = 0, worst = 0;
      for (size_t i = 0; i < sums.size(); ++i) {
        largest = std::max(largest, std::abs(sums[i]));
        worst = std::max(worst, std::abs(operands[2].at(i) - sums[i]));
      }
      EXPECT_LE(worst, 2 * rounding() * largest) << c.name << ", " << spell(fn);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Types, CudaKernelTest, testing::Values(DType::F32, DType::BF16, DType::F16), [](const auto &info) {
      return std::string(info.param == DType::F32 ? "f32" : info.param == DType::BF16 ? "bf16" : "f16");
    });

} // namespace
} // namespace ds::rt
