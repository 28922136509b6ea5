//===- AttentionTest.cpp - Attention against the definition in double ----------===//
//
// The reference forms the whole score matrix; the gradient's reference is the chain rule written out.
//
//===---------------------------------------------------------------------------===//
#include "KernelTestUtil.h"

#include "ds/Runtime/Data/Philox.h"

namespace ds::rt {
namespace {

using test::call;
using test::KernelTest;
using test::Tensor;

struct Case {
  int64_t b, t, s, h, g, d;
  bool causal, mask;
  int64_t gap;        ///< elements between heads, as when q, k and v are slices of one buffer
  int64_t window = 0; ///< 0: none
  double cap = 0;     ///< 0: none
  bool slopes = false;
  double dropout = 0;                  ///< 0: none
  int64_t firstHead = 0, allHeads = 0; ///< of those that dropout counts; 0: these are all
};

constexpr int64_t kSeed = -12345678901234, kCounter = 77, kDraw = 5;

/// What the probability of `number` is multiplied by: 0 where it is dropped.
double keptFactor(uint64_t number, double probability) {
  const std::array<uint32_t, 4> words = philox4x32(
      {static_cast<uint32_t>(number / 4), static_cast<uint32_t>(number / 4 >> 32), kDraw, kCounter},
      static_cast<uint64_t>(kSeed));
  return (words[number % 4] >> 8) * 0x1p-24f >= static_cast<float>(probability) ? 1 / (1 - probability) : 0;
}

/// One query's scores as the definition has them.
struct Row {
  std::vector<double> probabilities;
  std::vector<double> derivatives; ///< of the scores' cap
  double logSum;
};

struct Problem {
  Case c;
  double scale;
  Tensor<> q, k, v, out, lse, dout, dq, dk, dv, mask, slopes;
  Tensor<int64_t> generator, first;

