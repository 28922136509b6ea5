//===- RowPitchTest.cpp - How far apart rows lie ------------------------------------===//
#include "ds/Cost/RowPitch.h"

#include <gtest/gtest.h>

namespace ds::cost {
namespace {

TEST(RowPitch, RowsOfVocabularies) {
  EXPECT_EQ(rowPitch(50257, 2), 50304) << "GPT-2: 785.3 lines of 128 bytes";
  EXPECT_EQ(rowPitch(25129, 2), 25152) << "half of it: 50258 bytes are 392.6 lines";
  EXPECT_EQ(rowPitch(30522, 2), 30528) << "BERT";
  EXPECT_EQ(rowPitch(50257, 4), 50272);
  EXPECT_EQ(rowPitch(50257, 8), 50272);
  EXPECT_EQ(rowPitch(50257, 1), 50304);
}

TEST(RowPitch, WholeUnitsStayAsTheyAre) {
  for (int64_t elements : {8, 1000, 50264, 50304})
    EXPECT_EQ(rowPitch(elements, 2), std::nullopt) << elements;
  EXPECT_EQ(rowPitch(50260, 4), std::nullopt);
}

/// A line is taken where it adds at most 1/64, a unit where it adds at most 1/16.
TEST(RowPitch, ShortRowsGetLess) {
  EXPECT_EQ(rowPitch(4033, 2), 4096) << "126 bytes of 8066 are 1/64.02";
  EXPECT_EQ(rowPitch(3969, 2), 3976) << "126 bytes of 7938 are 1/63";
  EXPECT_EQ(rowPitch(257, 2), 264) << "14 bytes of 514";
  EXPECT_EQ(rowPitch(113, 2), 120) << "14 bytes of 226 are 1/16.1";
  EXPECT_EQ(rowPitch(105, 2), std::nullopt) << "14 bytes of 210 are 1/15";
  EXPECT_EQ(rowPitch(61, 2), 64) << "6 bytes of 122";
  EXPECT_EQ(rowPitch(1, 2), std::nullopt);
}

/// No row gets shorter, and none a unit longer than it must.
TEST(RowPitch, IsTheNextMultiple) {
  for (int64_t bytes : {1, 2, 4, 8})
    for (int64_t elements = 1; elements < 9000; ++elements)
      if (std::optional<int64_t> pitch = rowPitch(elements, bytes)) {
        const int64_t between = (*pitch - elements) * bytes;
        const int64_t unit = *pitch * bytes % 128 == 0 && between * 64 <= elements * bytes ? 128 : 16;
        ASSERT_EQ(*pitch * bytes % unit, 0) << elements << " of " << bytes;
        ASSERT_TRUE(between > 0 && between < unit && between * 16 <= elements * bytes)
            << elements << " of " << bytes;
      }
}

} // namespace
} // namespace ds::cost
