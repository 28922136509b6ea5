//===- CudaLossTest.cpp - Cross-entropy and its gradient on CUDA ----------------===//
//
// Apart and in one command, against the CPU's kernels, for rows that begin at any address, rows that shared
// memory holds and rows that it does not.
//
//===---------------------------------------------------------------------------===//
#include "EmulatedLaunch.h"

namespace ds::rt {
namespace {

class CudaLossTest : public testing::TestWithParam<DType> {
protected:
  DType dtype() const { return GetParam(); }
  /// Half a unit in the last place of a result, and what f32 sums in another order lose.
  float rounding() const { return dtype() == DType::F32 ? 2e-6f : dtype() == DType::F16 ? 1e-3f : 8e-3f; }
};

void checkCrossEntropy(DType dtype, float rounding, const std::vector<int64_t> &params) {
  constexpr int64_t kRows = 150, kSize = 1003; // rows that start at any address
  Numbers logits(dtype, {kRows, kSize}, 1, 2), dlogits(dtype, {kRows, kSize}, 2, 2),
      expected(dtype, {kRows, kSize}, 2, 2);
  Tensor<int64_t> targets({kRows});
  for (int64_t i = 0; i < kRows; ++i)
    targets.data[i] = i % 9 == 4 ? -100 : i * 6;
  Numbers loss(DType::F32, {1}, 1), lse(DType::F32, {kRows}, 1), count(DType::F32, {1}, 1);
  Numbers loss2 = loss, lse2 = lse, count2 = count, dloss(DType::F32, {1}, 5);
  callCpu(LibraryFn::CrossEntropyForward,
          {logits.view(), targets.view(), loss.view(), lse.view(), count.view()}, params);
  callCuda(LibraryFn::CrossEntropyForward,
           {logits.view(), targets.view(), loss2.view(), lse2.view(), count2.view()}, params);
  expectNear(lse2, lse, 1e-6f, "lse");
  expectNear(loss2, loss, 1e-6f, "loss");
  expectNear(count2, count, 0, "count");
  callCpu(LibraryFn::CrossEntropyBackward,
          {logits.view(), targets.view(), lse.view(), count.view(), dloss.view(), expected.view()}, params);
  callCuda(LibraryFn::CrossEntropyBackward,
           {logits.view(), targets.view(), lse.view(), count.view(), dloss.view(), dlogits.view()}, params);
  expectNear(dlogits, expected, rounding, "dlogits");
  const Numbers aside = dlogits;
  callCuda(LibraryFn::CrossEntropyBackward,
           {logits.view(), targets.view(), lse.view(), count.view(), dloss.view(), logits.view()}, params);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kSize; ++j)
      ASSERT_EQ(logits.at(i * (kSize + 2) + j), aside.at(i * (kSize + 2) + j)) << "in place";
}

TEST_P(CudaLossTest, CrossEntropy) {
  checkCrossEntropy(dtype(), rounding(), {-100});
  checkCrossEntropy(dtype(), rounding(), {-100, std::bit_cast<int64_t>(1.5)});
}

TEST_P(CudaLossTest, CrossEntropyOfAPart) {
  Numbers logits(dtype(), {70, 40}, 1), lse(DType::F32, {70}, 1), count(DType::F32, {1}, 1),
      loss(DType::F32, {1}, 1), expected(DType::F32, {1}, 1), batch(DType::F32, {1}, 1);
  batch.shape.data[0] = 300;
  Tensor<int64_t> targets({70});
  for (int64_t i = 0; i < 70; ++i)
    targets.data[i] = i % 40;
  callCpu(LibraryFn::CrossEntropyForward,
          {logits.view(), targets.view(), expected.view(), lse.view(), count.view(), batch.view()}, {-100});
  callCuda(LibraryFn::CrossEntropyForward,
           {logits.view(), targets.view(), loss.view(), lse.view(), count.view(), batch.view()}, {-100});
  expectNear(loss, expected, 1e-6f, "loss");
  EXPECT_EQ(count.at(0), 70);
  std::fill(targets.data.begin(), targets.data.end(), -100);
  callCuda(LibraryFn::CrossEntropyForward,
           {logits.view(), targets.view(), loss.view(), lse.view(), count.view(), batch.view()}, {-100});
  EXPECT_EQ(loss.at(0), 0) << "a part of which all is ignored";
  callCuda(LibraryFn::CrossEntropyForward,
           {logits.view(), targets.view(), loss.view(), lse.view(), count.view()}, {-100});
  EXPECT_EQ(loss.at(0), 0) << "a batch without a target";
}

TEST_P(CudaLossTest, CrossEntropyKeepsInfinities) {
  Numbers logits(dtype(), {3, 40}, 1), loss(DType::F32, {1}, 1), lse(DType::F32, {3}, 1),
      count(DType::F32, {1}, 1);
  Tensor<int64_t> targets({3});
  targets.data = {1, 2, 3};
  auto set = [&](size_t i, float value) {
    if (dtype() == DType::F32)
      logits.shape.data[i] = value;
    else
      logits.words[i] = dtype() == DType::F16 ? std::bit_cast<uint16_t>(static_cast<_Float16>(value))
                                              : static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  };
  for (size_t j = 0; j < 40; ++j)
    set(j, -INFINITY);
  set(45, INFINITY);
  set(85, NAN);
  callCuda(LibraryFn::CrossEntropyForward,
           {logits.view(), targets.view(), loss.view(), lse.view(), count.view()}, {-100});
  EXPECT_EQ(lse.at(0), -INFINITY);
  EXPECT_EQ(lse.at(1), INFINITY);
  EXPECT_TRUE(std::isnan(lse.at(2)));
}

/// A loss with its gradient, of `rows` rows of `size` logits `gap` apart.
struct LossCase {
  int64_t rows, size, gap;
  std::vector<int64_t> params = {-100};
  bool isPart = false; ///< of a batch of 300 rows
};

/// Targets of a case, each ninth from the fourth on ignored.
Tensor<int64_t> targetsOf(const LossCase &c) {
  Tensor<int64_t> targets({c.rows});
  for (int64_t i = 0; i < c.rows; ++i)
    targets.data[i] = i % 9 == 4 ? c.params[0] : i * 6007 % c.size;
  return targets;
}

/// Holds the one command to the CPU's forward and backward, and the gradient in place to that apart.
/// Exponentials of 16-bit logits are the processor's.
void checkWithGradient(DType dtype, float rounding, const LossCase &c) {
  SCOPED_TRACE(testing::Message() << c.rows << " x " << c.size << " gap " << c.gap);
  Numbers logits(dtype, {c.rows, c.size}, 1, c.gap), dlogits(dtype, {c.rows, c.size}, 2, c.gap),
      expected(dtype, {c.rows, c.size}, 2, c.gap);
  Tensor<int64_t> targets = targetsOf(c);
  Numbers loss(DType::F32, {1}, 1), count(DType::F32, {1}, 1), lse(DType::F32, {c.rows}, 1),
      dloss(DType::F32, {1}, 5), batch(DType::F32, {1}, 1), loss2 = loss, count2 = count;
  batch.shape.data[0] = 300;
  std::vector<View> forward = {logits.view(), targets.view(), loss.view(), lse.view(), count.view()};
  std::vector<View> both = {logits.view(), targets.view(), dloss.view(),
                            loss2.view(),  count2.view(),  dlogits.view()};
  if (c.isPart)
    forward.push_back(batch.view()), both.push_back(batch.view());
  callCpu(LibraryFn::CrossEntropyForward, forward, c.params);
  callCpu(LibraryFn::CrossEntropyBackward,
          {logits.view(), targets.view(), lse.view(), c.isPart ? batch.view() : count.view(), dloss.view(),
           expected.view()},
          c.params);
  std::vector<float> terms(c.rows + 1, 7.0f);
  callCuda(LibraryFn::CrossEntropyWithGradient, both, c.params, terms.data());
  EXPECT_EQ(terms[c.rows], 7.0f) << "beyond the workspace";
  expectNear(loss2, loss, 1e-6f, "loss");
  expectNear(count2, count, 0, "count");
  expectNear(dlogits, expected, rounding, "dlogits");
  const Numbers aside = dlogits;
  both[5] = both[0];
  callCuda(LibraryFn::CrossEntropyWithGradient, both, c.params, terms.data());
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.size; ++j)
      ASSERT_EQ(logits.at(i * (c.size + c.gap) + j), aside.at(i * (c.size + c.gap) + j)) << "in place";
}

