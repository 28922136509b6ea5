//===- HeldBytesTest.cpp - Ranges of bytes against an array of them ----------------===//
#include "Residency/HeldBytes.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <random>

using ds::analysis::detail::HeldBytes;

namespace {

TEST(HeldBytes, AreThoseOfAnArray) {
  std::mt19937 random(3);
  for (uint32_t count = 1; count <= 40; ++count) {
    std::vector<int64_t> bytes(count);
    for (int64_t &at : bytes)
      at = random() % 100;
    HeldBytes held(bytes);
    for (int round = 0; round < 60; ++round) {
      uint32_t begin = random() % (count + 1), end = begin + random() % (count + 1 - begin);
      int64_t more = int64_t(random() % 50) - 20;
      held.add(begin, end, more);
      std::for_each(bytes.begin() + begin, bytes.begin() + end, [&](int64_t &at) { at += more; });
      begin = random() % count, end = begin + 1 + random() % (count - begin);
      EXPECT_EQ(held.mostIn(begin, end), *std::max_element(bytes.begin() + begin, bytes.begin() + end));
    }
  }
}

TEST(HeldBytes, AreLeastWhereThereIsNoMoment) {
  HeldBytes held({5, 7});
  held.add(1, 1, 100);
  EXPECT_EQ(held.mostIn(1, 1), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(held.mostIn(0, 2), 7);
  EXPECT_EQ(HeldBytes({}).mostIn(0, 0), std::numeric_limits<int64_t>::min());
}

} // namespace
