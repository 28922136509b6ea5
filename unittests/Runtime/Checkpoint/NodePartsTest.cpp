//===- NodePartsTest.cpp - Checkpoints whose parts are on nodes of their own ---------===//

#include "CheckpointFixture.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::HasSubstr;

namespace {

class NodePartsTest : public CheckpointFixture {
protected:
  std::string of(uint32_t node) const { return root + "/node" + std::to_string(node); }

  /// The parts of all nodes, each in a directory of its own.
  void saveAll(const Model &model, const std::vector<CheckpointNode> &nodes, uint64_t step,
               const std::string &letters = "letters") {
    for (uint32_t node = 0; node < nodes.size(); ++node) {
      const Result<std::string> path = savePart(model, of(node), nodes, node, step, letters);
      ASSERT_TRUE(path) << path.error().message;
    }
  }
  /// All files of all nodes in one directory.
  std::string together(size_t nodes, uint64_t step) {
    const std::string path = root + "/together";
    for (uint32_t node = 0; node < nodes; ++node)
      fs::copy(of(node) + "/step-" + std::to_string(step), path, fs::copy_options::recursive);
    return path;
  }
};

const std::vector<CheckpointNode> kRows = {{"alpha", {0, 1}}, {"beta", {2, 3}}};
const std::vector<CheckpointNode> kColumns = {{"alpha", {0, 2}}, {"beta", {1, 3}}};
const std::vector<CheckpointNode> kUneven = {{"alpha", {0, 2, 3}}, {"beta", {1}}};
const std::vector<CheckpointNode> kAlone = {{"a", {0}}, {"b", {1}}, {"c", {2}}, {"d", {3}}};

/// Whatever ranks share a node and however states are cut: a rank's own node has all that the rank holds, and
/// all nodes together are a checkpoint that every mesh reads.
TEST_F(NodePartsTest, eachNodeHasWhatItsRanksHold) {
  for (const Model &model : {modelOf(4), modelOf(2, 2), modelOf(1, 4)})
    for (const auto &nodes : {kRows, kColumns, kUneven, kAlone}) {
      saveAll(model, nodes, 7);
      for (uint32_t node = 0; node < nodes.size(); ++node) {
        const Result<Checkpoint> part = Checkpoint::open(of(node) + "/step-7");
        ASSERT_TRUE(part) << part.error().message;
        EXPECT_FALSE(part->manifest().isWhole());
        for (const uint32_t rank : nodes[node].ranks)
          expectReads(model, *part, 7, rank);
      }
      const Result<Checkpoint> whole = Checkpoint::open(together(nodes.size(), 7));
      ASSERT_TRUE(whole) << whole.error().message;
      EXPECT_TRUE(whole->manifest().isWhole());
      for (const Model &reader : {modelOf(1), modelOf(3), modelOf(2, 2)})
        expectReads(reader, *whole, 7);
      fs::remove_all(root + "/together");
    }
}

/// Two ranks of a node divide what all four hold: 64 rows of 300, 32 each, and so do the others.
TEST_F(NodePartsTest, ranksOfANodeDivideWhatTheyHold) {
  const Model model = modelOf(4);
  for (const CheckpointNode &node : kRows)
    for (const uint32_t rank : node.ranks) {
      int64_t rows = 0;
      const Result<std::vector<ShardFile>> files = planShards(model.program, rank, node.ranks);
      for (const ShardFile &file : *files)
        for (const ShardPiece &piece : file.pieces)
          rows += piece.state == "c" ? piece.box.shape[0] : 0;
      EXPECT_EQ(rows, 32) << "rank " << rank;
    }
}

TEST_F(NodePartsTest, whatIsElsewhereIsNamed) {
  saveAll(modelOf(2), {{"alpha", {0}}, {"beta", {1}}}, 3);
  const Result<Checkpoint> part = Checkpoint::open(of(0) + "/step-3");
  ASSERT_TRUE(part);
  const CheckpointTensor *tensor = part->find("a"); // 77 elements, 37 of them of rank 0
  std::vector<float> values(77);
  const Status status = part->read(*tensor, 0, 77, reinterpret_cast<std::byte *>(values.data()));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Invalid);
  EXPECT_THAT(status.error().message, HasSubstr("has the part of node 1 of 2 (host alpha, rank 0)"));
  EXPECT_THAT(status.error().message,
              HasSubstr("160 bytes of 'a' are of the part of node 2 of 2 (host beta, rank 1)"));
}

