//===- ReductionOverlapTest.cpp - Waits no earlier than reductions are done -----===//
#include "ds/Analysis/Gathers/ReductionOverlap.h"

#include "gtest/gtest.h"

using namespace ds::analysis;

namespace {

using Waits = std::vector<int64_t>;

TEST(ReductionOverlap, WaitsWhereTheReductionIsDone) {
  ReductionProblem problem{{1, 1, 1, 1, 1}, {}, 0, {{1, 2.0, 0}}};
  EXPECT_EQ(findWaits(problem), Waits({3})); // issued at 1 s, done at 3 s
}

TEST(ReductionOverlap, RunsReductionsOneAfterTheOther) {
  ReductionProblem problem{{1, 1, 1, 1, 1, 1}, {}, 0, {{1, 1.5, 0}, {1, 1.5, 0}, {5, 0.5, 0}}};
  EXPECT_EQ(findWaits(problem), Waits({3, 4, 6})); // done at 2.5 s and 4 s; the last within command 5
}

TEST(ReductionOverlap, WaitsEarlierWhereMemoryRunsOut) {
  ReductionProblem problem{{1, 1, 1, 1, 1, 1}, {10, 10, 10, 10, 10, 10}, 25, {{0, 4.0, 10}, {1, 1.0, 10}}};
  EXPECT_EQ(findWaits(problem), Waits({1, 2})); // at command 1 both would need 30: compute stalls to 4 s
  problem.budgetBytes = 30;
  EXPECT_EQ(findWaits(problem), Waits({4, 5}));
}

} // namespace
