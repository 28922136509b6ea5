//===- MeshTest.cpp - Coordinates and groups of ranks --------------------------===//
//
// Random meshes against a model that counts through all coordinates, and the mistakes that a mesh can have.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Program/Mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ds::rt {
namespace {

using testing::HasSubstr;

const Mesh kMesh = {{"pp", 2}, {"dp.node", 2}, {"dp.local", 2}, {"tp", 2}};

TEST(AxisSets, AreSets) {
  constexpr AxisSet set = {1, 4};
  EXPECT_EQ(set.bits(), 0b10010u);
  EXPECT_TRUE(set.has(1) && set.has(4) && !set.has(0));
  EXPECT_EQ(set.count(), 2u);
  EXPECT_TRUE(set.hasAll({4}) && !set.hasAll({0, 4}) && set.hasAny({0, 4}) && !set.hasAny({0, 2}));
  EXPECT_EQ((set | AxisSet{0}), (AxisSet{0, 1, 4}));
  EXPECT_EQ((set & AxisSet{0, 1}), AxisSet{1});
  EXPECT_EQ((set - AxisSet{0, 1}), AxisSet{4});
  EXPECT_EQ(AxisSet::first(3), (AxisSet{0, 1, 2}));
  EXPECT_TRUE(AxisSet().isEmpty() && !set.isEmpty());
  EXPECT_EQ(AxisSet::first(Mesh::kMaxAxes).bits(), 0xffffu);
}

TEST(MeshTest, AllSubAxesHaveTheNameOfTheWhole) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(kMesh.names({0, 1, 2}), (Names{"pp", "dp"}));
  EXPECT_EQ(kMesh.names({1, 3}), (Names{"dp.node", "tp"}));
  EXPECT_EQ(kMesh.names({}), Names());
}

TEST(MeshTest, LastAxisCountsFastest) {
  EXPECT_EQ(kMesh.coordinates(13), (std::vector<uint32_t>{1, 1, 0, 1})); // 0b1101
  EXPECT_EQ(kMesh.rankAt({1, 1, 0, 1}), 13u);
  EXPECT_EQ(kMesh.group(13, {1, 2}), (std::vector<uint32_t>{9, 11, 13, 15}));
  EXPECT_EQ(kMesh.position(13, {1, 2}), 2u);
  EXPECT_EQ(kMesh.firstOfGroup(13, {1, 2}), 9u);
  EXPECT_EQ(kMesh.group(13, {}), std::vector<uint32_t>{13});
}

TEST(MeshTest, WithoutAxesHasOneRank) {
  const Mesh mesh;
  EXPECT_EQ(mesh.size(), 1u);
  EXPECT_EQ(mesh.findMistake(1), "");
  EXPECT_EQ(mesh.group(0, {}), std::vector<uint32_t>{0});
  EXPECT_EQ(mesh.position(0, {}), 0u);
  EXPECT_EQ(mesh.spell(), "[]");
}

TEST(MeshTest, FindsAxesByNameAndByParent) {
  EXPECT_EQ(kMesh.find("tp"), AxisSet{3});
  EXPECT_EQ(kMesh.find("dp"), (AxisSet{1, 2}));
  EXPECT_EQ(kMesh.find("dp.local"), AxisSet{2});
  EXPECT_EQ(kMesh.find("d"), std::nullopt);
  EXPECT_EQ(kMesh.find("dp."), std::nullopt);
  EXPECT_EQ(kMesh.find("ep"), std::nullopt);
  EXPECT_EQ(kMesh.spell({1, 2}), "dp.node, dp.local");
  EXPECT_EQ(kMesh.spell(AxisSet()), "no axis");
  EXPECT_EQ(kMesh.spell(), "[pp = 2, dp.node = 2, dp.local = 2, tp = 2]");
}

/// What a mesh says of itself.
std::string mistakeOf(const Mesh &mesh, uint32_t ranks) { return mesh.findMistake(ranks); }

