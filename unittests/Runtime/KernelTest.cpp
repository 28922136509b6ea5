//===- KernelTest.cpp - Embedding, cross-entropy, fill and copy ----------------===//
//
// Each against a plain loop in double, on every instruction set that the machine has.
//
//===---------------------------------------------------------------------------===//
#include "KernelTestUtil.h"

#include <algorithm>
#include <array>

namespace ds::rt {
namespace {

using test::call;
using test::Tensor;

class SmallKernelTest : public test::KernelTest {};

TEST_P(SmallKernelTest, EmbeddingLooksRowsUp) {
  Tensor<> table({10, 37}, 3), out({3, 2, 37});
  Tensor<int64_t> ids({3, 2});
  table.randomize(1);
  ids.data = {0, 9, 4, 4, 10, -1};
  call(LibraryFn::EmbeddingForward, GetParam(), {table.view(), ids.view(), out.view()}, {});
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t c = 0; c < 37; ++c)
      ASSERT_EQ(out.at({i / 2, i % 2, c}), table.at({ids.data[i], c}));
  EXPECT_TRUE(std::isnan(out.at({2, 0, 5}))) << "an id outside the table must not read other memory";
  EXPECT_TRUE(std::isnan(out.at({2, 1, 36})));
}

TEST_P(SmallKernelTest, EmbeddingGradientAddsInIndexOrder) {
  Tensor<> dout({500, 70}), table({7, 70}, 2), again({7, 70}, 2);
  Tensor<int32_t> ids({500});
  dout.randomize(2);
  std::mt19937 random(5);
  for (int32_t &id : ids.data)
    id = static_cast<int32_t>(random() % 6); // row 6 stays untouched
  ids.data[3] = 99;                          // outside: adds nowhere
  call(LibraryFn::EmbeddingBackward, GetParam(), {ids.view(), dout.view(), table.view()}, {0});
  std::vector<float> expected(7 * 70, 0.0f);
  for (int64_t i = 0; i < 500; ++i)
    for (int64_t c = 0; c < 70 && i != 3; ++c)
      expected[ids.data[i] * 70 + c] += dout.at({i, c});
  for (int64_t r = 0; r < 7; ++r)
    for (int64_t c = 0; c < 70; ++c)
      ASSERT_EQ(table.at({r, c}), expected[r * 70 + c]) << r << " " << c;
  again.data = table.data;
  call(LibraryFn::EmbeddingBackward, GetParam(), {ids.view(), dout.view(), again.view()}, {1});
  EXPECT_NEAR(again.at({2, 3}), 2 * table.at({2, 3}), 1e-4);
  EXPECT_EQ(again.at({6, 3}), 0.0f);
}

/// Loss and gradient in double; 0 is no cap.
struct Reference {
  double loss = 0;
  int64_t count = 0;
  std::vector<double> grad;

  Reference(Tensor<> &logits, const std::vector<int64_t> &targets, int64_t ignore, double dloss, double cap) {
    const auto bounded = [&](int64_t i, int64_t j) {
      return cap == 0 ? logits.at({i, j}) : cap * std::tanh(logits.at({i, j}) / cap);
    };
    const int64_t rows = logits.shape[0], size = logits.shape[1];
    grad.assign(rows * size, 0);
    for (int64_t target : targets)
      count += target != ignore;
    for (int64_t i = 0; i < rows; ++i) {
      if (targets[i] == ignore)
        continue;
      double top = -INFINITY, sum = 0;
      for (int64_t j = 0; j < size; ++j)
        top = std::max<double>(top, bounded(i, j));
      for (int64_t j = 0; j < size; ++j)
        sum += std::exp(bounded(i, j) - top);
      loss += (top + std::log(sum) - bounded(i, targets[i])) / double(count);
      for (int64_t j = 0; j < size; ++j) {
        const double ratio = cap == 0 ? 0 : bounded(i, j) / cap;
        grad[i * size + j] = (std::exp(bounded(i, j) - top) / sum - (j == targets[i])) * (1 - ratio * ratio) *
                             dloss / double(count);
      }
    }
  }
};

void checkCrossEntropy(Isa isa, const std::vector<int64_t> &params, double cap) {
  for (auto [rows, size] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 5}, {130, 67}, {70, 1000}}) {
    Tensor<> logits({rows, size}, 5), loss({}), lse({rows}), count({}), dloss({}), grad({rows, size}, 5);
    Tensor<int64_t> targets({rows});
    logits.randomize(7, 3);
    std::mt19937 random(11);
    for (int64_t &target : targets.data)
      target = random() % 5 == 0 && rows > 1 ? -100 : static_cast<int64_t>(random() % size);
    targets.data[0] = 0;
    dloss.data = {0.25f};
    const Reference expected(logits, targets.data, -100, 0.25, cap);
    call(LibraryFn::CrossEntropyForward, isa,
         {logits.view(), targets.view(), loss.view(), lse.view(), count.view()}, params);
    EXPECT_NEAR(loss.data[0], expected.loss, 1e-6 * std::max(1.0, expected.loss));
    EXPECT_EQ(count.data[0], static_cast<float>(expected.count));
    auto backward = [&](Tensor<> &to) {
      call(LibraryFn::CrossEntropyBackward, isa,
           {logits.view(), targets.view(), lse.view(), count.view(), dloss.view(), to.view()}, params);
    };
    backward(grad);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < size; ++j)
        ASSERT_NEAR(grad.at({i, j}), expected.grad[i * size + j], 2e-6 * 0.25) << i << " " << j;
    backward(logits); // in place
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < size; ++j)
        ASSERT_EQ(logits.at({i, j}), grad.at({i, j})) << "in place";
  }
}

