//===- PackedRowsTest.cpp - Which operands of a product are copied, and where to ----===//
#include "ds/Runtime/Program/PackedRows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::rt {
namespace {

using testing::ElementsAre;

/// [rows, columns] in rows `pitch` apart, or columns where it is transposed.
struct Matrix {
  int64_t rows, columns, pitch;
  bool isTransposed = false;
  DType dtype = DType::BF16;
};

MatmulDesc describe(const Matrix &a, const Matrix &b, const Matrix &result, bool accumulate = false) {
  MatmulDesc desc{};
  desc.rank = 2;
  desc.bias = -1;
  desc.accumulate = accumulate;
  const Matrix *from[] = {&a, &b, &result};
  MatmulOperand *to[] = {&desc.a, &desc.b, &desc.result};
  for (int i = 0; i < 3; ++i) {
    const Matrix &m = *from[i];
    *to[i] = {{m.rows, m.columns},
              {m.isTransposed ? 1 : m.pitch, m.isTransposed ? m.pitch : 1},
              static_cast<int32_t>(m.dtype)};
  }
  return desc;
}

TEST(PackedRows, CopiesWhatHasOddRows) {
  // Logits in rows that lie apart, of a weight [16, 137] as it is, whose copy has whole lines of 128 bytes:
  // 137 * 2 = 274 bytes go into three lines, of 192 elements.
  const auto weight = packRows(describe({24, 16, 16}, {16, 137, 137}, {24, 137, 144}));
  ASSERT_TRUE(weight);
  EXPECT_THAT(weight->pitch, ElementsAre(0, 192, 0));
  EXPECT_EQ(weight->bytes, 16u * 192 * 2);
  EXPECT_EQ(weight->copied, 2u * 16 * 137 * 2);
  const MatmulOperand there = packed(describe({24, 16, 16}, {16, 137, 137}, {24, 137, 144}).b, 192);
  EXPECT_EQ(there.strides[0], 192);
  EXPECT_EQ(there.strides[1], 1);

  // Its gradient, and the gradient of what it is multiplied by, where columns of w^T lie together.
  const auto gradient = packRows(describe({16, 24, 16, true}, {24, 137, 144}, {16, 137, 137}));
  ASSERT_TRUE(gradient);
  EXPECT_THAT(gradient->pitch, ElementsAre(0, 0, 192));
  const auto input = packRows(describe({24, 137, 144}, {137, 16, 137, true}, {24, 16, 16}));
  ASSERT_TRUE(input);
  EXPECT_THAT(input->pitch, ElementsAre(0, 192, 0));
  EXPECT_EQ(input->bytes, weight->bytes);
  EXPECT_EQ(packed(describe({24, 137, 144}, {137, 16, 137, true}, {24, 16, 16}).b, 192).strides[1], 192);
}

TEST(PackedRows, LieOneAfterAnother) {
  // 24 rows of 384 bytes, then 16 of those; a result of f32, 137 * 4 = 548 bytes, in 5 lines of 32 elements,
  // which is read as well where it is added to.
  const auto all = packRows(
      describe({24, 16, 16}, {16, 137, 137}, {24, 137, 137, false, DType::F32}, /*accumulate=*/true));
  ASSERT_TRUE(all);
  EXPECT_THAT(all->pitch, ElementsAre(0, 192, 160));
  EXPECT_THAT(all->offset, ElementsAre(0, 0, 16 * 384));
  EXPECT_EQ(all->bytes, 16u * 384 + 24 * 640);
  EXPECT_EQ(all->copied, 2u * 16 * 137 * 2 + 4 * 24 * 137 * 4);
  // Copies begin on 256 bytes.
  const auto odd = packRows(describe({5, 16, 17}, {16, 137, 137}, {5, 137, 137}));
  EXPECT_FALSE(odd) << "two sizes are odd";
  const auto two = packRows(describe({24, 137, 137}, {137, 16, 16}, {24, 16, 17}));
  ASSERT_TRUE(two);
  EXPECT_THAT(two->offset, ElementsAre(0, 0, 24 * 384));
  EXPECT_EQ(two->bytes, 24u * 384 + 24 * 128);
}

TEST(PackedRows, AreNotForWhatTheyWouldNotHelp) {
  const Matrix x{24, 16, 16}, y{24, 137, 144};
  EXPECT_FALSE(packRows(describe(x, {16, 137, 144}, y))) << "all rows begin on 16 bytes";
  EXPECT_FALSE(packRows(describe(x, {16, 136, 137}, {24, 136, 136}))) << "sizes are whole";
  EXPECT_FALSE(packRows(describe(x, {16, 79, 79}, {24, 79, 80}))) << "the rest is much";
  EXPECT_FALSE(packRows(describe({24, 16, 16, false, DType::F32}, {16, 137, 137, false, DType::F32}, y)))
      << "factors of 32 bits";
  MatmulDesc batch = describe(x, {16, 137, 137}, y);
  batch.rank = 3;
  EXPECT_FALSE(packRows(batch));
}

} // namespace
} // namespace ds::rt