TEST(MeshTest, NamesWhatIsWrong) {
  EXPECT_EQ(mistakeOf(kMesh, 16), "");
  EXPECT_EQ(mistakeOf(kMesh, 8), "its axes have at least 16 ranks, but the program is for 8");
  EXPECT_EQ(mistakeOf(kMesh, 32), "its axes have 16 ranks, but the program is for 32");
  EXPECT_EQ(mistakeOf({{"dp", 0}}, 1), "axis 'dp' has size 0");
  EXPECT_EQ(mistakeOf({{"", 1}}, 1), "axis 0 has a name of 0 bytes, allowed are 1 to 64");
  EXPECT_THAT(mistakeOf({{std::string(65, 'x'), 1}}, 1), HasSubstr("a name of 65 bytes"));
  EXPECT_EQ(mistakeOf({{"dp", 2}, {"tp", 1}, {"dp", 1}}, 2), "axes 0 and 2 are both 'dp'");
  EXPECT_EQ(mistakeOf({{"dp.node", 2}, {"dp", 1}}, 2), "'dp' is an axis and, by 'dp.node', cut into several");
  EXPECT_EQ(mistakeOf({{"dp", 2}, {"dpx", 1}}, 2), "");
  EXPECT_EQ(mistakeOf(Mesh(std::vector<MeshAxis>(17, {"x", 1})), 1), "it has 17 axes, the limit is 16");
  // 2^32 times 2^32 wraps to 0, and to 1 with another factor; neither is taken for a product.
  EXPECT_THAT(mistakeOf({{"a", UINT32_MAX}, {"b", UINT32_MAX}, {"c", UINT32_MAX}}, 1), HasSubstr("at least"));
}

/// Axes of sizes 1 to 4, up to five of them.
Mesh randomMesh(std::mt19937 &random) {
  std::vector<MeshAxis> axes;
  for (unsigned axis = random() % 6; axis > 0; --axis)
    axes.push_back({"a" + std::to_string(axis), 1 + static_cast<uint32_t>(random() % 4)});
  return Mesh(axes);
}

TEST(MeshTest, GroupsAreTheRanksThatDifferAlongTheirAxesAlone) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const Mesh mesh = randomMesh(random);
    const AxisSet axes = AxisSet::fromBits(static_cast<uint32_t>(random())) & mesh.all();
    EXPECT_EQ(mesh.findMistake(mesh.size()), "");
    EXPECT_EQ(mesh.groupBelow(mesh.size(), axes), mesh.size(axes));
    EXPECT_EQ(mesh.groupBelow(UINT32_MAX, axes), mesh.size(axes));
    for (uint32_t rank = 0; rank < mesh.size(); ++rank) {
      const std::vector<uint32_t> own = mesh.coordinates(rank);
      std::vector<uint32_t> expected;
      for (uint32_t other = 0; other < mesh.size(); ++other) {
        bool isMember = true;
        for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
          isMember &= axes.has(axis) || mesh.coordinate(other, axis) == own[axis];
        if (isMember)
          expected.push_back(other);
      }
      EXPECT_EQ(mesh.groupBelow(rank, axes),
                std::ranges::count_if(mesh.group(0, axes), [&](uint32_t member) { return member < rank; }));
      EXPECT_EQ(mesh.rankAt(own), rank);
      EXPECT_EQ(mesh.group(rank, axes), expected);
      EXPECT_EQ(mesh.size(axes), expected.size());
      EXPECT_EQ(mesh.firstOfGroup(rank, axes), expected.front());
      EXPECT_EQ(expected.at(mesh.position(rank, axes)), rank);
      uint32_t position = 0; // from strides
      for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
        position += axes.has(axis) ? own[axis] * mesh.stride(axis, axes) : 0;
      EXPECT_EQ(position, mesh.position(rank, axes));
    }
  }
}

} // namespace
} // namespace ds::rt
