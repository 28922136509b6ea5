//===- ConvertTest.cpp - From a file's elements to a program's -----------------===//

#include "Formats/Convert.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace ds::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// Converts all of `values`; "" or the value and limit of the refusal.
template <class From, class To>
std::string convert(FileDType from, const std::vector<From> &values, DType to, std::vector<To> &out,
                    const IndexRule &rule = {}) {
  BadElement bad;
  out.assign(values.size(), To());
  if (convertElements(from, values.data(), to, out.data(), values.size(), rule, bad))
    return "";
  return std::to_string(bad.position) + ": " + bad.value + " not in " + bad.limit;
}

TEST(ConvertTest, WhichPairsAreConverted) {
  EXPECT_TRUE(isConvertible(FileDType::U16, DType::I64));
  EXPECT_TRUE(isConvertible(FileDType::I64, DType::I32));
  EXPECT_TRUE(isConvertible(FileDType::F16, DType::F32));
  EXPECT_TRUE(isConvertible(FileDType::F32, DType::BF16));
  EXPECT_TRUE(isConvertible(FileDType::F32, DType::F64));
  EXPECT_TRUE(isConvertible(FileDType::Bool, DType::Bool));
  EXPECT_FALSE(isConvertible(FileDType::F32, DType::I64)); // floats are no indices
  EXPECT_FALSE(isConvertible(FileDType::U8, DType::F32));  // what would the scale be?
  EXPECT_FALSE(isConvertible(FileDType::F64, DType::F32)); // numpy's default, usually a mistake
  EXPECT_FALSE(isConvertible(FileDType::F16, DType::BF16));
  EXPECT_FALSE(isConvertible(FileDType::Bool, DType::I64));
  EXPECT_FALSE(isConvertible(FileDType::U8, DType::Bool));
  EXPECT_FALSE(isConvertible(FileDType::F8E4M3, DType::F32));
  EXPECT_FALSE(isConvertible(FileDType::C64, DType::F32));
}

TEST(ConvertTest, IntegersAreWidened) {
  std::vector<int64_t> out;
  EXPECT_EQ(convert<uint16_t>(FileDType::U16, {0, 65535}, DType::I64, out), "");
  EXPECT_THAT(out, ElementsAre(0, 65535));
  EXPECT_EQ(convert<int8_t>(FileDType::I8, {-128, 127}, DType::I64, out), "");
  EXPECT_THAT(out, ElementsAre(-128, 127));
}

TEST(ConvertTest, IntegersMustFit) {
  std::vector<int32_t> out;
  EXPECT_EQ(convert<int64_t>(FileDType::I64, {INT32_MIN, INT32_MAX}, DType::I32, out), "");
  EXPECT_EQ(convert<int64_t>(FileDType::I64, {0, int64_t(1) << 31}, DType::I32, out),
            "1: 2147483648 not in the range of I32");
  EXPECT_EQ(convert<uint32_t>(FileDType::U32, {0xffffffff}, DType::I32, out),
            "0: 4294967295 not in the range of I32");
  std::vector<int64_t> wide;
  EXPECT_EQ(convert<uint64_t>(FileDType::U64, {UINT64_MAX}, DType::I64, wide),
            "0: 18446744073709551615 not in the range of I64");
  std::vector<uint8_t> bytes;
  EXPECT_EQ(convert<int64_t>(FileDType::I64, {-1}, DType::U8, bytes), "0: -1 not in the range of U8");
}

TEST(ConvertTest, IndicesStayBelowTheLimit) {
  std::vector<int64_t> out;
  IndexRule rule{10, false, 0};
  EXPECT_EQ(convert<int64_t>(FileDType::I64, {0, 9}, DType::I64, out, rule), "");
  EXPECT_EQ(convert<int64_t>(FileDType::I64, {0, 9, 10}, DType::I64, out, rule),
            "2: 10 not in 0 <= value < 10");
  EXPECT_EQ(convert<int64_t>(FileDType::I64, {-1}, DType::I64, out, rule), "0: -1 not in 0 <= value < 10");
  rule = {10, true, -100};
  EXPECT_EQ(convert<int64_t>(FileDType::I64, {-100, 3}, DType::I64, out, rule), "");
  EXPECT_EQ(convert<int64_t>(FileDType::I64, {-1}, DType::I64, out, rule),
            "0: -1 not in 0 <= value < 10 or -100");
}

