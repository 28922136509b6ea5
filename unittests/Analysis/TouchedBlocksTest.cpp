//===- TouchedBlocksTest.cpp - Runs of blocks against one entry for each ----------===//
#include "Packing/TouchedBlocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using ds::analysis::detail::TouchedBlocks;

TEST(TouchedBlocks, TellHowLongAgoEachPieceWasTouched) {
  TouchedBlocks blocks;
  EXPECT_EQ(blocks.touch(0, 8, 100), std::numeric_limits<double>::infinity());
  EXPECT_EQ(blocks.touch(2, 4, 110), 10);
  EXPECT_EQ(blocks.touch(0, 8, 120), (6 * 20 + 2 * 10) / 8.0) << "a run in two pieces, and what lies between";
  EXPECT_EQ(blocks.touch(7, 9, 130), std::numeric_limits<double>::infinity()) << "block 8 never was";
  EXPECT_EQ(blocks.touch(6, 9, 150), (30 + 20 + 20) / 3.0);
}

TEST(TouchedBlocks, AreWhatOneEntryForEachBlockIs) {
  constexpr int64_t kBlocks = 60;
  std::mt19937 random(1);
  int finite = 0;
  for (int round = 0; round < 20; ++round) {
    TouchedBlocks blocks;
    std::vector<double> last(kBlocks, -std::numeric_limits<double>::infinity());
    for (int step = 0; step < 200; ++step) {
      const int64_t a = random() % kBlocks, b = random() % kBlocks, begin = std::min(a, b),
                    end = std::max(a, b) + 1;
      const double now = 1000 + 7 * step;
      double sum = 0;
      for (int64_t block = begin; block < end; ++block) {
        sum += now - last[block];
        last[block] = now;
      }
      const double mean = sum / double(end - begin);
      ASSERT_EQ(blocks.touch(begin, end, now), mean) << "round " << round << ", step " << step;
      finite += std::isfinite(mean) ? 1 : 0;
    }
  }
  EXPECT_GT(finite, 2000);
}
