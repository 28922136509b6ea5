//===- WorkbenchTest.cpp - Commands to measure -------------------------------------===//
#include "Calibrate/Workbench.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

using namespace ds;
using namespace ds::rt;

namespace {

/// A clock that a nanosecond passes on whenever it is looked at.
CalibrationClock ticking(int64_t &now) {
  return [&now] { return ++now; };
}

TEST(Workbench, RunsAProductInAllFormsOnItsOwnMemory) {
  Pool pool = std::move(*Pool::create(1 << 20));
  Workbench bench(pool, 1);
  const uint32_t a = bench.buffer(DType::F32, {8, 16}), b = bench.buffer(DType::F32, {16, 4}),
                 result = bench.buffer(DType::F32, {8, 4});
  const uint32_t plain = bench.call(LibraryFn::Matmul, {a, b, result}, {0, 0, 0, 0});
  const uint32_t byColumns =
      bench.call(LibraryFn::Matmul, {bench.alias(a, {16, 8}), b, result}, {1, 0, 0, 0});
  EXPECT_EQ(bench.bytes(plain), 4u * (8 * 16 + 16 * 4 + 8 * 4));
  ASSERT_TRUE(bench.bind());
  int64_t now = 0;
  for (const uint32_t command : {plain, byColumns}) {
    Result<Sample> sample = bench.measure(command, {1, 3, 3, 1, {}}, ticking(now));
    ASSERT_TRUE(sample) << sample.error().message;
    EXPECT_DOUBLE_EQ(sample->seconds, 1e-9);
  }
  // a is the pool's first 128 numbers, b follows: element (0, 0) of the plain product, written before.
  ASSERT_TRUE(bench.run(plain, 0));
  const auto *numbers = reinterpret_cast<const float *>(pool.data());
  float expected = 0;
  for (int k = 0; k < 16; ++k)
    expected += numbers[k] * numbers[128 + k * 4];
  EXPECT_NEAR(numbers[128 + 64], expected, 1e-5f);
}

TEST(Workbench, IdsStayBelowTheirLimitInEveryPlace) {
  Pool pool = std::move(*Pool::create(1 << 20));
  Workbench bench(pool, 1);
  const uint32_t table = bench.buffer(DType::F32, {5, 4}), ids = bench.buffer(DType::I64, {64}, 5),
                 out = bench.buffer(DType::F32, {64, 4});
  const uint32_t forward = bench.call(LibraryFn::EmbeddingForward, {table, ids, out}, {});
  ASSERT_TRUE(bench.bind());
  for (uint32_t place = 0; place < 6; ++place)
    ASSERT_TRUE(bench.run(forward, place));
  const auto *first = reinterpret_cast<const int64_t *>(pool.data() + 128); // after the table's 80 bytes
  for (int i = 0; i < 64; ++i) {
    EXPECT_GE(first[i], 0);
    EXPECT_LT(first[i], 5);
  }
}

TEST(Workbench, AttentionGivesNumbers) {
  Pool pool = std::move(*Pool::create(1 << 20));
  Workbench bench(pool, 2);
  const std::vector<int64_t> shape = {1, 32, 2, 16};
  std::vector<uint32_t> tensors;
  for (int i = 0; i < 4; ++i)
    tensors.push_back(bench.buffer(DType::F32, shape));
  tensors.push_back(bench.buffer(DType::F32, {1, 2, 32}));
  const uint32_t forward =
      bench.call(LibraryFn::AttentionForward, tensors, {1, std::bit_cast<int64_t>(0.25)});
  ASSERT_TRUE(bench.bind());
  ASSERT_TRUE(bench.run(forward, 0));
  const auto *out = reinterpret_cast<const float *>(pool.data() + 3 * 32 * 2 * 16 * sizeof(float));
  for (int i = 0; i < 32 * 2 * 16; ++i)
    ASSERT_TRUE(std::isfinite(out[i]) && out[i] > 0) << i;
}

TEST(Workbench, ACommandThatThePoolCannotHoldIsRefused) {
  Pool pool = std::move(*Pool::create(1 << 12));
  Workbench bench(pool, 1);
  bench.call(LibraryFn::Fill, {bench.buffer(DType::F32, {1 << 20})}, {0});
  Status status = bench.bind();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("4194304 bytes"), std::string::npos) << status.error().message;
}

} // namespace
