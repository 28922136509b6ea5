//===- AlignTest.cpp - Rounding up to powers of two -------------------------------===//
#include "ds/Support/Align.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

TEST(Align, GivesTheNextMultiple) {
  EXPECT_EQ(ds::alignTo(int64_t(0), 64), 0);
  EXPECT_EQ(ds::alignTo(int64_t(1), 64), 64);
  EXPECT_EQ(ds::alignTo(int64_t(64), 64), 64);
  EXPECT_EQ(ds::alignTo(int64_t(65), 64), 128);
  EXPECT_EQ(ds::alignTo(int64_t(7), 1), 7);
}

TEST(Align, CountsBeyond32Bits) {
  EXPECT_EQ(ds::alignTo((uint64_t(1) << 40) + 1, 4096), (uint64_t(1) << 40) + 4096);
}

} // namespace