TEST_F(NodePartsTest, partsOfSeveralSavesAreNoCheckpoint) {
  const std::vector<CheckpointNode> nodes = {{"alpha", {0}}, {"beta", {1}}};
  saveAll(modelOf(2), nodes, 3);
  ASSERT_TRUE(savePart(modelOf(2), of(1), nodes, 1, 3, "others"));
  EXPECT_THAT(Checkpoint::open(together(2, 3)).error().message, HasSubstr("is of another save"));
  fs::copy(root + "/together/manifest-00001-of-00002.json", root + "/together/manifest-00002-of-00002.json",
           fs::copy_options::overwrite_existing);
  EXPECT_THAT(Checkpoint::open(root + "/together").error().message, HasSubstr("another manifest beside it"));
  fs::remove(root + "/together/manifest-00002-of-00002.json");
  ASSERT_TRUE(save(systemFiles(), modelOf(2), root, 3));
  fs::copy(root + "/step-3/manifest.json", root + "/together/manifest.json");
  EXPECT_THAT(Checkpoint::open(root + "/together").error().message, HasSubstr("is not of the checkpoint"));
}

TEST_F(NodePartsTest, aPartWithoutItsFilesIsNone) {
  saveAll(modelOf(2), {{"alpha", {0}}, {"beta", {1}}}, 3);
  fs::remove(of(0) + "/step-3/shard-00000-model-00001-of-00003.safetensors");
  EXPECT_THAT(listCheckpoints(of(0))->checkpoints[0].problem, HasSubstr("is missing"));
  EXPECT_EQ(listCheckpoints(of(1))->checkpoints[0].problem, "");
  EXPECT_EQ(listCheckpoints(of(1))->checkpoints[0].save, "letters");
}

/// Parts count where all nodes have theirs. Of the others those go that as many better ones are newer than.
TEST_F(NodePartsTest, prunesWhatIsNotEverywhereAsIfItWereNotThere) {
  const std::vector<CheckpointNode> nodes = {{"alpha", {0}}, {"beta", {1}}};
  for (uint64_t step = 1; step <= 6; ++step)
    ASSERT_TRUE(savePart(modelOf(2), of(0), nodes, 0, step, "save" + std::to_string(step)));
  const std::set<std::string> everywhere = {"save1", "save3", "save5"};
  ASSERT_TRUE(pruneCheckpoints(systemFiles(), of(0), {.newest = 2}, &everywhere));
  std::vector<uint64_t> left;
  const Result<StoreListing> listing = listCheckpoints(of(0));
  for (const StoredCheckpoint &each : listing->checkpoints)
    left.push_back(each.step);
  EXPECT_THAT(left, testing::ElementsAre(6, 5, 4, 3));
}

/// The manifest goes before the files, whatever it is called.
TEST_F(NodePartsTest, removesThePart) {
  saveAll(modelOf(2), {{"alpha", {0}}, {"beta", {1}}}, 3);
  ASSERT_TRUE(removeCheckpoint(systemFiles(), of(0) + "/step-3"));
  EXPECT_FALSE(fs::exists(of(0) + "/step-3"));
}

/// What a plan says of the copy is enough wherever ranks run.
TEST_F(NodePartsTest, theBoundOnCopiesHolds) {
  for (Model model : {modelOf(4), modelOf(2, 2), modelOf(1, 4)}) {
    model.program.nodeLocalSaves = true;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      uint64_t bytes = 0;
      const uint32_t alone[] = {rank};
      const Result<std::vector<ShardFile>> files = planShards(model.program, rank, alone);
      for (const ShardFile &file : *files)
        bytes += file.dataBytes;
      EXPECT_LE(bytes, mostSnapshotBytes(model.program)) << "rank " << rank;
    }
  }
}

} // namespace
