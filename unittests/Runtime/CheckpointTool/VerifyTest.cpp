//===- VerifyTest.cpp - Damage is found and named ------------------------------------------===//

#include "ToolFixture.h"

#include "ds/Runtime/CheckpointTool/Verify.h"
#include "ds/Runtime/Formats/SafeTensors.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

std::vector<float> numbers(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(i);
  return values;
}

class Verify : public ToolFixture {
protected:
  /// Three tensors of 4000, 8000 and 12 bytes in chunks of 4096.
  Verify()
      : path(write(1, {givenFloats("a", numbers(1000)), givenFloats("b", numbers(2000)),
                       givenFloats("c", numbers(3))})) {}

  VerifyReport verify(unsigned threads = 2) {
    Result<VerifyReport> report = verifyCheckpoint(path, threads);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : VerifyReport();
  }
  void flip(const std::string &file, size_t at) {
    std::string text = readText(path + file);
    text[at] = static_cast<char>(text[at] ^ 1);
    writeText(path + file, text);
  }
  /// First byte of a tensor in the file.
  size_t placeOf(const std::string &name) {
    const Result<SafeTensorsFile> file = SafeTensorsFile::open(path + kFile);
    return static_cast<size_t>(file->find(name)->data - file->file().bytes().data());
  }

  std::string path;
};

TEST_F(Verify, whatWasWrittenIsWhole) {
  const VerifyReport report = verify();
  EXPECT_THAT(report.damages, IsEmpty());
  EXPECT_EQ(report.files, 1u);
  EXPECT_EQ(report.bytes, fs::file_size(path + kFile));
  EXPECT_THAT(spellReport(report), HasSubstr("whole, 1 file"));
}

TEST_F(Verify, namesTheChunkAndWhatLiesThere) {
  const size_t at = placeOf("b") + 7000;
  flip(kFile, at);
  const VerifyReport report = verify();
  ASSERT_EQ(report.damages.size(), 1u);
  EXPECT_EQ(report.damages[0].first, at / 4096 * 4096);
  EXPECT_EQ(report.damages[0].file, path + kFile);
  EXPECT_THAT(report.damages[0].tensors, Contains("b"));
  EXPECT_THAT(report.damages[0].tensors, testing::Not(Contains("a")));
  EXPECT_THAT(spellReport(report), HasSubstr("there lie 'b'"));
}

TEST_F(Verify, tellsEachDamagedChunkOnce) {
  flip(kFile, 5000);
  flip(kFile, 5001);
  flip(kFile, 9000);
  const VerifyReport report = verify();
  ASSERT_EQ(report.damages.size(), 2u);
  EXPECT_EQ(report.damages[0].first, 4096u);
  EXPECT_EQ(report.damages[1].first, 8192u);
}

TEST_F(Verify, aDamagedHeaderIsTold) {
  flip(kFile, 3); // the header's length: 2^24 more
  const VerifyReport report = verify();
  ASSERT_EQ(report.damages.size(), 1u);
  EXPECT_EQ(report.damages[0].first, 0u);
  EXPECT_THAT(report.damages[0].tensors, IsEmpty());
}

TEST_F(Verify, whatIsCutOffIsNamed) {
  const uint64_t whole = fs::file_size(path + kFile);
  fs::resize_file(path + kFile, placeOf("b") + 100);
  const VerifyReport report = verify();
  ASSERT_GE(report.damages.size(), 2u); // 8012 bytes are three chunks or two
  EXPECT_EQ(report.damages.back().first + report.damages.back().bytes, whole);
  EXPECT_THAT(report.damages[0].what, HasSubstr("are not all there: the file ends at byte"));
  EXPECT_THAT(report.damages.back().tensors, Contains("c"));
}

TEST_F(Verify, whatWasAppendedIsNamed) {
  const uint64_t whole = fs::file_size(path + kFile);
  writeText(path + kFile, readText(path + kFile) + "xyz");
  const VerifyReport report = verify();
  ASSERT_EQ(report.damages.size(), 1u);
  EXPECT_EQ(report.damages[0].first, whole);
  EXPECT_EQ(report.damages[0].bytes, 3u);
}

TEST_F(Verify, missingFilesAndLinksAreDamage) {
  fs::rename(path + kFile, root + "/elsewhere");
  EXPECT_EQ(verify().damages.at(0).what, "is missing");
  fs::create_symlink(root + "/elsewhere", path + kFile);
  EXPECT_EQ(verify().damages.at(0).what, "is not a regular file");
}

TEST_F(Verify, aDamagedOrMissingManifestIsDamage) {
  flip("/manifest.json", 100);
  EXPECT_THAT(verify().damages.at(0).what, HasSubstr("is damaged"));
  fs::remove(path + "/manifest.json");
  EXPECT_THAT(verify().damages.at(0).what, HasSubstr("has no manifest.json"));
}

/// Digests say what was written, not that it is a checkpoint.
TEST_F(Verify, aHoleIsDamage) {
  Result<Manifest> manifest = readManifest(path);
  ASSERT_TRUE(manifest);
  manifest->tensors[0].shape = {1001};
  rewriteManifest(path, *manifest);
  EXPECT_THAT(verify().damages.at(0).what, HasSubstr("the parts of 'a' end at element 1000 of 1001"));
}

TEST_F(Verify, extraFilesAreNoDamage) {
  writeText(path + "/notes.txt", "x");
  const VerifyReport report = verify();
  EXPECT_THAT(report.damages, IsEmpty());
  EXPECT_THAT(report.extra, ElementsAre("notes.txt"));
}

/// What a run removes while all are read is no damage: here step 2 goes when the first notice comes.
TEST_F(Verify, whatIsOnItsWayOutIsPassedOver) {
  for (const uint64_t step : {2, 3, 4})
    write(step, {givenFloats("a", numbers(3))});
  fs::remove(root + "/step-1/manifest.json");
  fs::rename(root + "/step-3", root + "/step-3.old-ab");
  std::vector<std::string> notices, seen;
  size_t damages = 0;
  const Status status = verifyStore(
      root, 1,
      [&](const std::string &text) {
        notices.push_back(text);
        fs::remove_all(root + "/step-2");
      },
      [&](const VerifyReport &report) {
        seen.push_back(fs::path(report.directory).filename());
        damages += report.damages.size();
      });
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_THAT(seen, ElementsAre("step-4"));
  EXPECT_EQ(damages, 0u);
  EXPECT_THAT(notices, ElementsAre("left by an unfinished removal, and not looked at: 'step-1'",
                                   "left by an unfinished removal, and not looked at: 'step-3.old-ab'",
                                   "removed meanwhile, and not looked at: 'step-2'"));
}

/// Seven ranks have twenty files or so; what is found does not depend on who reads them.
TEST_F(Verify, anyNumberOfThreadsFindsTheSame) {
  Model model(Mesh{{"dp", 7}});
  for (const char *name : {"a", "b", "c"})
    model.addZero(name, {7, 11});
  path = *save(systemFiles(), model, root, 2);
  for (const fs::directory_entry &entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".safetensors")
      flip("/" + std::string(entry.path().filename()), fs::file_size(entry.path()) - 1);
  const std::string one = spellReport(verify(1));
  EXPECT_EQ(verify(1).damages.size(), readManifest(path)->files.size());
  EXPECT_EQ(spellReport(verify(2)), one);
  EXPECT_EQ(spellReport(verify(16)), one);
}

} // namespace