TEST(ConvertTest, BooleansAreZeroOrOne) {
  std::vector<uint8_t> out;
  EXPECT_EQ(convert<uint8_t>(FileDType::Bool, {0, 1}, DType::Bool, out), "");
  EXPECT_EQ(convert<uint8_t>(FileDType::Bool, {0, 2}, DType::Bool, out), "1: 2 not in 0 or 1");
}

TEST(ConvertTest, EveryHalfSurvivesTheWayToFloatAndBack) {
  for (FileDType dtype : {FileDType::F16, FileDType::BF16}) {
    std::vector<uint16_t> all(65536), back;
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = uint16_t(i);
    std::vector<float> wide;
    ASSERT_EQ(convert(dtype, all, DType::F32, wide), "");
    ASSERT_EQ(convert(FileDType::F32, wide, *toDType(dtype), back), "");
    for (size_t i = 0; i < all.size(); ++i)
      if (std::isnan(wide[i])) // quieted, but with sign and payload
        ASSERT_EQ(back[i] | (dtype == FileDType::F16 ? 0x200 : 0x40),
                  all[i] | (dtype == FileDType::F16 ? 0x200 : 0x40));
      else
        ASSERT_EQ(back[i], all[i]);
  }
}

TEST(ConvertTest, HalvesMeanWhatTheyShould) {
  std::vector<float> out;
  EXPECT_EQ(convert<uint16_t>(FileDType::F16, {0x3c00, 0xc000, 0x7bff, 0x0001, 0x0400, 0x8000, 0x7c00},
                              DType::F32, out),
            "");
  EXPECT_THAT(out, ElementsAre(1.0f, -2.0f, 65504.0f, 0x1p-24f, 0x1p-14f, -0.0f, INFINITY));
  EXPECT_TRUE(std::signbit(out[5]));
  EXPECT_EQ(convert<uint16_t>(FileDType::BF16, {0x3f80, 0xc000, 0x0001}, DType::F32, out), "");
  EXPECT_THAT(out, ElementsAre(1.0f, -2.0f, 0x1p-133f));
}

TEST(ConvertTest, RoundsToNearestEven) {
  std::vector<uint16_t> out;
  // F16 has 10 bits of fraction: 1 + 2^-11 is half-way between 1 and 1 + 2^-10, 1 + 3 * 2^-11 between the
  // next two.
  EXPECT_EQ(convert<float>(FileDType::F32, {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1p-11f + 0x1p-20f},
                           DType::F16, out),
            "");
  EXPECT_THAT(out, ElementsAre(0x3c00, 0x3c02, 0x3c01));
  // Subnormals: multiples of 2^-24.
  EXPECT_EQ(convert<float>(FileDType::F32, {0x1p-25f, 3 * 0x1p-25f, 0x1p-26f, 0x1.ffep-15f}, DType::F16, out),
            "");
  EXPECT_THAT(out, ElementsAre(0x0000, 0x0002, 0x0000, 0x0400));
  // BF16 has 7.
  EXPECT_EQ(convert<float>(FileDType::F32, {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, -1 - 0x1p-8f}, DType::BF16, out),
            "");
  EXPECT_THAT(out, ElementsAre(0x3f80, 0x3f82, 0xbf80));
}

TEST(ConvertTest, OverflowIsRefusedButInfinityIsNot) {
  std::vector<uint16_t> out;
  EXPECT_EQ(convert<float>(FileDType::F32, {65519.0f, INFINITY, -INFINITY}, DType::F16, out), "");
  EXPECT_THAT(out, ElementsAre(0x7bff, 0x7c00, 0xfc00));
  EXPECT_THAT(convert<float>(FileDType::F32, {0, 65520.0f}, DType::F16, out),
              HasSubstr("1: 65520.000000 not in"));
  EXPECT_THAT(convert<float>(FileDType::F32, {std::numeric_limits<float>::max()}, DType::BF16, out),
              HasSubstr("the largest BF16"));
  EXPECT_EQ(convert<float>(FileDType::F32, {NAN}, DType::BF16, out), "");
  EXPECT_GT(out[0] & 0x7fff, 0x7f80);
}

TEST(ConvertTest, PointersNeedNoAlignment) {
  char source[1 + 2 * sizeof(float)], target[1 + 2 * sizeof(double)];
  float values[] = {1.5f, -2.0f};
  memcpy(source + 1, values, sizeof(values));
  BadElement bad;
  ASSERT_TRUE(convertElements(FileDType::F32, source + 1, DType::F64, target + 1, 2, {}, bad));
  double wide[2];
  memcpy(wide, target + 1, sizeof(wide));
  EXPECT_THAT(wide, ElementsAre(1.5, -2.0));
}
} // namespace
