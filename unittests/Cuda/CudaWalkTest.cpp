//===- CudaWalkTest.cpp - Fill, copy, squares and random numbers of CUDA ---------===//
#include "../Runtime/SquaresInput.h"
#include "EmulatedLaunch.h"

namespace ds::rt {
namespace {

/// Memory of `bytes` bytes, the elements' and those around them.
std::vector<uint8_t> noise(size_t bytes) {
  std::vector<uint8_t> result(bytes);
  std::mt19937 random(3);
  for (uint8_t &byte : result)
    byte = static_cast<uint8_t>(random());
  return result;
}

TEST(CudaWalk, FillsWhatTheCpuFills) {
  const std::vector<int64_t> shape{3, 5, 16}, packed{80, 16, 1}, strided{100, 18, 1}, turned{1, 3, 15};
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I8,
                      DType::U8, DType::Bool})
    for (const auto &strides : {packed, strided, turned}) {
      std::vector<uint8_t> expected = noise(4096), got = expected;
      auto view = [&](std::vector<uint8_t> &data) {
        return View{data.data(), shape.data(), strides.data(), 3, dtype};
      };
      callCpu(LibraryFn::Fill, {view(expected)}, {std::bit_cast<int64_t>(3.7)});
      callCuda(LibraryFn::Fill, {view(got)}, {std::bit_cast<int64_t>(3.7)});
      EXPECT_EQ(got, expected) << int(dtype) << " stride " << strides[0];
    }
}

TEST(CudaWalk, CopiesWhatTheCpuCopies) {
  const std::vector<int64_t> shape{3, 5, 16}, packed{80, 16, 1}, strided{100, 18, 1}, turned{1, 3, 15};
  for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::U8})
    for (const auto &from : {packed, strided, turned})
      for (const auto &to : {packed, strided, turned}) {
        std::vector<uint8_t> source = noise(4096), expected(4096, 1), got(4096, 1);
        auto view = [&](std::vector<uint8_t> &data, const std::vector<int64_t> &strides) {
          return View{data.data(), shape.data(), strides.data(), 3, dtype};
        };
        callCpu(LibraryFn::Copy, {view(source, from), view(expected, to)}, {});
        callCuda(LibraryFn::Copy, {view(source, from), view(got, to)}, {});
        EXPECT_EQ(got, expected) << int(dtype) << " from " << from[0] << " to " << to[0];
      }
}

TEST(CudaWalk, MovesPackedMemoryBy16Bytes) {
  const int64_t shape[] = {64}, strides[] = {1};
  alignas(16) uint16_t from[64] = {}, to[64];
  std::vector<View> operands{{from, shape, strides, 1, DType::BF16}, {to, shape, strides, 1, DType::BF16}};
  const LibraryCall call{operands.data(), nullptr, 2, 0, 1};
  std::vector<cuda::CudaLaunch> launches = cuda::cudaLaunches(LibraryFn::Copy, call);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_STREQ(launches[0].entry, "ds_move_16");
  operands[0].data = from + 1;
  launches = cuda::cudaLaunches(LibraryFn::Copy, call);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_STREQ(launches[0].entry, "ds_walk_2");
}

/// Rows of `width` elements, `pitch` apart, into others: by the widest elements that rows and places allow.
TEST(CudaWalk, TakesSeveralElementsForOne) {
  const struct {
    DType dtype;
    int64_t width, fromPitch, toPitch, offset;
    const char *entry;
  } kCases[] = {{DType::BF16, 16, 24, 32, 0, "ds_walk_16"}, {DType::BF16, 16, 20, 32, 0, "ds_walk_8"},
                {DType::BF16, 18, 24, 32, 0, "ds_walk_4"},  {DType::BF16, 16, 24, 32, 2, "ds_walk_4"},
                {DType::BF16, 16, 17, 32, 0, "ds_walk_2"},  {DType::BF16, 16, 24, 32, 1, "ds_walk_2"},
                {DType::F32, 8, 12, 8, 0, "ds_walk_16"},    {DType::U8, 6, 8, 10, 0, "ds_walk_2"},
                {DType::F64, 2, 3, 2, 0, "ds_walk_8"}};
  for (const auto &c : kCases) {
    SCOPED_TRACE(testing::Message() << c.width << " of " << c.fromPitch << " to " << c.toPitch);
    const int64_t shape[] = {5, c.width}, fromStrides[] = {c.fromPitch, 1}, toStrides[] = {c.toPitch, 1};
    alignas(16) static uint8_t source[1024], expected[1024], got[1024];
    const std::vector<uint8_t> bytes = noise(1024);
    std::copy(bytes.begin(), bytes.end(), source);
    std::fill(std::begin(expected), std::end(expected), 1);
    std::fill(std::begin(got), std::end(got), 1);
    const auto operands = [&](uint8_t *to) {
      const int64_t at = c.offset * byteSize(c.dtype);
      return std::vector<View>{{source + at, shape, fromStrides, 2, c.dtype},
                               {to, shape, toStrides, 2, c.dtype}};
    };
    std::vector<View> views = operands(got);
    const std::vector<cuda::CudaLaunch> launches =
        cuda::cudaLaunches(LibraryFn::Copy, {views.data(), nullptr, 2, 0, 1});
    ASSERT_EQ(launches.size(), 1u);
    EXPECT_STREQ(launches[0].entry, c.entry);
    launch(launches[0]);
    callCpu(LibraryFn::Copy, operands(expected), {});
    EXPECT_TRUE(std::equal(std::begin(got), std::end(got), std::begin(expected)));
  }
}