/// One command has the gradient of two, to the bit, and their loss but for terms that are rounded to f32.
void checkWithGradient(Isa isa, const std::vector<int64_t> &params, const std::vector<View> &denominator) {
  constexpr int64_t kRows = 130, kSize = 67;
  Tensor<> logits({kRows, kSize}, 5), loss({}), lse({kRows}), count({}), dloss({}), grad({kRows, kSize}, 5),
      loss2({}), count2({}), terms({kRows});
  Tensor<int64_t> targets({kRows});
  logits.randomize(7, 3);
  for (int64_t i = 0; i < kRows; ++i)
    targets.data[i] = i % 5 == 3 ? -100 : i % kSize;
  dloss.data = {0.25f};
  std::vector<View> forward = {logits.view(), targets.view(), loss.view(), lse.view(), count.view()};
  forward.insert(forward.end(), denominator.begin(), denominator.end());
  call(LibraryFn::CrossEntropyForward, isa, forward, params);
  call(LibraryFn::CrossEntropyBackward, isa,
       {logits.view(), targets.view(), lse.view(), denominator.empty() ? count.view() : denominator[0],
        dloss.view(), grad.view()},
       params);
  std::vector<View> both = {logits.view(), targets.view(), dloss.view(),
                            loss2.view(),  count2.view(),  logits.view()};
  both.insert(both.end(), denominator.begin(), denominator.end());
  call(LibraryFn::CrossEntropyWithGradient, isa, both, params, 2, terms.data.data());
  EXPECT_NEAR(loss2.data[0], loss.data[0], 1e-7 * loss.data[0]);
  EXPECT_EQ(count2.data[0], count.data[0]);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kSize; ++j)
      ASSERT_EQ(logits.at({i, j}), grad.at({i, j})) << i << " " << j;
}

TEST_P(SmallKernelTest, CrossEntropyWithGradientIsBoth) {
  Tensor<> batch({});
  batch.data = {300};
  checkWithGradient(GetParam(), {-100}, {});
  checkWithGradient(GetParam(), {-100, std::bit_cast<int64_t>(4.0)}, {batch.view()});
}

TEST_P(SmallKernelTest, CrossEntropyMatchesTheDefinition) { checkCrossEntropy(GetParam(), {-100}, 0); }

TEST_P(SmallKernelTest, CrossEntropyOfCappedLogitsMatchesTheDefinition) {
  for (const double cap : {1.0, 4.0, 30.0}) // logits reach 10
    checkCrossEntropy(GetParam(), {-100, std::bit_cast<int64_t>(cap)}, cap);
  // Infinite logits are capped as well: two of four classes share what is left of exp(-2 * 2).
  Tensor<> logits({1, 4}), loss({}), lse({1}), count({});
  Tensor<int64_t> targets({1});
  logits.data = {INFINITY, INFINITY, -INFINITY, -INFINITY};
  targets.data = {0};
  call(LibraryFn::CrossEntropyForward, GetParam(),
       {logits.view(), targets.view(), loss.view(), lse.view(), count.view()},
       {-100, std::bit_cast<int64_t>(2.0)});
  EXPECT_NEAR(loss.data[0], std::log(2 + 2 * std::exp(-4.0)), 1e-6);
}

