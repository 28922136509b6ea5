//===- CheckMemoryPlanTest.cpp - What is wrong with a plan of memory --------------===//

#include "Planned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

using namespace ds::analysis;
using namespace ds::analysis::testing;

/// A right plan of a problem with all features, to be corrupted.
class Corruption : public ::testing::Test {
protected:
  void SetUp() override {
    problem.buffers = {{.bytes = 100, .segment = PackBuffer::kAllSegments},
                       {.bytes = 64, .segment = 0, .begin = 0, .end = 3},
                       {.bytes = 64, .segment = 0, .begin = 2, .end = 5},
                       {.bytes = 64, .segment = 1, .begin = 0, .end = 3},
                       {.bytes = 64, .segment = 0, .begin = 3, .end = 6, .fixedOffset = 320}};
    problem.alignment = 64;
    plan = planned(problem);
  }
  void expectFault(Conflict::Kind kind, int64_t first, int64_t second = -1) {
    std::optional<Conflict> conflict = check(plan, problem);
    ASSERT_TRUE(conflict);
    EXPECT_EQ(conflict->kind, kind) << conflict->message;
    EXPECT_EQ(std::minmax(conflict->first, conflict->second), std::minmax(first, second))
        << conflict->message;
    EXPECT_FALSE(conflict->message.empty());
  }
  PackProblem problem;
  MemoryPlan plan;
};

TEST_F(Corruption, MissingOffset) {
  plan.offsets.pop_back();
  expectFault(Conflict::Kind::Count, -1);
}
TEST_F(Corruption, NegativeOffset) {
  plan.offsets[1] = -64;
  expectFault(Conflict::Kind::Negative, 1);
}
TEST_F(Corruption, MisalignedOffset) {
  plan.offsets[1] += 1;
  expectFault(Conflict::Kind::Misaligned, 1);
}
TEST_F(Corruption, MovedFixedBuffer) {
  plan.offsets[4] -= 64;
  expectFault(Conflict::Kind::Moved, 4);
}
TEST_F(Corruption, ArenaTooSmall) {
  plan.arenaBytes -= 1;
  expectFault(Conflict::Kind::Outside, 4);
}
TEST_F(Corruption, OffsetNearTheEndOfTheNumbers) {
  plan.offsets[1] = std::numeric_limits<int64_t>::max() / 64 * 64;
  expectFault(Conflict::Kind::Outside, 1);
}
TEST_F(Corruption, OverlapInTimeAndSpace) {
  plan.offsets[2] = plan.offsets[1];
  expectFault(Conflict::Kind::Overlap, 1, 2);
}
TEST_F(Corruption, OverlapWithAState) {
  plan.offsets[3] = plan.offsets[0] + 64;
  expectFault(Conflict::Kind::Overlap, 0, 3);
}
TEST_F(Corruption, OverlapByPaddingOnly) {
  problem.buffers[0].bytes = 129; // now counts as 192, the plan gave it 128
  plan.lowerBound += 64;
  std::optional<Conflict> conflict = check(plan, problem);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->kind, Conflict::Kind::Overlap);
}
TEST_F(Corruption, SegmentsDoNotConflict) {
  plan.offsets[3] = plan.offsets[1];
  EXPECT_FALSE(check(plan, problem));
}
TEST_F(Corruption, WrongBound) {
  plan.lowerBound -= 64;
  expectFault(Conflict::Kind::Bound, -1);
}
TEST_F(Corruption, MalformedBuffer) {
  problem.buffers[2].end = problem.buffers[2].begin;
  expectFault(Conflict::Kind::Invalid, 2);
}
