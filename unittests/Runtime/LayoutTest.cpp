//===- LayoutTest.cpp - Every element is where its layout says -----------------===//
//
// Random meshes, shapes and layouts against a model that places one element after the other.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Program/Layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace ds::rt {
namespace {

using Shape = std::vector<int64_t>;

uint64_t elementsOf(const Shape &shape) {
  uint64_t elements = 1;
  for (int64_t size : shape)
    elements *= static_cast<uint64_t>(size);
  return elements;
}

struct Case {
  Mesh mesh;
  Layout layout;
  Shape shape;
};

/// Axes are dealt out among dimensions and bucket; sizes are multiples of their parts, the bucket has room.
Case randomCase(std::mt19937 &random) {
  Case c;
  const auto upTo = [&](uint32_t most) { return static_cast<uint32_t>(random() % (most + 1)); };
  std::vector<MeshAxis> axes;
  for (uint32_t count = upTo(4); axes.size() < count;)
    axes.push_back({"a" + std::to_string(axes.size()), 1 + upTo(2)});
  c.mesh = Mesh(axes);
  c.layout.cuts.resize(upTo(3));
  for (unsigned axis = 0; axis < c.mesh.numAxes(); ++axis) {
    const size_t to = upTo(static_cast<uint32_t>(c.layout.cuts.size()) + 1);
    if (to < c.layout.cuts.size())
      c.layout.cuts[to].add(axis);
    else if (to == c.layout.cuts.size())
      c.layout.bucket.add(axis);
  }
  for (AxisSet cut : c.layout.cuts)
    c.shape.push_back(c.mesh.size(cut) * upTo(3));
  if (c.layout.isBucketed()) {
    c.layout.offset = upTo(5);
    const uint64_t needed = c.layout.offset + localElements(c.mesh, c.layout, c.shape) + upTo(3),
                   shards = c.mesh.size(c.layout.bucket);
    c.layout.shardElements = (needed + shards - 1) / shards;
  }
  return c;
}

/// Where `rank` has logical element `element`, by division alone; nothing where it has not.
std::optional<uint64_t> placeOf(const Case &c, uint64_t element, uint32_t rank) {
  Shape index(c.shape.size());
  uint64_t rest = element, local = 0;
  for (size_t d = c.shape.size(); d-- > 0; rest /= static_cast<uint64_t>(c.shape[d]))
    index[d] = static_cast<int64_t>(rest % static_cast<uint64_t>(c.shape[d]));
  for (size_t d = 0; d < c.shape.size(); ++d) {
    const AxisSet cut = c.layout.cuts.empty() ? AxisSet() : c.layout.cuts[d];
    const int64_t part = c.shape[d] / c.mesh.size(cut);
    if (index[d] / part != c.mesh.position(rank, cut))
      return std::nullopt;
    local = local * static_cast<uint64_t>(part) + static_cast<uint64_t>(index[d] % part);
  }
  if (!c.layout.isBucketed())
    return local;
  const uint64_t inBucket = c.layout.offset + local;
  if (inBucket / c.layout.shardElements != c.mesh.position(rank, c.layout.bucket))
    return std::nullopt;
  return inBucket % c.layout.shardElements;
}

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

TEST(Layouts, PutEveryElementOnExactlyTheRanksThatHoldIt) {
  std::mt19937 random(11);
  int cut = 0, bucketed = 0, both = 0;
  for (int round = 0; round < 2000; ++round) {
    const Case c = randomCase(random);
    ASSERT_EQ(findMistake(c.mesh, c.layout, c.shape), "");
    uint64_t most = 0;
    for (uint32_t rank = 0; rank < c.mesh.size(); ++rank) {
      std::map<uint64_t, uint64_t> expected;
      for (uint64_t element = 0; element < elementsOf(c.shape); ++element)
        if (const auto place = placeOf(c, element, rank))
          expected.emplace(element, *place);
      ASSERT_EQ(placesBy(c, rank, UINT64_MAX), expected) << "round " << round << ", rank " << rank;
      ASSERT_EQ(placesBy(c, rank, 2), expected) << "round " << round << ", in pieces of 2";
      EXPECT_EQ(heldElements(c.mesh, c.layout, c.shape, rank).count, expected.size());
      most = std::max<uint64_t>(most, expected.size());
    }
    EXPECT_EQ(mostHeldElements(c.mesh, c.layout, c.shape), most) << "round " << round;
    const bool cuts = c.layout.axes() != c.layout.bucket;
    cut += cuts, bucketed += c.layout.isBucketed(), both += cuts && c.layout.isBucketed();
  }
  EXPECT_GT(std::min({cut, bucketed, both}), 200) << "the cases are what they are meant to be";
}

TEST(Layouts, HoldersHaveEveryElementOnce) {
  std::mt19937 random(12);
  for (int round = 0; round < 500; ++round) {
    const Case c = randomCase(random);
    for (uint32_t rank = 0; rank < c.mesh.size(); ++rank) {
      std::vector<int> times(elementsOf(c.shape));
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