TEST_P(SmallKernelTest, CrossEntropiesOfPartsAddUp) {
  Tensor<> logits({70, 40}), loss({}), lse({70}), count({});
  Tensor<int64_t> targets({70});
  logits.randomize(3);
  for (int64_t i = 0; i < 70; ++i)
    targets.data[i] = i < 32 ? -100 : i % 40;
  auto lossOf = [&](int64_t begin, int64_t rows, const std::vector<View> &denominator) {
    View part = logits.view(), ids = targets.view(), statistic = lse.view();
    part.data = logits.data.data() + begin * 40;
    ids.data = targets.data.data() + begin;
    const int64_t shape[] = {rows, 40};
    part.shape = shape, ids.shape = shape, statistic.shape = shape;
    std::vector<View> operands = {part, ids, loss.view(), statistic, count.view()};
    operands.insert(operands.end(), denominator.begin(), denominator.end());
    call(LibraryFn::CrossEntropyForward, GetParam(), operands, {-100});
    return loss.data[0];
  };
  const float whole = lossOf(0, 70, {});
  Tensor<> denominator({});
  denominator.data = {38};
  EXPECT_EQ(lossOf(0, 32, {denominator.view()}), 0) << "a part of which all is ignored";
  EXPECT_EQ(count.data[0], 0);
  const float second = lossOf(32, 32, {denominator.view()}), third = lossOf(64, 6, {denominator.view()});
  EXPECT_EQ(count.data[0], 6);
  EXPECT_NEAR(second + third, whole, 1e-6 * whole);
}

/// Neither the loss nor the gradient has a share in anything, whatever the logits are.
TEST_P(SmallKernelTest, CrossEntropyWithoutATargetIsZero) {
  Tensor<> logits({3, 40}), loss({}), lse({3}), count({}), dloss({}), dlogits({3, 40});
  Tensor<int64_t> targets({3});
  logits.randomize(1);
  logits.data[7] = NAN;
  targets.data = {-100, -100, -100};
  dloss.data = {1};
  loss.data = {5};
  call(LibraryFn::CrossEntropyForward, GetParam(),
       {logits.view(), targets.view(), loss.view(), lse.view(), count.view()}, {-100});
  EXPECT_EQ(loss.data[0], 0);
  EXPECT_EQ(count.data[0], 0);
  call(LibraryFn::CrossEntropyBackward, GetParam(),
       {logits.view(), targets.view(), lse.view(), count.view(), dloss.view(), dlogits.view()}, {-100});
  for (const float gradient : dlogits.data)
    EXPECT_EQ(gradient, 0);
  call(LibraryFn::CrossEntropyForward, GetParam(),
       {logits.view(), targets.view(), loss.view(), lse.view(), count.view(), count.view()}, {-100});
  EXPECT_EQ(loss.data[0], 0) << "over a denominator of 0";
}

TEST_P(SmallKernelTest, CrossEntropyShowsWhatIsNotANumber) {
  Tensor<> logits({2, 40}), loss({}), lse({2}), count({});
  Tensor<int64_t> targets({2});
  auto lossOf = [&] {
    call(LibraryFn::CrossEntropyForward, GetParam(),
         {logits.view(), targets.view(), loss.view(), lse.view(), count.view()}, {-100});
    return loss.data[0];
  };
  logits.randomize(1);
  targets.data = {3, 4};
  EXPECT_TRUE(std::isfinite(lossOf()));
  targets.data = {3, 40};
  EXPECT_TRUE(std::isnan(lossOf())) << "a target outside the classes";
  targets.data = {3, 4};
  logits.data[41] = NAN;
  EXPECT_TRUE(std::isnan(lossOf()));
  logits.data[41] = 1e30f; // far out of range of exp, but not of log-sum-exp
  EXPECT_NEAR(lossOf() / 0.5e30, 1.0, 1e-6);
}

TEST_P(SmallKernelTest, FillSetsEveryElementAndNoOther) {
  Tensor<> matrix({9, 100}, 4);
  call(LibraryFn::Fill, GetParam(), {matrix.view()}, {std::bit_cast<int64_t>(2.5)});
  matrix.each([](float value) { ASSERT_EQ(value, 2.5f); });
  EXPECT_TRUE(std::isnan(matrix.data[100]));
  Tensor<int64_t> big({200000});
  call(LibraryFn::Fill, GetParam(), {big.view()}, {std::bit_cast<int64_t>(-3.0)});
  big.each([](int64_t value) { ASSERT_EQ(value, -3); });
}

/// Copies `from` read with permuted dimensions and compares element by element.
void checkCopy(Isa isa, std::vector<int64_t> shape, std::vector<size_t> order) {
  Tensor<> from(shape, 3);
  float next = 0;
  from.each([&](float &value) { value = next++; });
  Tensor<> view = from;
  std::vector<int64_t> permuted;
  for (size_t d = 0; d < order.size(); ++d) {
    permuted.push_back(shape[order[d]]);
    view.strides[d] = from.strides[order[d]];
  }
  view.shape = permuted;
  Tensor<> to(permuted, 5);
  call(LibraryFn::Copy, isa, {view.view(), to.view()}, {});
  std::vector<float> expected;
  view.each([&](float value) { expected.push_back(value); });
  std::vector<float> copied;
  to.each([&](float value) { copied.push_back(value); });
  EXPECT_EQ(copied, expected);
}

