//===- PruneTest.cpp - Nothing goes but what a save has made -------------------------===//

#include "CheckpointFixture.h"
#include "CrashingFiles.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

Model small() {
  Model model(Mesh{{"dp", 2}});
  model.addZero("a", {3, 5});
  return model;
}

class Prune : public CheckpointFixture {
protected:
  Prune() : store(root + "/s") { fs::create_directory(archive); }

  void saveSteps(uint64_t last) {
    for (uint64_t step = 1; step <= last; ++step) {
      const Result<std::string> path = save(systemFiles(), small(), store, step);
      ASSERT_TRUE(path) << path.error().message;
    }
  }
  /// Moves something of the store to the archive, and leaves a link.
  void archiveAs(const std::string &name, const std::string &link) {
    fs::rename(store + "/" + name, archive + "/" + name);
    fs::create_directory_symlink("../archive/" + name, store + "/" + link);
  }
  /// Prunes, keeping two; what stays is in `notices`.
  Status prune(FileLayer &layer = systemFiles()) {
    notices.clear();
    return pruneCheckpoints(layer, store, {.newest = 2}, nullptr,
                            [this](const Error &why) { notices.push_back(why.message); });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const fs::directory_entry &entry : fs::directory_iterator(store))
      all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  }
  const std::string store, archive = root + "/archive";
  std::vector<std::string> notices;
};

/// Those behind links are not among the two that stay: a disk with an archive may go away.
TEST_F(Prune, linkedCheckpointsStayAndDoNotCount) {
  saveSteps(5);
  archiveAs("step-2", "step-2");
  archiveAs("step-5", "step-5");
  ASSERT_TRUE(prune());
  EXPECT_THAT(names(), ElementsAre("step-2", "step-3", "step-4", "step-5"));
  EXPECT_THAT(notices, IsEmpty());
  for (const char *step : {"/step-2", "/step-5"}) {
    EXPECT_TRUE(readManifest(archive + step));
    EXPECT_TRUE(readManifest(store + step)); // and can be resumed from
  }
}

TEST_F(Prune, linkedLeftoversStay) {
  saveSteps(3);
  archiveAs("step-1", "step-9.tmp-0123456789abcdef");
  writeText(store + "/step-8.old-ab", "a file");
  ASSERT_TRUE(prune());
  EXPECT_TRUE(readManifest(archive + "/step-1"));
  EXPECT_THAT(names(), ElementsAre("step-2", "step-3", "step-8.old-ab", "step-9.tmp-0123456789abcdef"));
  EXPECT_THAT(notices, ElementsAre(HasSubstr("step-8.old-ab' stays: it is no directory of its own"),
                                   HasSubstr("cdef' stays: it is no directory of its own")));
}

/// A checkpoint with something else in it stays whole; the others go.
TEST_F(Prune, whatNoSaveHasMadeStays) {
  const char *strange[] = {"notes.txt", "shard-1-model-1-of-1.safetensors.bak",
                           "shard--model-1-of-1.safetensors"};
  for (const char *name : strange) {
    saveSteps(4);
    writeText(store + "/step-2/" + name, "mine");
    ASSERT_TRUE(prune());
    EXPECT_THAT(names(), ElementsAre("step-2", "step-3", "step-4"));
    EXPECT_THAT(notices,
                ElementsAre(HasSubstr("no save has made '" + std::string(name) + "', which is in it")));
    EXPECT_TRUE(readManifest(store + "/step-2"));
    fs::remove_all(store);
  }
  saveSteps(4);
  fs::create_directory(store + "/step-1/manifest.json.d");
  writeText(store + "/step-3/manifest-of-mine.json", "{}");
  fs::create_symlink("manifest.json", store + "/step-2/manifest-00001-of-00001.json");
  EXPECT_EQ(removeCheckpoint(systemFiles(), store + "/step-1").error().code, ExitCode::Invalid);
  EXPECT_EQ(removeCheckpoint(systemFiles(), store + "/step-2").error().code, ExitCode::Invalid);
  EXPECT_EQ(removeCheckpoint(systemFiles(), store + "/step-3").error().code, ExitCode::Invalid);
  EXPECT_TRUE(fs::exists(store + "/step-1/manifest.json") && fs::exists(store + "/step-2/manifest.json"));
}

/// Puts a link in the place of a checkpoint while that is being removed.
class SwappingFiles : public CrashingFiles {
public:
  SwappingFiles(const std::string &root, std::function<void()> swap)
      : CrashingFiles(root), swap(std::move(swap)) {}
  int remove(int directory, const std::string &file) override {
    if (swap)
      std::exchange(swap, {})();
    return CrashingFiles::remove(directory, file);
  }

private:
  std::function<void()> swap;
};

TEST_F(Prune, aLinkThatAppearsMeanwhileIsNotFollowed) {
  saveSteps(3);
  fs::copy(store + "/step-1", archive + "/precious", fs::copy_options::recursive);
  SwappingFiles files(store, [&] {
    fs::rename(store + "/step-1", archive + "/step-1");
    fs::create_directory_symlink("../archive/precious", store + "/step-1");
  });
  EXPECT_FALSE(prune(files)); // the link is no directory that could be removed
  EXPECT_TRUE(fs::is_empty(archive + "/step-1"));
  EXPECT_TRUE(readManifest(archive + "/precious"));
}

/// Refused before a byte is written: the new one could not have the name.
TEST_F(Prune, noSaveReplacesALink) {
  saveSteps(3);
  archiveAs("step-2", "step-2");
  const Result<std::string> begun = beginSave(systemFiles(), store, 2);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ExitCode::Io);
  EXPECT_THAT(begun.error().message, HasSubstr("step-2' is a symbolic link, which no save replaces"));
  EXPECT_THAT(names(), ElementsAre("step-1", "step-2", "step-3"));
}

/// The earlier one of a step is replaced though something in it is not a save's; the save has succeeded.
TEST_F(Prune, aReplacedOneWithNotesStaysAsALeftover) {
  saveSteps(3);
  writeText(store + "/step-3/notes.txt", "mine");
  const Result<std::string> path = save(systemFiles(), small(), store, 3);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_FALSE(fs::exists(*path + "/notes.txt"));
  const std::vector<std::string> left = listCheckpoints(store)->leftovers;
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(readText(store + "/" + left[0] + "/notes.txt"), "mine");
}

} // namespace
