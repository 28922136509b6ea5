//===- CheckpointTest.cpp - What any mesh writes any other reads ------------------------===//

#include "CheckpointFixture.h"

#include "ds/Runtime/Formats/SafeTensors.h"

#include <set>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;

namespace {

TEST_F(CheckpointFixture, everyMeshReadsEveryOther) {
  const std::vector<Model> models = {modelOf(1), modelOf(2),    modelOf(3),
                                     modelOf(4), modelOf(2, 2), modelOf(1, 4)};
  for (size_t i = 0; i < models.size(); ++i) {
    const Result<std::string> path = save(systemFiles(), models[i], root, i + 1, 64, i % 4);
    ASSERT_TRUE(path) << path.error().message;
    const Result<Checkpoint> checkpoint = Checkpoint::open(*path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    for (const Model &reader : models)
      expectReads(reader, *checkpoint, static_cast<int>(i + 1));
  }
}

/// 64 x 300 floats on four ranks: 16 rows each, in one box each.
TEST_F(CheckpointFixture, replicasDivideWhatTheyHold) {
  const Model model = modelOf(4);
  uint64_t all = 0;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const Result<std::vector<ShardFile>> files = planShards(model.program, rank);
    ASSERT_TRUE(files);
    for (const ShardFile &file : *files)
      for (const ShardPiece &piece : file.pieces)
        if (piece.state == "c") {
          EXPECT_EQ(piece.box, (Box{{16 * int64_t(rank), 0}, {16, 300}}));
          all += piece.bytes;
        }
  }
  EXPECT_EQ(all, 64u * 300 * 4);
}

TEST_F(CheckpointFixture, aCopyTakesWhatIsWritten) {
  const Model model = modelOf(3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    uint64_t written = 0;
    const Result<std::vector<ShardFile>> files = planShards(model.program, rank);
    ASSERT_TRUE(files);
    for (const ShardFile &file : *files)
      written += file.dataBytes;
    EXPECT_EQ(snapshotBytes(model.program, rank), written);
  }
}

/// What a plan says of the copy is enough for every rank, and little more than the largest.
TEST_F(CheckpointFixture, theBoundOnCopiesHolds) {
  for (const Model &model : {modelOf(1), modelOf(2), modelOf(3), modelOf(4), modelOf(2, 2), modelOf(1, 4)}) {
    uint64_t most = 0, all = 0;
    for (uint32_t rank = 0; rank < model.program.world; ++rank) {
      most = std::max(most, snapshotBytes(model.program, rank));
      all += snapshotBytes(model.program, rank);
    }
    EXPECT_GE(mostSnapshotBytes(model.program), most);
    EXPECT_LE(mostSnapshotBytes(model.program), most + most / 8 + 3 * 300 * 4);
    EXPECT_EQ(checkpointBytes(model.program), all);
  }
}

/// A 16-bit parameter is its master, rounded: only the master is written, under the parameter's name.
TEST_F(CheckpointFixture, mastersStandForTheirParameters) {
  Model model(Mesh{{"dp", 1}});
  model.add("w", {4, 4});
  model.program.buffers[0].dtype = DType::BF16;
  model.add("w.master", {4, 4}, {}, Role::Master, "w");
  model.add("w.grad", {4, 4}, {}, Role::Gradient, "w");
  const std::vector<CheckpointTensor> tensors = checkpointTensors(model.program);
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].name, "w");
  EXPECT_EQ(tensors[0].dtype, FileDType::F32);
  EXPECT_EQ(tensors[0].held, FileDType::BF16);
  EXPECT_EQ(tensors[0].role, Role::Parameter);
}

/// Each file is a safetensors file that says where its parts belong.
TEST_F(CheckpointFixture, filesSayWhereTheirPartsBelong) {
  const Model model = modelOf(2);
  const Result<std::string> path = save(systemFiles(), model, root, 1);
  ASSERT_TRUE(path);
  const Result<SafeTensorsFile> file =
      SafeTensorsFile::open(*path + "/shard-00001-model-00001-of-00003.safetensors");
  ASSERT_TRUE(file) << file.error().message;
  std::string info;
  for (const MetadataEntry &entry : file->metadata())
    if (entry.key == "DCP_SHARDING_INFO")
      info = entry.value;
  // 40 elements a shard, the first 3 of which are others': rank 1 begins at element 37 = row 3, column 4.
  EXPECT_THAT(info, testing::HasSubstr(R"("a":{"saved_offsets":[4,0]})")) << info;
  const TensorEntry *a = file->find("a");
  ASSERT_TRUE(a);
  EXPECT_THAT(a->shape, testing::ElementsAre(3, 11));
}