TEST(CudaSquares, HaveTheBitsOfTheCpu) {
  std::vector<test::SquaresInput> inputs = test::manySquaresInputs();
  double expected = 0, got = 0;
  test::SquaresCall cpu(inputs, &expected), cuda(inputs, &got);
  callCpu(LibraryFn::SumOfSquares, cpu.operands, {}, cpu.sums.data());
  callCuda(LibraryFn::SumOfSquares, cuda.operands, {}, cuda.sums.data());
  EXPECT_EQ(got, expected);
  ASSERT_EQ(cuda.sums, cpu.sums);
  inputs[0].set(5, NAN);
  callCuda(LibraryFn::SumOfSquares, cuda.operands, {}, cuda.sums.data());
  EXPECT_TRUE(std::isnan(got));
}

/// The sums of one tensor's blocks, which the host adds up.
TEST(CudaSquares, GiveBlocksApart) {
  std::vector<test::SquaresInput> inputs;
  inputs.emplace_back(DType::BF16, std::vector<int64_t>{40000}, 3);
  double total = 0;
  test::SquaresCall whole(inputs, &total);
  callCpu(LibraryFn::SumOfSquares, whole.operands, {}, whole.sums.data());
  std::vector<float> got(3);
  const int64_t count = 3, unit = 1;
  callCuda(LibraryFn::SumOfSquares, {whole.operands[0], {got.data(), &count, &unit, 1, DType::F32}}, {},
           nullptr);
  EXPECT_EQ(got, std::vector<float>(whole.sums.begin(), whole.sums.begin() + 3));
}

/// 148 tensors, as GPT-2 has them, are one table; none of no elements is in it.
TEST(CudaSquares, TakeAsManyLaunchesAsTables) {
  const auto blocks = [](int64_t tensors, int64_t elements) {
    std::vector<test::SquaresInput> inputs;
    for (int64_t i = 0; i < tensors; ++i)
      inputs.emplace_back(DType::F32, std::vector<int64_t>{elements}, 1);
    double result;
    test::SquaresCall call(inputs, &result);
    std::vector<uint32_t> counts;
    for (const cuda::CudaLaunch &launch :
         cuda::cudaLaunches(LibraryFn::SumOfSquares,
                            {call.operands.data(), nullptr, uint32_t(tensors + 1), 0, 1, call.sums.data()}))
      counts.push_back(launch.blocks);
    return counts;
  };
  EXPECT_EQ(blocks(148, 16385), (std::vector<uint32_t>{296, 1}));
  EXPECT_EQ(blocks(170, 1), (std::vector<uint32_t>{170, 1}));
  EXPECT_EQ(blocks(341, 1), (std::vector<uint32_t>{170, 170, 1, 1}));
  EXPECT_EQ(blocks(3, 0), (std::vector<uint32_t>{1}));
}

TEST(CudaRandom, HasTheBitsOfTheCpu) {
  for (bool normal : {false, true})
    for (int64_t first : {0, 3, 130}) {
      std::vector<float> expected(1000), got(1000);
      auto call = [&](std::vector<float> &to) {
        return RandomCall{to.data(), int64_t(to.size()), 1234567890123u, 77, 0.5f, 0.02f, normal, 1, first};
      };
      fillRandom(call(expected), bestIsa());
      const std::vector<cuda::CudaLaunch> launches = cuda::cudaLaunches(call(got), got.data(), DType::F32);
      ASSERT_EQ(launches.size(), 1u);
      launch(launches[0]);
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i])) << i;
    }
}

TEST(CudaRandom, RoundsOnceToSixteenBits) {
  std::vector<float> wide(1000);
  const RandomCall call{wide.data(), 1000, 5, 77, 0.0f, 0.02f, true, 1, 3};
  fillRandom(call, bestIsa());
  for (DType dtype : {DType::BF16, DType::F16}) {
    std::vector<uint16_t> got(1000);
    for (const cuda::CudaLaunch &each : cuda::cudaLaunches(call, got.data(), dtype))
      launch(each);
    for (size_t i = 0; i < got.size(); ++i) {
      const auto word = std::bit_cast<uint32_t>(wide[i]);
      const uint16_t expected = dtype == DType::F16
                                    ? std::bit_cast<uint16_t>(static_cast<_Float16>(wide[i]))
                                    : static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
      ASSERT_EQ(got[i], expected) << i;
    }
  }
}

} // namespace
} // namespace ds::rt