  explicit Problem(Case c)
      : c(c), scale(1.0 / std::sqrt(double(c.d))), q({c.b, c.t, c.h, c.d}, c.gap),
        k({c.b, c.s, c.g, c.d}, c.gap), v({c.b, c.s, c.g, c.d}, c.gap), out({c.b, c.t, c.h, c.d}),
        lse({c.b, c.h, c.t}), dout({c.b, c.t, c.h, c.d}), dq({c.b, c.t, c.h, c.d}, c.gap),
        dk({c.b, c.s, c.g, c.d}, c.gap), dv({c.b, c.s, c.g, c.d}, c.gap), mask({1, c.h, c.t, c.s}),
        slopes({c.h}), generator({2}), first({}) {
    generator.data = {kSeed, kCounter};
    first.data = {c.firstHead};
    q.randomize(1);
    k.randomize(2);
    v.randomize(3);
    dout.randomize(4);
    mask.randomize(5);
    for (int64_t h = 0; h < c.h; ++h)
      slopes.data[h] = static_cast<float>(std::exp2(-double(h) - 1)); // as ALiBi's
    mask.at({0, 0, 0, 0}) = -INFINITY;
  }
  std::vector<int64_t> params() const {
    std::vector<int64_t> params = {c.causal, std::bit_cast<int64_t>(scale)};
    if (c.window != 0 || c.cap != 0 || c.dropout != 0)
      params.insert(params.end(), {c.window, std::bit_cast<int64_t>(c.cap)});
    if (c.dropout != 0)
      params.insert(params.end(), {std::bit_cast<int64_t>(c.dropout), kDraw, heads()});
    return params;
  }
  /// The operands of a command, with those that not all have.
  std::vector<View> with(std::vector<View> operands) {
    if (c.mask)
      operands.push_back(mask.view());
    if (c.slopes)
      operands.push_back(slopes.view());
    if (c.dropout != 0)
      operands.push_back(generator.view());
    if (c.allHeads > 0)
      operands.push_back(first.view());
    return operands;
  }
  /// That dropout counts.
  int64_t heads() const { return c.allHeads > 0 ? c.allHeads : c.h; }
  double kept(int64_t b, int64_t h, int64_t t, int64_t s) const {
    const int64_t head = b * heads() + c.firstHead + h;
    return c.dropout == 0 ? 1 : keptFactor(uint64_t((head * c.t + t) * c.s + s), c.dropout);
  }
  void forward(Isa isa, uint32_t threads = 2) {
    call(LibraryFn::AttentionForward, isa, with({q.view(), k.view(), v.view(), out.view(), lse.view()}),
         params(), threads);
  }
  void backward(Isa isa, uint32_t threads = 2) {
    call(LibraryFn::AttentionBackward, isa,
         with({q.view(), k.view(), v.view(), out.view(), lse.view(), dout.view(), dq.view(), dk.view(),
               dv.view()}),
         params(), threads);
  }
  bool sees(int64_t t, int64_t s) const {
    const int64_t own = t + c.s - c.t;
    return (!c.causal || s <= own) && (c.window == 0 || std::abs(own - s) < c.window);
  }
  Row row(int64_t b, int64_t h, int64_t t) {
    Row row{std::vector<double>(c.s, -INFINITY), std::vector<double>(c.s, 1), 0};
    std::vector<double> &p = row.probabilities;
    double top = -INFINITY, sum = 0;
    for (int64_t s = 0; s < c.s; ++s) {
      if (!sees(t, s))
        continue;
      p[s] = 0;
      for (int64_t d = 0; d < c.d; ++d)
        p[s] += double(q.at({b, t, h, d})) * k.at({b, s, h / (c.h / c.g), d});
      p[s] *= scale;
      if (c.cap != 0) {
        p[s] = std::tanh(p[s] / c.cap);
        row.derivatives[s] = 1 - p[s] * p[s];
        p[s] *= c.cap;
      }
      p[s] += c.mask ? mask.at({0, h, t, s}) : 0;
      p[s] += c.slopes ? slopes.at({h}) * double(s - (t + c.s - c.t)) : 0;
      top = std::max(top, p[s]);
    }
    for (double &x : p)
      sum += x = top == -INFINITY ? 0 : std::exp(x - top);
    for (double &x : p)
      x = sum > 0 ? x / sum : 0;
    row.logSum = top + std::log(sum);
    return row;
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
                                  << c.g << " D=" << c.d << " causal=" << c.causal << " mask=" << c.mask
                                  << " window=" << c.window << " cap=" << c.cap << " slopes=" << c.slopes);
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
        const Row row = p.row(b, h, t);
        const std::vector<double> &probs = row.probabilities;
        lse[(b * c.h + h) * c.t + t] = row.logSum;
        double delta = 0;
        for (int64_t d = 0; d < c.d; ++d) {
          for (int64_t s = 0; s < c.s; ++s)
            out[at(d)] += probs[s] * p.kept(b, h, t, s) * p.v.at({b, s, g, d});
          delta += out[at(d)] * p.dout.at({b, t, h, d});
        }
        for (int64_t s = 0; s < c.s; ++s) {
          double dprob = 0;
          for (int64_t d = 0; d < c.d; ++d) {
            dprob += double(p.dout.at({b, t, h, d})) * p.v.at({b, s, g, d}) * p.kept(b, h, t, s);
            dv[keyAt(s, d)] += probs[s] * p.kept(b, h, t, s) * p.dout.at({b, t, h, d});
          }
          const double dscore = probs[s] * (dprob - delta) * row.derivatives[s] * p.scale;
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

TEST_P(KernelTest, WindowsCapsAndSlopesMatchTheDefinition) {
  for (const Case &c : std::vector<Case>{
           {1, 200, 200, 2, 1, 32, true, false, 0, 70},         // crosses tiles
           {1, 200, 200, 2, 2, 16, true, false, 0, 2},          // each sees itself and its neighbour
           {2, 64, 64, 1, 1, 16, true, false, 0, 64},           // exactly all
           {1, 70, 70, 1, 1, 16, true, false, 0, 1000},         // more than all
           {1, 190, 190, 2, 1, 24, false, false, 0, 40},        // to both sides
           {1, 60, 200, 2, 1, 24, true, false, 0, 50},          // more keys: the first are seen by none
           {1, 200, 60, 2, 1, 24, true, false, 0, 50},          // fewer: the first queries see nothing
           {1, 200, 60, 2, 1, 24, false, false, 0, 30},         // nor some before the first key
           {1, 130, 130, 2, 1, 48, true, false, 5, 0, 0.7},     // a cap that bends most scores
           {1, 70, 70, 2, 2, 16, false, true, 0, 0, 50},        // and one that bends few, before the mask
           {1, 130, 130, 4, 2, 32, true, false, 0, 0, 0, true}, // slopes
           {1, 40, 100, 4, 2, 32, false, true, 0, 0, 0, true},  // from the end, beside a mask
           {2, 150, 150, 4, 2, 64, true, true, 64, 33, 2, true},
       })
    check(c, GetParam());
}

TEST_P(KernelTest, DropoutDrawsWhatATensorOfTheProbabilitiesWould) {
  const auto dropped = [](Case c, double probability) {
    c.dropout = probability;
    return c;
  };
  // Two heads of six, the third and the fourth: as the whole attention drops theirs.
  Case some = dropped({2, 70, 70, 2, 1, 16, true, false, 0}, 0.5);
  some.firstHead = 2, some.allHeads = 6;
  for (const Case &c : std::vector<Case>{
           some,
           dropped({2, 64, 64, 2, 2, 64, true, false, 0}, 0.1),
           dropped({2, 70, 70, 4, 2, 16, true, false, 0}, 0.5),  // rows begin within blocks of four
           dropped({1, 67, 131, 2, 1, 24, true, false, 0}, 0.3), // odd rows, more keys
           dropped({1, 40, 9, 3, 3, 33, false, true, 7}, 0.9),
           dropped({2, 150, 150, 4, 2, 64, true, true, 64, 33, 2, true}, 0.2),
       })
    check(c, GetParam());
}

/// Keys that no query sees are not read: not a number in them reaches no result. Theirs are gradients of 0.
TEST_P(KernelTest, AttentionSkipsWhatLiesOutsideTheWindow) {
  for (const bool causal : {true, false}) {
    // Queries stand at keys 448 to 511 and see 80 to either side: none sees those before 369.
    Problem p({1, 64, 512, 2, 1, 16, causal, false, 0, 80});
    constexpr int64_t kUnseen = 512 - 64 - 79;
    for (int64_t s = 0; s < kUnseen; ++s)
      for (int64_t d = 0; d < 16; ++d)
        p.k.at({0, s, 0, d}) = p.v.at({0, s, 0, d}) = NAN;
    p.forward(GetParam());
    p.backward(GetParam());
    p.out.each([](float value) { ASSERT_TRUE(std::isfinite(value)); });
    p.dq.each([](float value) { ASSERT_TRUE(std::isfinite(value)); });
    for (int64_t s = 0; s < 512; ++s)
      for (int64_t d = 0; d < 16; ++d) {
        ASSERT_EQ(p.dk.at({0, s, 0, d}) != 0, s >= kUnseen) << causal << " " << s;
        ASSERT_EQ(p.dv.at({0, s, 0, d}) != 0, s >= kUnseen) << causal << " " << s;
      }
  }
}

/// A window of all positions and no cap is what commands without them compute, bit by bit.
TEST_P(KernelTest, AttentionWithoutAFormHasTheSameBits) {
  Problem plain({1, 150, 150, 4, 2, 40, true, true, 0}), all({1, 150, 150, 4, 2, 40, true, true, 0, 150});
  for (Problem *p : {&plain, &all}) {
    p->forward(GetParam());
    p->backward(GetParam());
  }
  EXPECT_EQ(plain.out.data, all.out.data);
  EXPECT_EQ(plain.dq.data, all.dq.data);
  EXPECT_EQ(plain.dk.data, all.dk.data);
  EXPECT_EQ(plain.dv.data, all.dv.data);
}

TEST_P(KernelTest, AttentionDoesNotDependOnThreads) {
  const Case c{2, 200, 200, 6, 2, 64, true, false, 0, 90, 5, true};
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