//===----------------------------------------------------------------------===//
// Damage
//===----------------------------------------------------------------------===//

TEST_F(CheckpointFixture, everyDamagedByteIsFound) {
  const Model model = modelOf(2);
  const Result<std::string> path = save(systemFiles(), model, root, 1, /*chunkBytes=*/4096);
  ASSERT_TRUE(path);
  for (const fs::directory_entry &entry : fs::directory_iterator(*path)) {
    const std::string good = readText(entry.path());
    for (size_t at = 0; at<good.size(); at += good.size()> 4000 ? 997 : 7) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x20);
      writeText(entry.path(), bad);
      const Result<Checkpoint> checkpoint = Checkpoint::open(*path);
      bool found = !checkpoint;
      if (checkpoint)
        for (const CheckpointFile &file : checkpoint->manifest().files)
          ASSERT_TRUE(checkpoint->verify(file, [&](uint64_t offset, uint64_t bytes) {
            found |= *path + "/" + file.name == entry.path() && offset <= at && at < offset + bytes;
          }));
      ASSERT_TRUE(found) << entry.path() << " byte " << at;
    }
    writeText(entry.path(), good);
  }
}

TEST_F(CheckpointFixture, damageIsNamedByFileAndOffset) {
  const Model model = modelOf(1);
  const Result<std::string> path = save(systemFiles(), model, root, 1, /*chunkBytes=*/4096);
  ASSERT_TRUE(path);
  const std::string file = *path + "/shard-00000-model-00001-of-00001.safetensors";
  std::string text = readText(file);
  text[text.size() - 100] ^= 1;
  writeText(file, text);
  const Result<Checkpoint> checkpoint = Checkpoint::open(*path);
  ASSERT_TRUE(checkpoint);
  const CheckpointTensor *tensor = nullptr; // the one at the end
  for (const CheckpointTensor &each : checkpoint->manifest().tensors)
    if (!checkpoint->runs(each).empty() &&
        checkpoint->runs(each)[0].offset + 64 * 300 * 4 > text.size() - 100)
      tensor = &each;
  ASSERT_TRUE(tensor);
  std::vector<float> values(64 * 300);
  uint64_t elements = 1;
  for (int64_t size : tensor->shape)
    elements *= static_cast<uint64_t>(size);
  const Status status = checkpoint->read(*tensor, 0, elements, reinterpret_cast<std::byte *>(values.data()));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Corrupt);
  EXPECT_THAT(status.error().message, testing::HasSubstr(file + "' is damaged: bytes "));
}

TEST_F(CheckpointFixture, aMissingOrShorterFileMakesNoCheckpoint) {
  const Model model = modelOf(2);
  const Result<std::string> path = save(systemFiles(), model, root, 1);
  ASSERT_TRUE(path);
  const std::string file = *path + "/shard-00001-model-00001-of-00003.safetensors";
  const std::string good = readText(file);
  writeText(file, good.substr(0, good.size() - 1));
  EXPECT_THAT(Checkpoint::open(*path).error().message, testing::HasSubstr("but the manifest says"));
  fs::remove(file);
  EXPECT_THAT(Checkpoint::open(*path).error().message, testing::HasSubstr("is missing"));
  fs::create_symlink("/etc/passwd", file);
  EXPECT_THAT(Checkpoint::open(*path).error().message, testing::HasSubstr("is not a regular file"));
}

/// A file of another save that fits by size and digest, but leaves a hole.
TEST_F(CheckpointFixture, partsMustCoverTheirTensors) {
  const Model model = modelOf(2);
  const Result<std::string> path = save(systemFiles(), model, root, 1);
  ASSERT_TRUE(path);
  Result<Manifest> manifest = readManifest(*path);
  ASSERT_TRUE(manifest);
  manifest->files.pop_back();
  writeText(*path + "/manifest.json", spellManifest(*manifest));
  EXPECT_THAT(Checkpoint::open(*path).error().message,
              testing::AnyOf(testing::HasSubstr("leave a hole"), testing::HasSubstr("end at element")));
}

} // namespace
