//===- AttentionTest.cpp - Attention against the definition in double ----------===//
//
// The reference forms the whole score matrix; the gradient's reference is the chain rule written out.
//
//===---------------------------------------------------------------------------===//
#include "KernelTestUtil.h"

namespace ds::rt {
namespace {

using test::call;
using test::KernelTest;
using test::Tensor;

struct Case {
  int64_t b, t, s, h, g, d;
  bool causal, mask;
  int64_t gap; ///< elements between heads, as when q, k and v are slices of one buffer
};

struct Problem {
  Case c;
  double scale;
  Tensor<> q, k, v, out, lse, dout, dq, dk, dv, mask;

  explicit Problem(Case c)
      : c(c), scale(1.0 / std::sqrt(double(c.d))), q({c.b, c.t, c.h, c.d}, c.gap),
        k({c.b, c.s, c.g, c.d}, c.gap), v({c.b, c.s, c.g, c.d}, c.gap), out({c.b, c.t, c.h, c.d}),
        lse({c.b, c.h, c.t}), dout({c.b, c.t, c.h, c.d}), dq({c.b, c.t, c.h, c.d}, c.gap),
        dk({c.b, c.s, c.g, c.d}, c.gap), dv({c.b, c.s, c.g, c.d}, c.gap), mask({1, c.h, c.t, c.s}) {
    q.randomize(1);
    k.randomize(2);
    v.randomize(3);
    dout.randomize(4);
    mask.randomize(5);
    mask.at({0, 0, 0, 0}) = -INFINITY;
  }
  void forward(Isa isa, uint32_t threads = 2) {
    std::vector<View> operands{q.view(), k.view(), v.view(), out.view(), lse.view()};
    if (c.mask)
      operands.push_back(mask.view());
    call(LibraryFn::AttentionForward, isa, operands, {c.causal, std::bit_cast<int64_t>(scale)}, threads);
  }
  void backward(Isa isa, uint32_t threads = 2) {
    std::vector<View> operands{q.view(),    k.view(),  v.view(),  out.view(), lse.view(),
                               dout.view(), dq.view(), dk.view(), dv.view()};
    if (c.mask)
      operands.push_back(mask.view());
    call(LibraryFn::AttentionBackward, isa, operands, {c.causal, std::bit_cast<int64_t>(scale)}, threads);
  }
  /// Row of probabilities of one query, and its log sum of exponentials.
  std::vector<double> probabilities(int64_t b, int64_t h, int64_t t, double &logSum) {
    std::vector<double> p(c.s, -INFINITY);
    double top = -INFINITY, sum = 0;
    for (int64_t s = 0; s < c.s; ++s) {
      if (c.causal && s > t + c.s - c.t)
        continue;
      p[s] = 0;
      for (int64_t d = 0; d < c.d; ++d)
        p[s] += double(q.at({b, t, h, d})) * k.at({b, s, h / (c.h / c.g), d});
      p[s] = p[s] * scale + (c.mask ? mask.at({0, h, t, s}) : 0);
      top = std::max(top, p[s]);
    }
    for (double &x : p)
      sum += x = top == -INFINITY ? 0 : std::exp(x - top);
    for (double &x : p)
      x = sum > 0 ? x / sum : 0;
    logSum = top + std::log(sum);
    return p;
  }
};

void expectClose(Tensor<> &tensor, const std::vector<double> &expected, const char *name) {
  double worst = 0, largest = 1e-3;
  size_t i = 0;
  tensor.each([&](float value) {
    if (std::isinf(expected[i]) ? double(value) != expected[i] : !(std::abs(value - expected[i]) < 1e3))
      worst = INFINITY;
    else if (!std::isinf(expected[i]))
      worst = std::max(worst, std::abs(value - expected[i]));
    if (!std::isinf(expected[i]))
      largest = std::max(largest, std::abs(expected[i]));
    ++i;
  });
  EXPECT_LT(worst / largest, 3e-6) << name;
}

void check(const Case &c, Isa isa) {
  SCOPED_TRACE(testing::Message() << "B=" << c.b << " T=" << c.t << " S=" << c.s << " H=" << c.h << " G="
                                  << c.g << " D=" << c.d << " causal=" << c.causal << " mask=" << c.mask);
  Problem p(c);
  p.forward(isa);
  p.backward(isa);
  std::vector<double> out(c.b * c.t * c.h * c.d), lse(c.b * c.h * c.t), dq(out.size());
  std::vector<double> dk(c.b * c.s * c.g * c.d), dv(dk.size());
  for (int64_t b = 0; b < c.b; ++b)
    for (int64_t h = 0; h < c.h; ++h)
      for (int64_t t = 0; t < c.t; ++t) {
        const int64_t g = h / (c.h / c.g);
        auto at = [&](int64_t d) { return ((b * c.t + t) * c.h + h) * c.d + d; };
        auto keyAt = [&](int64_t s, int64_t d) { return ((b * c.s + s) * c.g + g) * c.d + d; };
        const std::vector<double> probs = p.probabilities(b, h, t, lse[(b * c.h + h) * c.t + t]);
        double delta = 0;
        for (int64_t d = 0; d < c.d; ++d) {
          for (int64_t s = 0; s < c.s; ++s)
            out[at(d)] += probs[s] * p.v.at({b, s, g, d});
          delta += out[at(d)] * p.dout.at({b, t, h, d});
        }
        for (int64_t s = 0; s < c.s; ++s) {
          double dprob = 0;
          for (int64_t d = 0; d < c.d; ++d) {
            dprob += double(p.dout.at({b, t, h, d})) * p.v.at({b, s, g, d});
            dv[keyAt(s, d)] += probs[s] * p.dout.at({b, t, h, d});
          }
          const double dscore = probs[s] * (dprob - delta) * p.scale;
          for (int64_t d = 0; d < c.d; ++d) {
            dq[at(d)] += dscore * p.k.at({b, s, g, d});
            dk[keyAt(s, d)] += dscore * p.q.at({b, t, h, d});
          }
        }
      }
  expectClose(p.out, out, "out");
  expectClose(p.lse, lse, "lse");
  expectClose(p.dq, dq, "dq");
  expectClose(p.dk, dk, "dk");
  expectClose(p.dv, dv, "dv");
}

TEST_P(KernelTest, AttentionMatchesTheDefinition) {
  for (const Case &c : std::vector<Case>{
           {2, 64, 64, 2, 2, 64, true, false, 0},
           {1, 130, 130, 2, 1, 64, true, false, 64}, // tiles that end early, slices of one buffer
           {2, 70, 70, 4, 2, 16, true, false, 0},    // grouped queries
           {1, 65, 65, 3, 3, 33, false, false, 7},   // head size that fills no vector
           {1, 5, 5, 1, 1, 1, true, false, 0},
           {1, 40, 100, 2, 1, 24, true, false, 0}, // more keys than queries: causality counts from the end
           {1, 100, 40, 2, 1, 24, true, false, 0}, // fewer: the first queries see nothing
           {1, 70, 90, 2, 2, 48, false, true, 0},  // mask
           {1, 66, 66, 2, 2, 256, true, true, 0},  // mask and causality, the largest head
       })
    check(c, GetParam());
}

TEST_P(KernelTest, AttentionDoesNotDependOnThreads) {
  const Case c{2, 200, 200, 6, 2, 64, true, false, 0};
  Problem one(c), four(c);
  one.forward(GetParam(), 1);
  one.backward(GetParam(), 1);
  four.forward(GetParam(), 4);
  four.backward(GetParam(), 4);
  EXPECT_EQ(one.out.data, four.out.data);
  EXPECT_EQ(one.dq.data, four.dq.data);
  EXPECT_EQ(one.dk.data, four.dk.data);
  EXPECT_EQ(one.dv.data, four.dv.data);
}

TEST_P(KernelTest, AttentionSurvivesLargeScores) {
  Problem p({1, 80, 80, 1, 1, 32, true, false, 0});
  for (float &x : p.q.data)
    x *= 1000;
  p.forward(GetParam());
  p.out.each([](float value) { ASSERT_TRUE(std::isfinite(value)); });
}

INSTANTIATE_TEST_SUITE_P(Attention, KernelTest, testing::ValuesIn(test::testableIsas()), test::isaName);

} // namespace
} // namespace ds::rt
