//===- RankPairsTest.cpp - Which ranks of two plans are compared ------------------===//

#include "ds/Report/RankPairs.h"

#include <gtest/gtest.h>

using namespace ds::report;

/// A row of ranks of one stage.
static RankPlan row(uint32_t first, uint32_t last, uint32_t stage = 0) {
  RankPlan rank;
  rank.firstRank = first, rank.lastRank = last, rank.stage = stage;
  return rank;
}

static PlanReport plan(Mesh mesh, std::vector<RankPlan> rows) {
  PlanReport report;
  report.mesh = mesh, report.world = rows.back().lastRank + 1;
  report.ranks = std::move(rows);
  return report;
}

/// The pairs, a line each: "ranks 0 to 3 -> rank 0", "rank 1 -> nobody".
static std::string spellPairs(const PlanReport &before, const PlanReport &after) {
  std::string text;
  for (const RankPair &pair : pairRanks(before, after)) {
    EXPECT_EQ(pair.before == nullptr, pair.beforeRanks.empty());
    EXPECT_EQ(pair.after == nullptr, pair.afterRanks.empty());
    text += (pair.before ? spellSpans("rank", pair.beforeRanks) : "nobody") + " -> " +
            (pair.after ? spellSpans("rank", pair.afterRanks) : "nobody") + "\n";
  }
  return text;
}

TEST(RankPairs, OneRankIsComparedWithAllThatAreAlike) {
  PlanReport one = plan({}, {row(0, 0)}), four = plan({4, 1, 1, 1}, {row(0, 3)});
  EXPECT_EQ(spellPairs(one, four), "rank 0 -> ranks 0 to 3\n");
  EXPECT_EQ(spellPairs(four, one), "ranks 0 to 3 -> rank 0\n");
  EXPECT_EQ(spellPairs(four, four), "ranks 0 to 3 -> ranks 0 to 3\n");
  EXPECT_EQ(pairRanks(one, four)[0].before, &one.ranks[0]);
  EXPECT_EQ(pairRanks(one, four)[0].after, &four.ranks[0]);
}

TEST(RankPairs, RanksAlikeAreComparedWhateverTheirMesh) {
  EXPECT_EQ(spellPairs(plan({2, 4, 1, 1}, {row(0, 7)}), plan({16, 1, 1, 1}, {row(0, 15)})),
            "ranks 0 to 7 -> ranks 0 to 15\n");
}

TEST(RankPairs, StagesGoByTheirNumbers) {
  // Rank 2 is of stage 1 before, and of stage 0 after.
  PlanReport two = plan({2, 1, 2, 1}, {row(0, 1, 0), row(2, 3, 1)}),
             wide = plan({4, 1, 2, 1}, {row(0, 3, 0), row(4, 7, 1)});
  EXPECT_EQ(spellPairs(two, wide), "ranks 0 to 1 -> ranks 0 to 3\nranks 2 to 3 -> ranks 4 to 7\n");
}

TEST(RankPairs, StagesThatOnePlanLacksHaveNoPartner) {
  PlanReport two = plan({1, 1, 2, 1}, {row(0, 0, 0), row(1, 1, 1)}),
             three = plan({1, 1, 3, 1}, {row(0, 0, 0), row(1, 1, 1), row(2, 2, 2)});
  EXPECT_EQ(spellPairs(two, three), "rank 0 -> rank 0\nrank 1 -> rank 1\nnobody -> rank 2\n");
  EXPECT_EQ(spellPairs(three, two), "rank 0 -> rank 0\nrank 1 -> rank 1\nrank 2 -> nobody\n");
  PlanReport ends = plan({1, 1, 2, 1}, {row(0, 0, 0), row(1, 1, 2)}); // stages 0 and 2
  EXPECT_EQ(spellPairs(ends, three), "rank 0 -> rank 0\nnobody -> rank 1\nrank 1 -> rank 2\n");
  EXPECT_EQ(spellPairs(three, ends), "rank 0 -> rank 0\nrank 1 -> nobody\nrank 2 -> rank 1\n");
}

TEST(RankPairs, WithoutAPipelineAllLayersAreInTheOnlyStage) {
  PlanReport flat = plan({4, 1, 1, 1}, {row(0, 3)}), two = plan({2, 1, 2, 1}, {row(0, 1, 0), row(2, 3, 1)});
  EXPECT_EQ(spellPairs(flat, two), "ranks 0 to 3 -> ranks 0 to 1\nranks 0 to 3 -> ranks 2 to 3\n");
  EXPECT_EQ(spellPairs(two, flat), "ranks 0 to 1 -> ranks 0 to 3\nranks 2 to 3 -> ranks 0 to 3\n");
}

