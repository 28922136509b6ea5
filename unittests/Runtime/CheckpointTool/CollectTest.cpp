//===- CollectTest.cpp - What is removed, and what stays -----------------------------------===//

#include "ToolFixture.h"

#include "ds/Runtime/CheckpointTool/Collect.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

class Collect : public ToolFixture {
protected:
  void saveSteps(std::vector<uint64_t> steps) {
    for (const uint64_t step : steps)
      write(step, {givenFloats("w", {1, 2, 3})});
  }
  /// What an unfinished save leaves.
  std::string leave(uint64_t step) {
    const std::string path = *beginSave(systemFiles(), root, step);
    writeText(path + "/shard-00000-model-00001-of-00001.safetensors", "12345");
    return fs::path(path).filename();
  }
  Status collect(CollectOptions options) {
    options.root = root;
    removed.clear();
    notices.clear();
    bytes = 0;
    return collectGarbage(
        options,
        [&](const Removed &each) {
          removed.push_back(each.name);
          bytes += each.bytes;
        },
        [&](const std::string &text) { notices.push_back(text); });
  }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const fs::directory_entry &entry : fs::directory_iterator(root))
      if (entry.path().filename() != ".lock")
        all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  }
  std::vector<std::string> removed, notices;
  uint64_t bytes = 0;
};

TEST_F(Collect, leftoversGoAndCheckpointsStay) {
  saveSteps({1, 2, 3});
  const std::string left = leave(4);
  ASSERT_TRUE(collect({}));
  EXPECT_THAT(removed, ElementsAre(left));
  EXPECT_EQ(bytes, 5u);
  EXPECT_THAT(names(), ElementsAre("step-1", "step-2", "step-3"));
}

TEST_F(Collect, theNewestStayAndTwoAlways) {
  saveSteps({1, 2, 3, 4, 10});
  ASSERT_TRUE(collect({.keep = KeepRule{.newest = 3}}));
  EXPECT_THAT(removed, ElementsAre("step-1", "step-2"));
  ASSERT_TRUE(collect({.keep = KeepRule{.newest = 0}}));
  EXPECT_THAT(names(), ElementsAre("step-10", "step-4"));
}

TEST_F(Collect, aDryRunTouchesNothing) {
  saveSteps({1, 2, 3});
  const std::string left = leave(4);
  ASSERT_TRUE(collect({.keep = KeepRule{.newest = 2}, .damaged = true, .dryRun = true}));
  EXPECT_THAT(removed, ElementsAre(left, "step-1"));
  EXPECT_THAT(names(), ElementsAre("step-1", "step-2", "step-3", left));
  EXPECT_FALSE(fs::exists(root + "/.lock"));
}

TEST_F(Collect, thoseOfSomeStepsStay) {
  saveSteps({1, 2, 3, 4, 10});
  ASSERT_TRUE(collect({.keep = KeepRule{.newest = 2, .every = 2}}));
  EXPECT_THAT(removed, ElementsAre("step-1", "step-3"));
}

/// Damaged ones do not count among those that stay, and go only if that is asked for.
TEST_F(Collect, damagedOnesGoWhenAskedFor) {
  saveSteps({1, 2, 3, 4});
  fs::remove(root + "/step-4" + kFile);
  ASSERT_TRUE(collect({.keep = KeepRule{.newest = 2}}));
  EXPECT_THAT(names(), ElementsAre("step-2", "step-3", "step-4"));
  EXPECT_THAT(notices, ElementsAre(HasSubstr("stays, for --damaged was not given: ")));
  ASSERT_TRUE(collect({.damaged = true}));
  EXPECT_THAT(names(), ElementsAre("step-2", "step-3"));
}

/// A save that was killed between its two renames may have left the only whole one.
TEST_F(Collect, theOnlyWholeLeftoverStays) {
  saveSteps({1});
  fs::rename(root + "/step-1", root + "/step-1.old-ab");
  const std::string left = leave(2);
  ASSERT_TRUE(collect({}));
  EXPECT_THAT(names(), ElementsAre("step-1.old-ab"));
  EXPECT_THAT(notices, ElementsAre(HasSubstr("stays, for there is no other whole checkpoint")));
  saveSteps({3});
  ASSERT_TRUE(collect({}));
  EXPECT_THAT(names(), ElementsAre("step-3"));
}

TEST_F(Collect, whatIsSetAsideGoesWhenAskedFor) {
  saveSteps({1, 2});
  fs::rename(root + "/step-2", root + "/step-2.aside-ab");
  ASSERT_TRUE(collect({.damaged = true}));
  EXPECT_THAT(names(), ElementsAre("step-1", "step-2.aside-ab"));
  EXPECT_THAT(notices, ElementsAre("stays, for --set-aside was not given: 'step-2.aside-ab'"));
  ASSERT_TRUE(collect({.setAside = true}));
  EXPECT_THAT(names(), ElementsAre("step-1"));
}

TEST_F(Collect, aRunThatSavesIsNotDisturbed) {
  saveSteps({1});
  leave(2);
  const Result<StoreLock> lock = StoreLock::take(root);
  ASSERT_TRUE(lock);
  const Status status = collect({});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_THAT(status.error().message, HasSubstr("is in use"));
  EXPECT_THAT(removed, IsEmpty());
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(Collect, linksAreNotFollowed) {
  saveSteps({1});
  fs::create_directory(root + "/precious");
  writeText(root + "/precious/file", "x");
  fs::create_directory_symlink(root + "/precious", root + "/step-5");
  ASSERT_TRUE(collect({.damaged = true}));
  EXPECT_THAT(removed, IsEmpty());
  EXPECT_TRUE(fs::exists(root + "/precious/file"));
  EXPECT_THAT(notices, ElementsAre(HasSubstr("stays, for it is a link: ")));
}

/// Nor does a dry run say that it would go.
TEST_F(Collect, whatNoSaveHasMadeStays) {
  saveSteps({1, 2, 3});
  const std::string left = leave(4);
  writeText(root + "/" + left + "/notes.txt", "x");
  writeText(root + "/step-1/notes.txt", "x");
  for (const bool dryRun : {true, false}) {
    ASSERT_TRUE(collect({.keep = KeepRule{.newest = 2}, .dryRun = dryRun}));
    EXPECT_THAT(removed, IsEmpty());
    EXPECT_THAT(notices, ElementsAre(HasSubstr("stays: no save has made 'notes.txt'"),
                                     HasSubstr("step-1' stays: no save has made 'notes.txt'")));
  }
  EXPECT_TRUE(readManifest(root + "/step-1"));
}

} // namespace
