//===- StepMemoryTest.cpp - What is held of each space, from when to when ---------===//
#include "ds/Analysis/Memory/StepMemory.h"

#include "gtest/gtest.h"

namespace ds::analysis {
namespace {

using Bytes = std::vector<int64_t>;

TEST(StepMemory, SumsUpWhatIsHeldAtEachMoment) {
  StepMemory memory(2, 4);
  memory.holdThroughout(0, 10);
  memory.hold({0, 4, 0, 3});
  memory.hold({0, 2, 2, 4});
  memory.hold({1, 7, 1, 1}); // at no moment
  EXPECT_EQ(memory.liveBytes(0), (Bytes{14, 14, 16, 12}));
  EXPECT_EQ(memory.mostBytes(0), 16);
  EXPECT_EQ(memory.liveBytes(1), (Bytes{0, 0, 0, 0}));
}

TEST(StepMemory, TakesBackWhatWasHeld) {
  StepMemory memory(1, 3);
  memory.hold({0, 4, 0, 3});
  memory.hold({0, 6, 1, 2});
  memory.release({0, 4, 0, 3});
  EXPECT_EQ(memory.liveBytes(0), (Bytes{0, 6, 0}));
}

TEST(StepMemory, HoldsInMomentsThatComeLater) {
  StepMemory memory(1);
  EXPECT_EQ(memory.mostBytes(0), 0);
  memory.addMoments(2);
  memory.holdThroughout(0, 5);
  memory.hold({0, 1, 1, 2}); // to the last moment so far
  memory.addMoments(2);
  memory.hold({0, 2, 3, 4});
  EXPECT_EQ(memory.getMoments(), 4u);
  EXPECT_EQ(memory.liveBytes(0), (Bytes{5, 6, 5, 7}));
}

} // namespace
} // namespace ds::analysis