TEST(RankPairs, RowsOfOneMeshGoByPosition) {
  // Stage 0: ranks 0 to 3, cut at 1 before and at 3 after. Stage 1 is a row of its own.
  Mesh mesh = {4, 1, 2, 1};
  EXPECT_EQ(
      spellPairs(plan(mesh, {row(0, 0), row(1, 3), row(4, 7, 1)}),
                 plan(mesh, {row(0, 2), row(3, 3), row(4, 7, 1)})),
      "rank 0 -> rank 0\nranks 1 to 2 -> ranks 1 to 2\nrank 3 -> rank 3\nranks 4 to 7 -> ranks 4 to 7\n");
}

TEST(RankPairs, RowsOfOtherMeshesGoByCoordinates) {
  // dp 2 x tp 2, tp fastest: ranks 0, 1 are dp 0 and ranks 2, 3 dp 1. tp 1 stands for both.
  PlanReport tensor = plan({2, 2, 1, 1}, {row(0, 1), row(2, 3)}),
             data = plan({2, 1, 1, 1}, {row(0, 0), row(1, 1)});
  EXPECT_EQ(spellPairs(tensor, data), "ranks 0 to 1 -> rank 0\nranks 2 to 3 -> rank 1\n");
  // Of dp 4 the last two have no dp 2 and 3 to be compared with.
  PlanReport wide = plan({4, 1, 1, 1}, {row(0, 0), row(1, 3)});
  EXPECT_EQ(spellPairs(tensor, wide),
            "ranks 0 to 1 -> rank 0\nranks 2 to 3 -> rank 1\nnobody -> ranks 2 to 3\n");
  EXPECT_EQ(spellPairs(wide, tensor),
            "rank 0 -> ranks 0 to 1\nrank 1 -> ranks 2 to 3\nranks 2 to 3 -> nobody\n");
  // sp comes between: dp 1, sp 2, tp 2 has tp 1 in ranks 1 and 3.
  EXPECT_EQ(spellPairs(plan({1, 2, 1, 2}, {row(0, 0), row(1, 1), row(2, 2), row(3, 3)}),
                       plan({1, 2, 1, 1}, {row(0, 0), row(1, 1)})),
            "rank 0 -> rank 0\nrank 2 -> rank 0\nrank 1 -> rank 1\nrank 3 -> rank 1\n");
}

TEST(RankPairs, MeshesThatContradictTheirRowsGoByPosition) {
  for (Mesh wrong :
       {Mesh{1, 1, 1, 1}, Mesh{3, 1, 1, 1}, Mesh{0, 1, 1, 1}, Mesh{UINT32_MAX, UINT32_MAX, 1, UINT32_MAX}})
    EXPECT_EQ(spellPairs(plan(wrong, {row(0, 0), row(1, 1)}), plan({3, 1, 1, 1}, {row(0, 0), row(1, 2)})),
              "rank 0 -> rank 0\nrank 1 -> rank 1\nnobody -> rank 2\n");
}

TEST(RankPairs, AnyNumberOfRanksIsPairedAtOnce) {
  const uint32_t last = UINT32_MAX - 1; // of a world that 32 bits count
  PlanReport many = plan({UINT32_MAX, 1, 1, 1}, {row(0, 5), row(6, last)}),
             few = plan({8, 1, 1, 1}, {row(0, 1), row(2, 7)});
  EXPECT_EQ(spellPairs(few, many), "ranks 0 to 1 -> ranks 0 to 1\nranks 2 to 5 -> ranks 2 to 5\n"
                                   "ranks 6 to 7 -> ranks 6 to 7\nnobody -> ranks 8 to 4294967294\n");
}

TEST(RankPairs, ManySpansAreCounted) {
  EXPECT_EQ(spellSpans("rank", {{4, 4}}), "rank 4");
  EXPECT_EQ(spellSpans("stage", {{0, 1}, {4, 4}}), "stages 0 to 1, 4");
  std::vector<Span> odd;
  for (uint32_t rank = 1; rank < 40; rank += 2)
    odd.push_back({rank, rank});
  EXPECT_EQ(spellSpans("rank", odd), "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 12 more");
}

TEST(RankPairs, SpansThatTouchBecomeOne) {
  std::vector<Span> spans = {{7, UINT32_MAX}, {0, 1}, {2, 4}, {3, 3}};
  joinSpans(spans);
  EXPECT_EQ(spans, (std::vector<Span>{{0, 4}, {7, UINT32_MAX}}));
}
