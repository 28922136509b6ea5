//===- StoreTest.cpp - The directory that a run's checkpoints are in --------------------===//

#include "CheckpointFixture.h"

#include <sys/stat.h>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;

namespace {

Model small() {
  Model model(Mesh{{"dp", 2}});
  model.addZero("a", {3, 5});
  return model;
}

std::vector<std::string> names(const std::string &root) {
  std::vector<std::string> all;
  for (const fs::directory_entry &entry : fs::directory_iterator(root))
    if (entry.path().filename() != ".lock")
      all.push_back(entry.path().filename());
  std::sort(all.begin(), all.end());
  return all;
}

class Store : public CheckpointFixture {
protected:
  void saveStep(uint64_t step) {
    const Result<std::string> path = save(systemFiles(), small(), root, step);
    ASSERT_TRUE(path) << path.error().message;
  }
};

TEST_F(Store, newestComesFirstWhateverItsLength) {
  for (const uint64_t step : {9, 10, 100})
    saveStep(step);
  const Result<StoreListing> listing = listCheckpoints(root);
  ASSERT_TRUE(listing);
  ASSERT_EQ(listing->checkpoints.size(), 3u);
  EXPECT_EQ(listing->checkpoints[0].name, "step-100");
  EXPECT_EQ(listing->checkpoints[2].name, "step-9");
  EXPECT_EQ(listing->checkpoints[0].problem, "");
}

TEST_F(Store, noDirectoryHasNoCheckpoints) {
  const Result<StoreListing> listing = listCheckpoints(root + "/none");
  ASSERT_TRUE(listing);
  EXPECT_TRUE(listing->checkpoints.empty());
}

TEST_F(Store, whatIsUnfinishedIsNoCheckpoint) {
  saveStep(1);
  const Result<std::string> unfinished = beginSave(systemFiles(), root, 2);
  ASSERT_TRUE(unfinished);
  fs::create_directory(root + "/step-3");
  fs::create_directory(root + "/notes");
  fs::create_directory(root + "/step-3x");
  const Result<StoreListing> listing = listCheckpoints(root);
  ASSERT_TRUE(listing);
  ASSERT_EQ(listing->checkpoints.size(), 2u);
  EXPECT_THAT(listing->checkpoints[0].problem, testing::HasSubstr("has no manifest.json"));
  EXPECT_EQ(listing->checkpoints[1].problem, "");
  EXPECT_THAT(listing->leftovers, testing::ElementsAre(fs::path(*unfinished).filename()));
}

TEST_F(Store, aCheckpointOfAnotherStepIsNone) {
  saveStep(1);
  fs::rename(root + "/step-1", root + "/step-5");
  EXPECT_THAT(listCheckpoints(root)->checkpoints[0].problem, testing::HasSubstr("is of step 1"));
}

TEST_F(Store, theSameStepIsReplaced) {
  saveStep(4);
  Model other = small();
  other.program.planHash = "other";
  ASSERT_TRUE(save(systemFiles(), other, root, 4));
  EXPECT_EQ(readManifest(root + "/step-4")->planHash, "other");
  EXPECT_THAT(names(root), testing::ElementsAre("step-4"));
}

TEST_F(Store, twoStayAtLeast) {
  for (uint64_t step = 1; step <= 5; ++step)
    saveStep(step);
  ASSERT_TRUE(beginSave(systemFiles(), root, 6));
  ASSERT_TRUE(pruneCheckpoints(systemFiles(), root, {.newest = 3}));
  EXPECT_THAT(names(root), testing::ElementsAre("step-3", "step-4", "step-5"));
  ASSERT_TRUE(pruneCheckpoints(systemFiles(), root, {.newest = 0}));
  EXPECT_THAT(names(root), testing::ElementsAre("step-4", "step-5"));
}

/// Damaged ones do not count among those that stay, and are left for whoever wants to know why.
TEST_F(Store, damagedOnesDoNotCount) {
  for (uint64_t step = 1; step <= 4; ++step)
    saveStep(step);
  fs::remove(root + "/step-4/manifest.json");
  ASSERT_TRUE(pruneCheckpoints(systemFiles(), root, {.newest = 2}));
  EXPECT_THAT(names(root), testing::ElementsAre("step-2", "step-3", "step-4"));
}

/// A removal takes the manifest first. What it has left goes with the next one, unless there is no newer
/// checkpoint, or it has files that no save has written.
TEST_F(Store, whatIsHalfRemovedGoesWithTheNext) {
  for (uint64_t step = 1; step <= 6; ++step)
    saveStep(step);
  for (const char *name : {"/step-1", "/step-2", "/step-3", "/step-6"})
    fs::remove(root + name + "/manifest.json");
  for (const fs::directory_entry &entry : fs::directory_iterator(root + "/step-1"))
    fs::remove(entry.path());
  writeText(root + "/step-3/notes", "x");
  const Result<StoreListing> listing = listCheckpoints(root);
  EXPECT_THAT(listing->leftovers, testing::ElementsAre("step-1", "step-2"));
  ASSERT_EQ(listing->checkpoints.size(), 4u);
  EXPECT_THAT(listing->checkpoints[0].problem, testing::HasSubstr("step-6' has no manifest.json"));
  EXPECT_THAT(listing->checkpoints[3].problem, testing::HasSubstr("step-3' has no manifest.json"));
  EXPECT_STREQ(spellOrigin("step-1"), "left by an unfinished removal");
  EXPECT_STREQ(spellOrigin("step-1.old-ab"), "left by an unfinished removal");
  EXPECT_STREQ(spellOrigin("step-1.tmp-ab"), "left by an unfinished save");
  ASSERT_TRUE(pruneCheckpoints(systemFiles(), root, {.newest = 2}));
  EXPECT_THAT(names(root), testing::ElementsAre("step-3", "step-4", "step-5", "step-6"));
}

/// They stay under another name, by which they are neither listed as checkpoints nor removed.
TEST_F(Store, whatIsSetAsideIsNoCheckpoint) {
  for (uint64_t step = 1; step <= 4; ++step)
    saveStep(step);
  const auto renamed =
      setAside(systemFiles(), root, [](const StoredCheckpoint &each) { return each.step > 2; });
  ASSERT_TRUE(renamed) << renamed.error().message;
  ASSERT_EQ(renamed->size(), 2u);
  EXPECT_EQ((*renamed)[0].first, "step-4");
  EXPECT_TRUE(readManifest(root + "/" + (*renamed)[0].second));
  const Result<StoreListing> listing = listCheckpoints(root);
  ASSERT_EQ(listing->checkpoints.size(), 2u);
  EXPECT_EQ(listing->checkpoints[0].name, "step-2");
  EXPECT_THAT(listing->aside, testing::ElementsAre((*renamed)[1].second, (*renamed)[0].second));
  EXPECT_TRUE(listing->leftovers.empty());
  ASSERT_TRUE(pruneCheckpoints(systemFiles(), root, {.newest = 2}));
  EXPECT_EQ(names(root).size(), 4u);
}

TEST_F(Store, oneRunSavesInADirectory) {
  Result<StoreLock> first = StoreLock::take(root + "/deep/er");
  ASSERT_TRUE(first) << first.error().message;
  const Result<StoreLock> second = StoreLock::take(root + "/deep/er");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ExitCode::Io);
  EXPECT_THAT(second.error().message, testing::HasSubstr("another run saves its checkpoints there"));
  { const StoreLock released = std::move(*first); }
  EXPECT_TRUE(StoreLock::take(root + "/deep/er"));
}

/// Neither made nor held behind a link, and nothing is waited for.
TEST_F(Store, theLockIsAFileOfItsOwn) {
  fs::create_directory(root + "/s");
  const auto refused = [&] {
    const Result<StoreLock> lock = StoreLock::take(root + "/s");
    return !lock && lock.error().code == ExitCode::Io &&
           lock.error().message.find("/s/.lock' is no regular file") != std::string::npos;
  };
  fs::create_symlink("../elsewhere", root + "/s/.lock");
  EXPECT_TRUE(refused());
  EXPECT_FALSE(fs::exists(root + "/elsewhere"));
  writeText(root + "/elsewhere", "x");
  EXPECT_TRUE(refused());
  fs::remove(root + "/s/.lock");
  ASSERT_EQ(::mkfifo((root + "/s/.lock").c_str(), 0600), 0);
  EXPECT_TRUE(refused());
  fs::remove(root + "/s/.lock");
  EXPECT_TRUE(StoreLock::take(root + "/s"));
}

TEST_F(Store, aFileIsNoDirectory) {
  writeText(root + "/file", "x");
  EXPECT_EQ(beginSave(systemFiles(), root + "/file", 1).error().code, ExitCode::Io);
}

} // namespace
