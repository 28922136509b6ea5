//===- LayoutTest.cpp - Every element is where its layout says -----------------===//
//
// Random layouts against a model that places one element after the other.
//
//===---------------------------------------------------------------------------===//
#include "RandomLayouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace ds::rt {
namespace {

using Shape = std::vector<int64_t>;

using Case = test::RandomLayout;
using test::placeOf;

/// What the runs say, element by element; `most` is the longest run that is asked for.
std::map<uint64_t, uint64_t> placesBy(const Case &c, uint32_t rank, uint64_t most) {
  std::map<uint64_t, uint64_t> places;
  ElementRuns runs(c.mesh, c.layout, c.shape, rank);
  uint64_t first = 0, at = heldElements(c.mesh, c.layout, c.shape, rank).at;
  while (const auto run = runs.next(UINT64_MAX, most)) {
    EXPECT_GE(run->first, first) << "runs ascend";
    EXPECT_EQ(run->at, at) << "runs have no gaps in memory";
    EXPECT_LE(run->count, most);
    for (uint64_t i = 0; i < run->count; ++i)
      EXPECT_TRUE(places.emplace(run->first + i, run->at + i).second) << "no element comes twice";
    first = run->first + run->count;
    at = run->at + run->count;
  }
  return places;
}

/// Where `rank` has elements [first, end) of the view.
std::map<uint64_t, uint64_t> expectedPlaces(const Case &c, uint32_t rank, uint64_t first, uint64_t end) {
  std::map<uint64_t, uint64_t> expected;
  for (uint64_t element = first; element < end; ++element)
    if (const auto place = placeOf(c, element, rank))
      expected.emplace(element, *place);
  return expected;
}

TEST(Layouts, PutEveryElementOnExactlyTheRanksThatHoldIt) {
  std::mt19937 random(11);
  int cut = 0, bucketed = 0, both = 0, seen = 0, padded = 0;
  for (int round = 0; round < 3000; ++round) {
    const Case c = test::randomLayout(random);
    ASSERT_EQ(findMistake(c.mesh, c.layout, c.shape), "");
    uint64_t most = 0;
    for (uint32_t rank = 0; rank < c.mesh.size(); ++rank) {
      const std::map<uint64_t, uint64_t> expected = expectedPlaces(c, rank, 0, test::productOf(c.shape));
      ASSERT_EQ(placesBy(c, rank, UINT64_MAX), expected) << "round " << round << ", rank " << rank;
      ASSERT_EQ(placesBy(c, rank, 2), expected) << "round " << round << ", in pieces of 2";
      EXPECT_EQ(heldElements(c.mesh, c.layout, c.shape, rank).count, expected.size());
      most = std::max<uint64_t>(most, expected.size());
    }
    EXPECT_EQ(mostHeldElements(c.mesh, c.layout, c.shape), most) << "round " << round;
    const bool cuts = c.layout.axes() != c.layout.bucket;
    cut += cuts, bucketed += c.layout.isBucketed(), both += cuts && c.layout.isBucketed();
    seen += cuts && !c.layout.view.empty(), padded += cuts && c.layout.existing.has_value();
  }
  EXPECT_GT(std::min({cut, bucketed, both, seen, padded}), 200) << "the cases are what they are meant to be";
}

TEST(Layouts, PaddingIsTheRestOfALocalTensor) {
  std::mt19937 random(13);
  uint64_t all = 0;
  for (int round = 0; round < 2000; ++round) {
    const Case c = test::randomLayout(random);
    for (uint32_t rank = 0; rank < c.mesh.size(); ++rank) {
      const HeldElements padding = heldPadding(c.mesh, c.layout, c.shape, rank);
      std::set<uint64_t> expected, found;
      for (const auto &[element, place] :
           expectedPlaces(c, rank, test::productOf(c.shape), test::productOf(c.view)))
        expected.insert(place);
      for (uint64_t i = 0; i < padding.count; ++i)
        found.insert(padding.at + i);
      ASSERT_EQ(found, expected) << "round " << round << ", rank " << rank;
      all += padding.count;
    }
  }
  EXPECT_GT(all, 1000u);
}

/// Ranges of entries, one dimension at a time, name the same elements.
TEST(Layouts, LocalRangesAreTheStatesEntriesInOrder) {
  std::mt19937 random(14);
  int several = 0;
  for (int round = 0; round < 2000; ++round) {
    const Case c = test::randomLayout(random);
    const Shape local = localShape(c.mesh, c.layout, c.shape);
    ASSERT_EQ(test::productOf(local), localElements(c.mesh, c.layout, c.shape)) << "round " << round;
    for (uint32_t rank = 0; rank < c.mesh.size(); ++rank) {
      std::vector<uint64_t> entries = {0}; // of the state, in the order of local elements
      for (size_t d = 0; d < c.shape.size(); ++d) {
        std::vector<uint64_t> longer;
        const std::vector<IndexRange> ranges = localRanges(c.mesh, c.layout, c.shape, rank, d);
        several += ranges.size() > 1;
        for (uint64_t entry : entries)
          for (const IndexRange &range : ranges)
            for (uint64_t i = 0; i < range.count; ++i)
              longer.push_back(entry * static_cast<uint64_t>(c.shape[d]) + range.first + i);
        entries = std::move(longer);
      }
      ASSERT_EQ(entries.size(), test::productOf(local)) << "round " << round;
      for (uint64_t element = 0; element < test::productOf(c.view); ++element)
        if (const auto place = test::localOf(c, element, rank)) {
          ASSERT_EQ(entries[*place], element) << "round " << round << ", rank " << rank;
        }
    }
  }
  EXPECT_GT(several, 500);
}

TEST(Layouts, HoldersHaveEveryElementOnce) {
  std::mt19937 random(12);
  for (int round = 0; round < 500; ++round) {
    const Case c = test::randomLayout(random);
    for (uint32_t rank = 0; rank < c.mesh.size(); ++rank) {
      std::vector<int> times(test::productOf(c.shape));
      const std::vector<uint32_t> ranks = holders(c.mesh, c.layout, rank);
      EXPECT_TRUE(std::is_sorted(ranks.begin(), ranks.end()));
      for (uint32_t holder : ranks)
        for (const auto &[element, place] : placesBy(c, holder, UINT64_MAX))
          ++times[element];
      EXPECT_THAT(times, testing::Each(1)) << "round " << round << ", with rank " << rank;
    }
  }
}

// The example of Layout.h.
const Mesh kMesh = {{"dp", 2}, {"tp", 2}};
const Layout kLayout = {{AxisSet(), {1}}, {0}, 2, 8};

TEST(Layouts, CutDimensionsFirstAndBucketsThen) {
  const Shape shape = {4, 6};
  EXPECT_EQ(localShape(kMesh, kLayout, shape), (Shape{4, 3}));
  ElementRuns runs(kMesh, kLayout, shape, kMesh.rankAt({1, 0}));
  EXPECT_EQ(runs.next(), (ElementRun{12, 3, 0}));
  EXPECT_EQ(runs.next(), (ElementRun{18, 3, 3}));
  EXPECT_EQ(runs.next(), std::nullopt);
  EXPECT_EQ(holders(kMesh, kLayout, 3), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(holders(kMesh, {{}, {0}, 0, 12}, 3), (std::vector<uint32_t>{1, 3})) << "copies along tp";
}

TEST(Layouts, RunsEndWhereTheyAreAskedTo) {
  const Shape shape = {4, 6};
  ElementRuns runs(kMesh, kLayout, shape, kMesh.rankAt({0, 1})); // 3 4 5, 9 10 11 from element 2 on
  EXPECT_EQ(runs.next(3), std::nullopt);
  EXPECT_EQ(runs.next(5), (ElementRun{3, 2, 2}));
  EXPECT_EQ(runs.next(5), std::nullopt);
  EXPECT_EQ(runs.next(100, 1), (ElementRun{5, 1, 4}));
  EXPECT_EQ(runs.next(10), (ElementRun{9, 1, 5}));
  EXPECT_EQ(runs.next(), (ElementRun{10, 2, 6}));
  EXPECT_EQ(runs.next(), std::nullopt);
}

TEST(Layouts, WholeStatesAreOneRun) {
  const Shape shape = {4, 6};
  for (const Layout &layout : {Layout(), Layout{{AxisSet(), AxisSet()}, {}, 0, 0}}) {
    ElementRuns runs(kMesh, layout, shape, 3);
    EXPECT_EQ(runs.next(), (ElementRun{0, 24, 0}));
    EXPECT_EQ(runs.next(), std::nullopt);
  }
  ElementRuns rows(kMesh, {{{1}, AxisSet()}, {}, 0, 0}, shape, 3); // rows 2 and 3
  EXPECT_EQ(rows.next(), (ElementRun{12, 12, 0}));
}

/// A layout that cuts dimension `dimension` of `view` along tp.
Layout viewOf(Shape view, size_t dimension, std::optional<uint64_t> existing = {}) {
  Layout layout;
  layout.cuts.resize(view.size());
  layout.cuts[dimension] = {1};
  layout.view = std::move(view);
  layout.existing = existing;
  return layout;
}

TEST(Layouts, HeadsOfAFusedTensorAreThreeRanges) {
  const Shape qkv = {2304, 768};
  const Layout byHeads = viewOf({3, 12, 64, 768}, 1);
  EXPECT_EQ(localShape(kMesh, byHeads, qkv), (Shape{1152, 768}));
  EXPECT_EQ(localRanges(kMesh, byHeads, qkv, /*rank=*/1, 0),
            (std::vector<IndexRange>{{384, 384}, {1152, 384}, {1920, 384}}));
  EXPECT_EQ(localRanges(kMesh, byHeads, qkv, 1, 1), (std::vector<IndexRange>{{0, 768}}));
  ElementRuns runs(kMesh, byHeads, qkv, 1);
  EXPECT_EQ(runs.next(), (ElementRun{384 * 768, 384 * 768, 0}));
  EXPECT_EQ(runs.next(), (ElementRun{1152 * 768, 384 * 768, 384 * 768}));
  // As columns of a transposed one.
  const Shape columns = {768, 2304};
  EXPECT_EQ(localRanges(kMesh, viewOf({768, 3, 12, 64}, 2), columns, 0, 1),
            (std::vector<IndexRange>{{0, 384}, {768, 384}, {1536, 384}}));
}

/// A fused QKV of 4 heads and 2 key heads of 32 rows each.
TEST(Layouts, PiecesOfAFusedTensorAreCutEachByItself) {
  const Shape qkv = {256, 64};
  Layout byHeads{{{1}, AxisSet()}, {}, 0, 0};
  byHeads.pieces = {128, 64, 64};
  ASSERT_EQ(findMistake(kMesh, byHeads, qkv), "");
  EXPECT_EQ(localShape(kMesh, byHeads, qkv), (Shape{128, 64}));
  EXPECT_EQ(localRanges(kMesh, byHeads, qkv, /*rank=*/1, 0),
            (std::vector<IndexRange>{{64, 64}, {160, 32}, {224, 32}}));
  ElementRuns runs(kMesh, byHeads, qkv, 1);
  EXPECT_EQ(runs.next(), (ElementRun{64 * 64, 32 * 64, 0}));
  EXPECT_EQ(runs.next(), (ElementRun{96 * 64, 32 * 64, 32 * 64}));
  EXPECT_EQ(runs.next(), (ElementRun{160 * 64, 32 * 64, 64 * 64}));
}

TEST(Layouts, NamePiecesThatDoNotFit) {
  const auto mistake = [](std::vector<int64_t> pieces, Layout layout = {{{1}, AxisSet()}, {}, 0, 0}) {
    layout.pieces = std::move(pieces);
    return findMistake(kMesh, layout, Shape{8, 6});
  };
  EXPECT_EQ(mistake({4, 2, 2}), "");
  EXPECT_EQ(mistake({4, 2}), "has pieces that leave 2 of dimension 0");
  EXPECT_EQ(mistake({4, 6}), "has a piece of size 6, but 4 left in dimension 0");
  EXPECT_EQ(mistake({8, 0}), "has a piece of size 0, but 0 left in dimension 0");
  EXPECT_EQ(mistake({5, 3}), "has a piece of size 5, which tp cannot cut into 2 parts");
  EXPECT_EQ(mistake({4, 4}, {}), "has pieces and 0 cut dimensions, but exactly one has pieces");
  EXPECT_EQ(mistake({4, 4}, {{{1}, {0}}, {}, 0, 0}),
            "has pieces and 2 cut dimensions, but exactly one has pieces");
  EXPECT_EQ(mistake({4, 6}, viewOf({10, 6}, 0, 8)),
            "has pieces and rows of padding, but only one of both is allowed");
}

TEST(Layouts, WordsThatDoNotDivideArePadded) {
  const Shape words = {50257, 768};
  const Mesh mesh = {{"dp", 1}, {"tp", 8}};
  const Layout padded = viewOf({50264, 768}, 0, 50257);
  ASSERT_EQ(findMistake(mesh, padded, words), "");
  EXPECT_EQ(localShape(mesh, padded, words), (Shape{6283, 768}));
  for (uint32_t rank = 0; rank < 8; ++rank) {
    const uint64_t rows = rank < 7 ? 6283 : 6276;
    EXPECT_EQ(heldElements(mesh, padded, words, rank).count, rows * 768);
    EXPECT_EQ(heldPadding(mesh, padded, words, rank).count, (6283 - rows) * 768);
  }
  EXPECT_EQ(mostHeldElements(mesh, padded, words), 6283u * 768);
}

TEST(Layouts, NameViewsThatDoNotFit) {
  const auto mistake = [](const Layout &layout, const Shape &shape = {24, 5}) {
    return findMistake(kMesh, layout, shape);
  };
  EXPECT_EQ(mistake(viewOf({3, 4, 2, 5}, 1)), "");
  EXPECT_EQ(mistake(viewOf({3, 4, 2, 6}, 1)), "has the view [3, 4, 2, 6] of 144 elements, but 120 elements");
  EXPECT_EQ(mistake(viewOf({5, 24}, 1)),
            "has the view [5, 24], whose dimensions do not multiply to those of [24, 5]");
  EXPECT_EQ(mistake(viewOf({3, 8, 5}, 0)),
            "has size 3 in dimension 0 of its view, which tp cannot cut into 2 parts");
  EXPECT_EQ(mistake({{AxisSet(), {1}}, {}, 0, 0, {3, 8, 5}}),
            "has cuts of 2 dimensions, but 3 dimensions of its view");
  EXPECT_EQ(mistake(viewOf({-24, -5}, 0)), "has a view of size -24, or its product overflows");
  EXPECT_EQ(mistake(viewOf({0, 5}, 0), {0, 5}), "has a view of size 0, or its product overflows");
  EXPECT_EQ(mistake(viewOf({INT64_MAX, 8}, 1)), "has a view of size 8, or its product overflows");
  EXPECT_EQ(mistake({{}, {0}, 0, 59, {3, 8, 5}}), "has 120 elements at element 0 of a bucket of 118");
}

TEST(Layouts, NamePaddingThatDoesNotFit) {
  const auto mistake = [](const Layout &layout, const Shape &shape = {5, 3}) {
    return findMistake(kMesh, layout, shape);
  };
  EXPECT_EQ(mistake(viewOf({6, 3}, 0, 5)), "");
  EXPECT_EQ(mistake(viewOf({6, 3}, 0, 0)), "has 0 existing rows of 6, but allowed are 1 to 5");
  EXPECT_EQ(mistake(viewOf({6, 3}, 0, 7), {7, 3}), "has 7 existing rows of 6, but allowed are 1 to 5");
  EXPECT_EQ(mistake(viewOf({6, 3}, 0, 6), {6, 3}), "has 6 existing rows of 6, but allowed are 1 to 5");
  EXPECT_EQ(mistake(viewOf({6, 3}, 0, 4)), "has the view [4, 3] of 12 elements, but 15 elements");
  EXPECT_EQ(mistake(viewOf({6, 3}, 0)), "has the view [6, 3] of 18 elements, but 15 elements");
  // Columns of padding: there is no way to say so.
  EXPECT_EQ(mistake(viewOf({5, 4}, 1, 3)), "has the view [3, 4] of 12 elements, but 15 elements");
  EXPECT_EQ(mistake({{}, {}, 0, 0, {}, 5}), "has 5 existing rows, but no view");
  // The bucket has room for what exists, but not for the padding.
  EXPECT_EQ(mistake({{}, {0}, 0, 8, {6, 3}, 5}), "has 18 elements at element 0 of a bucket of 16");
}

TEST(Layouts, NameWhatDoesNotFit) {
  const Shape shape = {4, 6};
  const auto mistake = [&](const Layout &layout) { return findMistake(kMesh, layout, shape); };
  EXPECT_EQ(mistake(kLayout), "");
  EXPECT_EQ(mistake({{AxisSet()}, {}, 0, 0}), "has cuts of 1 dimensions, but 2 dimensions");
  EXPECT_EQ(mistake({{{2}, AxisSet()}, {}, 0, 0}), "has axes 0x4, but the mesh has 2");
  EXPECT_EQ(mistake({{}, {0, 5}, 0, 24}), "has axes 0x21, but the mesh has 2");
  EXPECT_EQ(mistake({{{1}, {0, 1}}, {}, 0, 0}), "is cut twice along tp");
  EXPECT_EQ(mistake({{AxisSet(), {1}}, {0, 1}, 0, 24}), "is cut twice along tp");
  EXPECT_EQ(mistake({{AxisSet(), {0, 1}}, {}, 0, 0}),
            "has size 6 in dimension 1, which dp, tp cannot cut into 4 parts");
  EXPECT_EQ(mistake({{}, {}, 1, 0}), "has offset 1 and shards of 0 elements, but no bucket");
  EXPECT_EQ(mistake({{}, {0}, 0, UINT64_MAX}),
            "has 2 shards of 18446744073709551615 elements, which overflow 64 bits");
  EXPECT_EQ(mistake({{}, {0}, 3, 13}), "has 24 elements at element 3 of a bucket of 26");
  EXPECT_EQ(mistake({{}, {0}, 2, 13}), "");
  EXPECT_EQ(mistake({{}, {0}, UINT64_MAX, 13}),
            "has 24 elements at element 18446744073709551615 of a bucket of 26");
}

} // namespace
} // namespace ds::rt