TEST_P(CudaLossTest, WithGradient) {
  const int64_t cap = std::bit_cast<int64_t>(1.5);
  for (const LossCase &c : {LossCase{150, 1003, 2},
                            {150, 1003, 2, {-100, cap}},
                            {1, 5, 0},
                            {3, 1, 0},
                            {70, 40, 0, {7}, true},
                            {9, 4096, 0, {0}}})
    checkWithGradient(dtype(), rounding(), c);
}

/// 50257 words; 50304 fit into shared memory in 16 bits; 65000 do not.
TEST_P(CudaLossTest, WithGradientOfVocabularies) {
  for (const LossCase &c : {LossCase{2, 50257, 0}, {2, 50304, 0}, {2, 65001, 1}})
    checkWithGradient(dtype(), rounding(), c);
}

/// The gradient lies otherwise than the logits: no vector of one is a vector of the other.
TEST_P(CudaLossTest, GradientMayLieOtherwise) {
  Numbers logits(dtype(), {4, 1003}, 1, 2), apart(dtype(), {4, 1003}, 2, 5), alike(dtype(), {4, 1003}, 3, 2),
      loss(DType::F32, {1}, 1), count(DType::F32, {1}, 1), dloss(DType::F32, {1}, 5);
  Tensor<int64_t> targets({4});
  targets.data = {0, 1002, 501, -100};
  std::vector<float> terms(4);
  for (Numbers *to : {&apart, &alike})
    callCuda(LibraryFn::CrossEntropyWithGradient,
             {logits.view(), targets.view(), dloss.view(), loss.view(), count.view(), to->view()}, {-100},
             terms.data());
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 1003; ++j)
      ASSERT_EQ(apart.at(i * 1008 + j), alike.at(i * 1005 + j)) << i << " " << j;
}

