//===- LostNumberTest.cpp - Which element of a tensor is not finite ------------===//
#include "Loss/LostNumber.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ds::rt {
namespace {

Buffer bufferOf(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides) {
  Buffer buffer;
  buffer.dtype = dtype;
  buffer.shape = std::move(shape);
  buffer.strides = std::move(strides);
  return buffer;
}

template <class T>
std::optional<LostElement> find(const Buffer &buffer, const std::vector<T> &values) {
  return findLostElement(buffer, reinterpret_cast<const std::byte *>(values.data()));
}

TEST(LostNumber, IsTheFirstThatIsNaNOrInfinite) {
  std::vector<float> values(40, 1.0f);
  const Buffer buffer = bufferOf(DType::F32, {4, 10}, {10, 1});
  EXPECT_FALSE(find(buffer, values));
  values[23] = INFINITY;
  values[31] = NAN;
  ASSERT_TRUE(find(buffer, values));
  EXPECT_EQ(find(buffer, values)->element, 23u);
  EXPECT_EQ(find(buffer, values)->value, INFINITY);
}

TEST(LostNumber, IsNoMask) {
  EXPECT_FALSE(find<float>(bufferOf(DType::F32, {3}, {1}), {0, -INFINITY, -INFINITY}));
  EXPECT_EQ(find<float>(bufferOf(DType::F32, {3}, {1}), {0, -INFINITY, NAN})->element, 2u);
}

TEST(LostNumber, IsFoundInEveryFloat) {
  EXPECT_EQ(find<uint16_t>(bufferOf(DType::F16, {3}, {1}), {0x7bff, 0xfc00, 0x7c00})->element, 2u);
  EXPECT_TRUE(std::isnan(find<uint16_t>(bufferOf(DType::BF16, {2}, {1}), {0x7f7f, 0xffc0})->value));
  EXPECT_EQ(find<double>(bufferOf(DType::F64, {2}, {1}), {1e308, INFINITY})->element, 1u);
  EXPECT_FALSE(find<int32_t>(bufferOf(DType::I32, {1}, {1}), {0x7f800000}));
}

/// Columns 1 and 2 of a matrix of 4: what lies between them is another tensor's.
TEST(LostNumber, IsOneOfTheTensorsOwn) {
  std::vector<float> values(12, NAN);
  for (size_t row = 0; row < 3; ++row)
    values[4 * row + 1] = values[4 * row + 2] = 0;
  const Buffer buffer = bufferOf(DType::F32, {3, 2}, {4, 1});
  const auto *data = reinterpret_cast<const std::byte *>(values.data() + 1);
  EXPECT_FALSE(findLostElement(buffer, data));
  values[4 * 2 + 1] = INFINITY; // row 2, column 0 of the window
  EXPECT_EQ(findLostElement(buffer, data)->element, 4u);
  EXPECT_FALSE(findLostElement(bufferOf(DType::F32, {0, 2}, {4, 1}), data));
  EXPECT_TRUE(findLostElement(bufferOf(DType::F32, {}, {}), data + 8 * 4));
}

} // namespace
} // namespace ds::rt