TEST_P(SmallKernelTest, CopyFollowsStrides) {
  checkCopy(GetParam(), {}, {});
  checkCopy(GetParam(), {100001}, {0});
  checkCopy(GetParam(), {70, 90}, {0, 1});
  checkCopy(GetParam(), {70, 90}, {1, 0});
  checkCopy(GetParam(), {5, 70, 3, 33}, {0, 2, 1, 3});
  checkCopy(GetParam(), {5, 70, 3, 33}, {0, 2, 3, 1});
  checkCopy(GetParam(), {4, 1, 17, 1}, {3, 2, 1, 0});
  checkCopy(GetParam(), {4, 0, 17}, {0, 1, 2});
}

TEST(Kernels, RandomNumbersAreTheSameEverywhere) {
  auto make = [](Isa isa, uint32_t threads, bool normal) {
    std::vector<float> data(100003);
    fillRandom({data.data(), 100003, 42, 7, 1.0f, 0.5f, normal, threads, 0}, isa);
    return data;
  };
  for (bool normal : {false, true})
    for (Isa isa : test::testableIsas())
      EXPECT_EQ(make(isa, 1, normal), make(bestIsa(), 3, normal)) << spell(isa);
}

TEST(Kernels, PartsOfRandomTensorsAreThePartsOfTheWhole) {
  std::vector<float> whole(1000), part(1000);
  for (bool normal : {false, true})
    for (Isa isa : test::testableIsas()) {
      fillRandom({whole.data(), 1000, 42, 7, 1.0f, 0.5f, normal, 2, 0}, isa);
      for (auto [first, count] :
           {std::pair(0, 1000), {1, 5}, {63, 2}, {64, 64}, {130, 870}, {999, 1}, {7, 0}}) {
        part.assign(1000, -1);
        fillRandom({part.data(), count, 42, 7, 1.0f, 0.5f, normal, 2, first}, isa);
        EXPECT_TRUE(std::equal(part.begin(), part.begin() + count, whole.begin() + first)) << first;
        EXPECT_EQ(part[count % 1000], count == 1000 ? whole[0] : -1) << first;
      }
    }
}

TEST(Kernels, RandomNumbersHaveTheirDistribution) {
  const int64_t count = 1 << 20;
  std::vector<float> data(count);
  auto moments = [&](bool normal, uint64_t stream) {
    fillRandom({data.data(), count, 1, stream, 0.0f, 1.0f, normal, 2, 0}, bestIsa());
    std::array<double, 4> sums{};
    for (float x : data)
      for (int power = 1; power <= 4; ++power)
        sums[power - 1] += std::pow(double(x), power) / double(count);
    return sums;
  };
  const auto normal = moments(true, 0);
  EXPECT_NEAR(normal[0], 0, 0.005);
  EXPECT_NEAR(normal[1], 1, 0.005);
  EXPECT_NEAR(normal[2], 0, 0.015);
  EXPECT_NEAR(normal[3], 3, 0.05);
  EXPECT_NE(moments(true, 1), normal) << "streams must differ";
  const auto uniform = moments(false, 0);
  EXPECT_NEAR(uniform[0], 0.5, 0.002);
  EXPECT_NEAR(uniform[1], 1.0 / 3, 0.002);
  EXPECT_GE(*std::min_element(data.begin(), data.end()), 0.0f);
  EXPECT_LT(*std::max_element(data.begin(), data.end()), 1.0f);
}

TEST(Kernels, ExpIsAccurate) {
  // Through the loss of one class against another: lse([x, 0]) - x tests exp over its whole range.
  for (float x = -90; x < 90; x += 0.37f) {
    Tensor<> logits({1, 2}), loss({}), lse({1}), count({});
    Tensor<int64_t> targets({1});
    logits.data = {x, 0};
    targets.data = {0};
    call(LibraryFn::CrossEntropyForward, bestIsa(),
         {logits.view(), targets.view(), loss.view(), lse.view(), count.view()}, {-100});
    const double expected = std::log1p(std::exp(-std::abs(double(x)))) + std::max(0.0, double(x));
    ASSERT_NEAR(lse.data[0], expected, 2e-7 * std::max(1.0, std::abs(expected))) << x;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SmallKernelTest, testing::ValuesIn(test::testableIsas()), test::isaName);

} // namespace
} // namespace ds::rt
