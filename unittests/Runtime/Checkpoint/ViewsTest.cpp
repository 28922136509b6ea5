//===- ViewsTest.cpp - Fused and padded tensors in checkpoints ------------------------===//
//
// A fused QKV that is cut by heads and a table whose words do not divide are saved on one mesh and read on
// others. Files hold the tensors as they are: whole rows in their places, and no padding.
//
//===---------------------------------------------------------------------------===//
#include "../RandomLayouts.h"
#include "Checkpoint/LocalBoxes.h"
#include "CheckpointFixture.h"

#include <random>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;

namespace {

class Views : public CheckpointFixture {};

/// The local elements of a box, in the order of its own.
std::vector<uint64_t> localElementsOf(const LocalBox &box) {
  const ShardPiece piece{"", box.box, box.first, 0, box.repeats};
  std::vector<uint64_t> elements;
  for (uint64_t run = 0; run < piece.runs(); ++run)
    for (uint64_t i = 0; i < box.box.elements() / piece.runs(); ++i)
      elements.push_back(piece.runAt(run) + i);
  return elements;
}

/// Any range of any local tensor, against division alone.
TEST(LocalBoxes, areTheRangeElementByElement) {
  std::mt19937 random(21);
  int repeated = 0;
  for (int round = 0; round < 4000; ++round) {
    const RandomLayout c = randomLayout(random);
    for (uint32_t rank = 0; rank < c.mesh.size(); ++rank) {
      std::map<uint64_t, uint64_t> logical; // by local element
      for (uint64_t element = 0; element < productOf(c.shape); ++element)
        if (const auto local = localOf(c, element, rank))
          logical[*local] = element;
      const bool all = logical.empty() || random() % 2;
      const uint64_t first = all ? 0 : random() % logical.size();
      const uint64_t count = all ? logical.size() : random() % (logical.size() - first + 1);
      std::map<uint64_t, uint64_t> expected(logical.lower_bound(first), logical.lower_bound(first + count)),
          found;
      for (const LocalBox &box : localBoxesOf(c.mesh, c.layout, c.shape, rank, first, count)) {
        const std::vector<uint64_t> locals = localElementsOf(box);
        ASSERT_EQ(locals.size(), box.box.elements());
        repeated += !box.repeats.empty();
        for (const ElementRun &run : runsOf(box.box, c.shape))
          for (uint64_t i = 0; i < run.count; ++i)
            ASSERT_TRUE(found.emplace(locals[run.at + i], run.first + i).second) << "round " << round;
      }
      ASSERT_EQ(found, expected) << "round " << round << ", rank " << rank;
    }
  }
  EXPECT_GT(repeated, 100) << "some boxes are not one run of memory";
}

constexpr int64_t kWidth = 24, kHeads = 8, kWords = 50257;

/// How the tensors of fusedOn are held.
struct Cuts {
  bool heads = true;       ///< or the fused rows as they come
  bool bucketed = false;   ///< flat along dp, too
  int64_t words = 0;       ///< rows of the table with its padding; 0: it is not cut
  bool transposed = false; ///< the fused tensor is [h, 3h]
  bool uneven = false;     ///< with fewer key heads: pieces that differ in size
};

/// A fused QKV, a table and a replicated tensor on dp x tp ranks.
Model fusedOn(uint32_t dp, uint32_t tp, const Cuts &cuts) {
  Model model(Mesh{{"dp", dp}, {"tp", tp}});
  const AxisSet along{1};
  Layout qkv, table;
  if (cuts.uneven)
    qkv.pieces = {48, 16, 8},
    qkv.cuts.assign({cuts.transposed ? AxisSet() : along, cuts.transposed ? along : AxisSet()});
  else if (cuts.heads && cuts.transposed)
    qkv.view = {kWidth, 3, kHeads, kWidth / kHeads}, qkv.cuts = {{}, {}, along, {}};
  else if (cuts.heads)
    qkv.view = {3, kHeads, kWidth / kHeads, kWidth}, qkv.cuts = {{}, along, {}, {}};
  else
    qkv.cuts = {along, {}};
  if (cuts.words)
    table.cuts = {along, {}};
  if (cuts.words > kWords)
    table.view = {cuts.words, 2}, table.existing = kWords;
  const std::vector<int64_t> fused =
      cuts.transposed ? std::vector<int64_t>{kWidth, 3 * kWidth} : std::vector<int64_t>{3 * kWidth, kWidth};
  if (cuts.bucketed)
    for (auto [layout, shape] :
         {std::pair(&qkv, fused), std::pair(&table, std::vector<int64_t>{kWords, 2})}) {
      const uint64_t elements = localElements(model.program.mesh, *layout, shape);
      layout->bucket = {0};
      layout->offset = 5;
      layout->shardElements = (elements + 5 + dp - 1) / dp;
    }
  model.add("qkv", fused, qkv);
  model.add("table", {kWords, 2}, table);
  model.add("bias", {7});
  return model;
}

/// Saves as `from` and reads as each of `to`; all files together have what exists, once.
void expectReshaped(const std::string &root, const Model &from, const std::vector<Model> &to) {
  for (const Model *model : {&from, to.data()})
    for (const State &state : model->program.states)
      ASSERT_EQ(findMistake(model->program.mesh, state.layout, state.logicalShape), "") << state.name;
  const Result<std::string> path = save(systemFiles(), from, root, 3, /*chunkBytes=*/1 << 16);
  ASSERT_TRUE(path) << path.error().message;
  const Result<Checkpoint> checkpoint = Checkpoint::open(*path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->find("table")->shape, (std::vector<int64_t>{kWords, 2}));
  uint64_t bytes = 0;
  for (uint32_t rank = 0; rank < from.program.world; ++rank) {
    EXPECT_LE(snapshotBytes(from.program, rank), mostSnapshotBytes(from.program));
    bytes += snapshotBytes(from.program, rank);
  }
  EXPECT_EQ(bytes, checkpointBytes(from.program));
  EXPECT_EQ(bytes, (3u * kWidth * kWidth + kWords * 2u + 7u) * sizeof(float));
  for (const Model &model : to)
    expectReads(model, *checkpoint, 3);
  EXPECT_TRUE(removeCheckpoint(systemFiles(), *path));
}

TEST_F(Views, areReadOnAnyOtherMesh) {
  for (const bool transposed : {false, true}) {
    const Model one = fusedOn(1, 1, {.heads = false, .transposed = transposed});
    const Model two = fusedOn(1, 2, {.words = 50258, .transposed = transposed});
    const Model eight = fusedOn(1, 8, {.words = 50264, .transposed = transposed});
    const Model rows = fusedOn(2, 2, {.heads = false, .words = 50264, .transposed = transposed});
    const Model flat = fusedOn(4, 2, {.bucketed = true, .words = 50258, .transposed = transposed});
    const Model uneven = fusedOn(1, 8, {.words = 50264, .transposed = transposed, .uneven = true});
    const Model unevenFlat =
        fusedOn(4, 2, {.bucketed = true, .words = 50258, .transposed = transposed, .uneven = true});
    const std::vector<Model> all = {two, eight, one, rows, flat, uneven, unevenFlat};
    for (const Model &from : all)
      expectReshaped(root, from, all);
  }
}

/// Most of the last ranks' rows, or all of them, are padding.
TEST_F(Views, moreRanksThanWordsNeedAreFine) {
  Model model(Mesh{{"dp", 2}, {"tp", 4}});
  Layout layout;
  layout.view = {16, 3};
  layout.existing = 5;
  layout.cuts = {{1}, {}};
  model.add("few", {5, 3}, layout);
  layout.bucket = {0};
  layout.shardElements = 7;
  model.add("flat", {5, 3}, layout);
  const Result<std::string> path = save(systemFiles(), model, root, 1);
  ASSERT_TRUE(path) << path.error().message;
  const Result<Checkpoint> checkpoint = Checkpoint::open(*path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  expectReads(model, *checkpoint, 1);
}

/// Parts of two nodes are one checkpoint.
TEST_F(Views, nodesSaveTheirParts) {
  const Model model = fusedOn(2, 2, {.bucketed = true, .words = 50258, .transposed = true});
  const std::vector<CheckpointNode> nodes = {{"alpha", {0, 2}}, {"beta", {1, 3}}};
  const Result<std::string> first = savePart(model, root + "/a", nodes, 0, 4);
  const Result<std::string> second = savePart(model, root + "/b", nodes, 1, 4);
  ASSERT_TRUE(first && second);
  const Result<Checkpoint> half = Checkpoint::open(*first);
  ASSERT_TRUE(half) << half.error().message;
  for (const uint32_t rank : nodes[0].ranks)
    expectReads(model, *half, 4, rank);
  for (const fs::directory_entry &file : fs::directory_iterator(*second))
    fs::copy(file.path(), fs::path(*first) / file.path().filename());
  const Result<Checkpoint> checkpoint = Checkpoint::open(*first);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_TRUE(checkpoint->manifest().isWhole());
  expectReads(fusedOn(1, 8, {.words = 50264, .transposed = true}), *checkpoint, 4);
}

/// q, k and v are a box each: three files of a rank, of which the last two have this tensor alone.
TEST_F(Views, aRankHasABoxForEachOfTheFused) {
  const Model model = fusedOn(1, 2, {.words = 50258});
  const Result<std::vector<ShardFile>> files = planShards(model.program, 1);
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 3u);
  for (int64_t i = 0; i < 3; ++i)
    for (const ShardPiece &piece : (*files)[static_cast<size_t>(i)].pieces)
      if (piece.state == "qkv") {
        EXPECT_EQ(piece.box, (Box{{i * kWidth + kWidth / 2, 0}, {kWidth / 2, kWidth}}));
        EXPECT_EQ(piece.runs(), 1u);
      }
  const Model columns = fusedOn(1, 2, {.words = 50258, .transposed = true});
  const Result<std::vector<ShardFile>> transposed = planShards(columns.program, 1);
  ASSERT_TRUE(transposed);
  ASSERT_EQ(transposed->size(), 3u);
  const ShardPiece &second = (*transposed)[1].pieces.front();
  EXPECT_EQ(second.box, (Box{{0, kWidth + kWidth / 2}, {kWidth, kWidth / 2}}));
  EXPECT_EQ(second.repeats, (std::vector<Repeat>{{kWidth, 3 * kWidth / 2}}));
  EXPECT_EQ(second.at, uint64_t(kWidth) / 2);
}

} // namespace
