//===- NumbersTest.cpp - Numbers on a command line ---------------------------------===//
#include "ds/Support/Numbers.h"

#include "gmock/gmock.h"

#include <cstdint>

using namespace ds;
using testing::HasSubstr;

namespace {

TEST(NumbersTest, WholeNumbersAreRead) {
  EXPECT_EQ(*parseWhole("--n", "0"), 0u);
  EXPECT_EQ(*parseWhole("--n", "42"), 42u);
  EXPECT_EQ(*parseWhole("--n", "18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(*parseWhole("--n", "7", 1, 7), 7u);
}

TEST(NumbersTest, WhatIsNoWholeNumberIsRefusedByName) {
  for (const char *text :
       {"", " ", "-1", "+1", "010", "00", "0x10", "1e3", "1.0", "1 ", " 1", "1k", "1_000", "nan", "inf",
        "18446744073709551616", "99999999999999999999999", "1\n", "\xd9\xa1"}) {
    Result<uint64_t> value = parseWhole("--steps", text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, ExitCode::Usage);
    EXPECT_THAT(value.error().message, HasSubstr("--steps expects a whole number from 0 to "));
    EXPECT_FALSE(value.error().hint.empty());
  }
  EXPECT_THAT(parseWhole("--n", "-5").error().message, HasSubstr("but got '-5'"));
  EXPECT_THAT(parseWhole("--n", "1\x1b[2J").error().message, HasSubstr("'1?[2J'"));
}

TEST(NumbersTest, WholeNumbersHaveLimits) {
  EXPECT_FALSE(parseWhole("--n", "0", 1, 1024));
  EXPECT_FALSE(parseWhole("--n", "1025", 1, 1024));
  EXPECT_EQ(parseWhole("--n", "1025", 1, 1024).error().message,
            "--n expects a whole number from 1 to 1024, but got '1025'");
}

TEST(NumbersTest, RealNumbers) {
  EXPECT_EQ(*parseReal("--timeout", "0.5", 0.1, 1e6), 0.5);
  EXPECT_EQ(*parseReal("--timeout", "1e3", 0.1, 1e6), 1000);
  for (const char *text : {"", "nan", "NaN", "inf", "infinity", "-1", "+1", "0", "0.05", "1e7", "1e999",
                           "0x1p3", "1s", " 1", "1 ", "007", ".5", "1e"}) {
    Result<double> value = parseReal("--timeout", text, 0.1, 1e6);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, ExitCode::Usage);
    EXPECT_THAT(value.error().message, HasSubstr("--timeout expects a number from 0.1 to 1e+06, but got '"));
  }
}

TEST(NumbersTest, Bytes) {
  EXPECT_EQ(*parseBytes("--memory", "1"), 1u);
  EXPECT_EQ(*parseBytes("--memory", "512MiB"), 512u << 20);
  EXPECT_EQ(*parseBytes("--memory", "1.5GiB"), 3ull << 29);
  EXPECT_EQ(*parseBytes("--memory", "8KiB"), 8192u);
  for (const char *text : {"", "0", "-1", "nan", "inf", "010", "1e9", "8GB", "8 GiB", "GiB", "1.2.3MiB",
                           "0.5", "18446744073709551616", "9999999999GiB", "1GiB ", "0x10"}) {
    Result<uint64_t> value = parseBytes("--memory", text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, ExitCode::Usage);
    EXPECT_THAT(value.error().message, HasSubstr("--memory expects a positive number of bytes, but got '"));
  }
}

} // namespace
