//===- NarrowKernelTest.cpp - Kernels on 16-bit floats -------------------------===//
//
// What a kernel computes with bf16 and f16 operands is what it computes with the same numbers in f32, rounded
// once: to the bit, on every instruction set. That the f32 kernels are right is tested beside.
//
//===---------------------------------------------------------------------------===//
#include "KernelTestUtil.h"

#include "ds/Runtime/Program/Library.h"

#include <cstring>

namespace ds::rt {
namespace {

using test::call;
using test::Tensor;

uint16_t toBits(float value, DType dtype) {
  if (dtype == DType::F16)
    return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  const auto word = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>(std::isnan(value) ? word >> 16 | 0x40
                                                 : (word + 0x7fff + (word >> 16 & 1)) >> 16);
}
float fromBits(uint16_t bits, DType dtype) {
  return dtype == DType::F16 ? static_cast<float>(std::bit_cast<_Float16>(bits))
                             : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// A tensor of 16-bit floats beside the f32 tensor of the same numbers.
struct Narrow {
  Tensor<> &wide;
  DType dtype;
  std::vector<uint16_t> bits;

  /// Rounds `wide` as well, so that both hold the same.
  Narrow(Tensor<> &wide, DType dtype) : wide(wide), dtype(dtype) {
    for (float &value : wide.data) {
      bits.push_back(toBits(value, dtype));
      value = fromBits(bits.back(), dtype);
    }
  }
  View view() {
    return {bits.data(), wide.shape.data(), wide.strides.data(), static_cast<uint32_t>(wide.shape.size()),
            dtype};
  }
  /// The elements, and nothing around them, are the f32 tensor's, rounded.
  void expectRounded(const char *name) const {
    size_t wrong = 0;
    for (size_t i = 0; i < bits.size(); ++i)
      wrong += std::isnan(wide.data[i]) ? !std::isnan(fromBits(bits[i], dtype))
                                        : bits[i] != toBits(wide.data[i], dtype);
    EXPECT_EQ(wrong, 0u) << name << " of " << bits.size();
  }
};

class NarrowKernelTest : public testing::TestWithParam<std::tuple<Isa, DType>> {
protected:
  Isa isa() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
};

struct AttentionCase {
  int64_t b, t, s, h, g, d;
  bool causal;
  int64_t gap;
  bool hasForm = false; ///< a window, a cap and slopes
};

void checkAttention(const AttentionCase &c, Isa isa, DType dtype) {
  SCOPED_TRACE(testing::Message() << "T=" << c.t << " S=" << c.s << " D=" << c.d);
  Tensor<> q({c.b, c.t, c.h, c.d}, c.gap), k({c.b, c.s, c.g, c.d}, c.gap), v({c.b, c.s, c.g, c.d}, c.gap);
  Tensor<> out({c.b, c.t, c.h, c.d}), lse({c.b, c.h, c.t}), dout({c.b, c.t, c.h, c.d}),
      mask({1, 1, c.t, c.s});
  Tensor<> dq({c.b, c.t, c.h, c.d}, c.gap), dk({c.b, c.s, c.g, c.d}, c.gap), dv({c.b, c.s, c.g, c.d}, c.gap);
  uint32_t seed = 0;
  for (Tensor<> *tensor : {&q, &k, &v, &dout, &mask})
    tensor->randomize(++seed);
  Narrow lowQ(q, dtype), lowK(k, dtype), lowV(v, dtype), lowOut(out, dtype), lowDout(dout, dtype),
      lowDq(dq, dtype), lowDk(dk, dtype), lowDv(dv, dtype);
  std::vector<int64_t> params{c.causal, std::bit_cast<int64_t>(1.0 / std::sqrt(double(c.d)))};
  std::vector<View> added{mask.view()};
  Tensor<> slopes({c.h});
  slopes.randomize(9, 0.1f);
  if (c.hasForm) {
    params.insert(params.end(), {37, std::bit_cast<int64_t>(1.5)});
    added.push_back(slopes.view());
  }
  const auto with = [&](std::vector<View> operands) {
    operands.insert(operands.end(), added.begin(), added.end());
    return operands;
  };
  Tensor<> lowLse = lse;
  call(LibraryFn::AttentionForward, isa, with({q.view(), k.view(), v.view(), out.view(), lse.view()}),
       params);
  call(LibraryFn::AttentionForward, isa,
       with({lowQ.view(), lowK.view(), lowV.view(), lowOut.view(), lowLse.view()}), params);
  lowOut.expectRounded("out");
  lse.each([&, i = size_t(0)](float value) mutable { EXPECT_EQ(value, lowLse.data[i++]); });
  out.data = Narrow(out, dtype).wide.data; // backward of both reads the rounded output
  for (uint32_t threads : {1u, 3u}) {
    std::vector<float> workspace(2 * threads * c.s * c.d, NAN);
    call(LibraryFn::AttentionBackward, isa,
         with({q.view(), k.view(), v.view(), out.view(), lse.view(), dout.view(), dq.view(), dk.view(),
               dv.view()}),
         params);
    call(LibraryFn::AttentionBackward, isa,
         with({lowQ.view(), lowK.view(), lowV.view(), lowOut.view(), lse.view(), lowDout.view(), lowDq.view(),
               lowDk.view(), lowDv.view()}),
         params, threads, workspace.data());
    lowDq.expectRounded("dq");
    lowDk.expectRounded("dk");
    lowDv.expectRounded("dv");
  }
}

TEST_P(NarrowKernelTest, AttentionRoundsOnce) {
  checkAttention({2, 70, 70, 4, 2, 64, true, 0}, isa(), dtype());
  checkAttention({1, 130, 130, 2, 2, 33, true, 7}, isa(), dtype());
  checkAttention({1, 100, 40, 2, 1, 24, true, 0}, isa(), dtype()); // the first queries see nothing
  checkAttention({2, 40, 100, 2, 1, 256, false, 5}, isa(), dtype());
  checkAttention({1, 130, 130, 4, 2, 40, true, 0, true}, isa(), dtype());
  checkAttention({1, 90, 130, 2, 2, 40, false, 0, true}, isa(), dtype());
}

void checkCrossEntropy(const std::vector<int64_t> &params, Isa isa, DType dtype) {
  Tensor<> logits({70, 333}, 5), loss({}), lse({70}), count({}), dloss({}), grad({70, 333}, 5);
  Tensor<int64_t> targets({70});
  logits.randomize(7, 3);
  for (int64_t i = 0; i < 70; ++i)
    targets.data[i] = i % 7 == 3 ? -100 : i * 4;
  dloss.data = {512}; // a loss scale: f16 must not lose what is small
  Narrow low(logits, dtype), lowGrad(grad, dtype);
  Tensor<> lowLoss = loss, lowLse = lse, lowCount = count;
  auto forward = [&](View x, Tensor<> &loss, Tensor<> &lse, Tensor<> &count) {
    call(LibraryFn::CrossEntropyForward, isa, {x, targets.view(), loss.view(), lse.view(), count.view()},
         params);
  };
  forward(logits.view(), loss, lse, count);
  forward(low.view(), lowLoss, lowLse, lowCount);
  EXPECT_EQ(loss.data, lowLoss.data);
  EXPECT_EQ(lse.data, lowLse.data);
  EXPECT_EQ(count.data, lowCount.data);
  auto backward = [&](View x, View to) {
    call(LibraryFn::CrossEntropyBackward, isa,
         {x, targets.view(), lse.view(), count.view(), dloss.view(), to}, params);
  };
  backward(logits.view(), grad.view());
  backward(low.view(), lowGrad.view());
  lowGrad.expectRounded("gradient");
  backward(low.view(), low.view());
  for (int64_t i = 0; i < 70; ++i)
    ASSERT_EQ(std::memcmp(&low.bits[i * 338], &lowGrad.bits[i * 338], 333 * 2), 0) << "in place, row " << i;
}

TEST_P(NarrowKernelTest, CrossEntropyRoundsOnce) {
  checkCrossEntropy({-100}, isa(), dtype());
  checkCrossEntropy({-100, std::bit_cast<int64_t>(2.0)}, isa(), dtype());
}

TEST_P(NarrowKernelTest, EmbeddingAddsInSinglePrecision) {
  Tensor<> table({300, 70}, 2), rows({500, 70}), wideGrad({300, 70}, 2), narrowGrad({300, 70}, 2);
  Tensor<int32_t> ids({500});
  table.randomize(1);
  rows.randomize(2);
  std::mt19937 random(5);
  for (int32_t &id : ids.data)
    id = static_cast<int32_t>(random() % 4 == 0 ? 299 : random() % 20 * 14);
  ids.data[3] = 300; // outside: reads NaN, adds nowhere
  Narrow lowTable(table, dtype()), lowRows(rows, dtype());
  Tensor<> found({500, 70});
  Narrow lowFound(found, dtype());
  call(LibraryFn::EmbeddingForward, isa(), {table.view(), ids.view(), found.view()}, {});
  call(LibraryFn::EmbeddingForward, isa(), {lowTable.view(), ids.view(), lowFound.view()}, {});
  lowFound.expectRounded("rows");

  // Into f32, and into the low type: the same sums, from zero and onto what is there.
  Tensor<> expected({300, 70}, 2);
  Narrow lowGrad(narrowGrad, dtype());
  std::vector<int32_t> workspace(2 * 500);
  for (int64_t accumulate : {0, 1}) {
    expected.data = narrowGrad.data = Narrow(narrowGrad, dtype()).wide.data;
    call(LibraryFn::EmbeddingBackward, isa(), {ids.view(), rows.view(), expected.view()}, {accumulate});
    call(LibraryFn::EmbeddingBackward, isa(), {ids.view(), lowRows.view(), wideGrad.view()}, {accumulate});
    call(LibraryFn::EmbeddingBackward, isa(), {ids.view(), lowRows.view(), lowGrad.view()}, {accumulate}, 2,
         workspace.data());
    narrowGrad.data = expected.data;
    lowGrad.expectRounded("gradient");
    if (accumulate == 0)
      wideGrad.each([&, i = size_t(0)](float value) mutable {
        ASSERT_EQ(value, expected.data[i / 70 * 72 + i % 70]);
        ++i;
      });
    narrowGrad.data = Narrow(narrowGrad, dtype()).wide.data;
  }
}

TEST_P(NarrowKernelTest, FillRounds) {
  Tensor<> wide({9, 100}, 4);
  Narrow low(wide, dtype());
  call(LibraryFn::Fill, isa(), {wide.view()}, {std::bit_cast<int64_t>(0.1)});
  call(LibraryFn::Fill, isa(), {low.view()}, {std::bit_cast<int64_t>(0.1)});
  low.expectRounded("filled");
}

/// All 65536 numbers through a block of f32 and back; ties and their neighbours on the way back.
TEST_P(NarrowKernelTest, ConversionsAreExact) {
  std::vector<uint16_t> all(65536), back(65536);
  std::vector<float> wide(65536);
  std::iota(all.begin(), all.end(), uint16_t(0));
  widenBlock({all.data(), wide.data(), dtype(), 256, 256, 256, true, 2}, isa());
  for (size_t i = 0; i < all.size(); ++i) {
    const float expected = fromBits(all[i], dtype());
    ASSERT_TRUE(wide[i] == expected || (std::isnan(wide[i]) && std::isnan(expected))) << i;
  }
  for (int step : {-1, 0, 1}) {
    std::vector<float> middles = wide;
    for (size_t i = 0; i + 1 < wide.size(); ++i)
      if (std::isfinite(wide[i]) && std::isfinite(wide[i + 1]))
        middles[i] = std::bit_cast<float>(std::bit_cast<uint32_t>((wide[i] + wide[i + 1]) / 2) + step);
    finishBlock(
        {middles.data(), back.data(), nullptr, dtype(), dtype(), 256, 256, 256, 1, false, false, false, 2},
        isa());
    for (size_t i = 0; i < back.size(); ++i)
      ASSERT_TRUE(back[i] == toBits(middles[i], dtype()) ||
                  (std::isnan(middles[i]) && std::isnan(fromBits(back[i], dtype()))))
          << middles[i] << " became " << fromBits(back[i], dtype());
  }
}

/// bias, accumulation and activation in f32, rounded once; NaN passes the rectifier.
TEST_P(NarrowKernelTest, BlocksFinish) {
  constexpr int64_t kRows = 5, kColumns = 37;
  Tensor<> sums({kRows, kColumns}), bias({kColumns}), result({kRows, kColumns}, 3);
  sums.randomize(1);
  bias.randomize(2);
  result.randomize(3);
  sums.data[7] = NAN;
  Narrow lowBias(bias, dtype()), lowResult(result, dtype());
  finishBlock({sums.data.data(), lowResult.bits.data(), lowBias.bits.data(), dtype(), dtype(), kRows,
               kColumns, result.strides[0], 1, false, true, true, 2},
              isa());
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < kColumns; ++c) {
      const float x = sums.at({r, c}) + bias.at({c}) + result.at({r, c});
      result.at({r, c}) = x <= 0 ? 0 : x;
    }
  lowResult.expectRounded("result");
  EXPECT_TRUE(std::isnan(fromBits(lowResult.bits[7], dtype())));
}

INSTANTIATE_TEST_SUITE_P(Kernels, NarrowKernelTest,
                         testing::Combine(testing::ValuesIn(test::testableIsas()),
                                          testing::Values(DType::BF16, DType::F16)),
                         [](const auto &info) {
                           return "v" + std::to_string(static_cast<int>(std::get<0>(info.param))) + "_" +
                                  spell(std::get<1>(info.param));
                         });

} // namespace
} // namespace ds::rt