TEST_P(CudaLossTest, WithGradientOfNothingIsZero) {
  Numbers logits(dtype(), {3, 40}, 1), dlogits(dtype(), {3, 40}, 2), loss(DType::F32, {1}, 1),
      count(DType::F32, {1}, 1), dloss(DType::F32, {1}, 5);
  Tensor<int64_t> targets({3});
  targets.data = {-100, -100, -100};
  std::vector<float> terms(3);
  callCuda(LibraryFn::CrossEntropyWithGradient,
           {logits.view(), targets.view(), dloss.view(), loss.view(), count.view(), dlogits.view()}, {-100},
           terms.data());
  EXPECT_EQ(loss.at(0), 0);
  EXPECT_EQ(count.at(0), 0);
  for (size_t i = 0; i < dlogits.size(); ++i)
    EXPECT_EQ(dlogits.at(i), 0);
}

/// A target that is no class shows, in the loss and not in the memory beside it.
TEST_P(CudaLossTest, WithGradientShowsWhatIsNoClass) {
  Numbers logits(dtype(), {3, 40}, 1), dlogits(dtype(), {3, 40}, 2), loss(DType::F32, {1}, 1),
      count(DType::F32, {1}, 1), dloss(DType::F32, {1}, 5);
  Tensor<int64_t> targets({3});
  targets.data = {1, 40, 3};
  std::vector<float> terms(3);
  callCuda(LibraryFn::CrossEntropyWithGradient,
           {logits.view(), targets.view(), dloss.view(), loss.view(), count.view(), dlogits.view()}, {-100},
           terms.data());
  EXPECT_TRUE(std::isnan(loss.at(0)));
  EXPECT_TRUE(std::isnan(terms[1]) && std::isfinite(terms[0]) && std::isfinite(terms[2]));
}

INSTANTIATE_TEST_SUITE_P(Types, CudaLossTest, testing::Values(DType::F32, DType::BF16, DType::F16),
                         [](const auto &info) { return std::string(spell(info.param)); });

} // namespace
} // namespace ds::rt
