//===- RendezvousFolderTest.cpp - Folders of launchers, living and dead -----------===//
#include "Ranks.h"

#include "../../../lib/Runtime/Comm/RendezvousFolder.h"
#include "Comm/Control/Card.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::rt {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;
using testing::AllOf;
using testing::HasSubstr;

void writeFile(const std::string &path, const std::string &text) { std::ofstream(path) << text; }

/// $TMPDIR for one test.
struct OwnTemporary : TemporaryDirectory {
  OwnTemporary() { ::setenv("TMPDIR", path.c_str(), 1); }
  ~OwnTemporary() { ::unsetenv("TMPDIR"); }
  /// A folder as a launcher leaves it that was killed.
  std::string abandon(const std::string &name, const std::string &host = hostName()) const {
    const std::string folder = path + "/" + name;
    fs::create_directory(folder);
    fs::permissions(folder, fs::perms::owner_all);
    writeFile(folder + "/host", host);
    writeFile(folder + "/job.0", "card");
    return folder;
  }
};

TEST(RendezvousFolders, are_private_and_go) {
  const OwnTemporary temporary;
  {
    const Result<RendezvousFolder> folder = RendezvousFolder::create();
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_EQ(fs::status(folder->path()).permissions(), fs::perms::owner_all);
    writeFile(folder->path() + "/job.0", "card");
  }
  EXPECT_TRUE(fs::is_empty(temporary.path));
}

TEST(RendezvousFolders, of_the_dead_are_removed) {
  const OwnTemporary temporary;
  const std::string dead = temporary.abandon("ds-ranks-AAAAAA"), bare = temporary.path + "/ds-ranks-BBBBBB";
  ASSERT_EQ(::mkdir(bare.c_str(), 0700), 0); // killed before anything was in it
  const Result<RendezvousFolder> folder = RendezvousFolder::create();
  ASSERT_TRUE(folder);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_FALSE(fs::exists(bare));
}

TEST(RendezvousFolders, of_the_living_stay) {
  const OwnTemporary temporary;
  const Result<RendezvousFolder> first = RendezvousFolder::create(), second = RendezvousFolder::create();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(fs::exists(first->path() + "/host"));
  EXPECT_NE(first->path(), second->path());
}

TEST(RendezvousFolders, that_are_none_stay) {
  const OwnTemporary temporary;
  const std::string elsewhere = temporary.abandon("elsewhere"),
                    longer = temporary.abandon("ds-ranks-AAAAAAA");
  const std::string foreign = temporary.abandon("ds-ranks-BBBBBB", "another-host");
  const std::string open = temporary.abandon("ds-ranks-CCCCCC");
  fs::permissions(open, fs::perms::owner_all | fs::perms::others_read);
  const std::string link = temporary.path + "/ds-ranks-DDDDDD", file = temporary.path + "/ds-ranks-EEEEEE";
  fs::create_directory_symlink(elsewhere, link);
  writeFile(file, "");
  const std::string given = temporary.abandon("ds-ranks-FFFFFF");
  const bool isRoot = ::geteuid() == 0 && ::chown(given.c_str(), 65534, 65534) == 0;
  const std::string linked = temporary.abandon("ds-ranks-GGGGGG"); // its host file is somebody's link
  fs::remove(linked + "/host");
  fs::create_symlink(elsewhere + "/host", linked + "/host");
  removeAbandonedFolders(temporary.path);
  for (const std::string &kept : {elsewhere, longer, foreign, open, linked})
    EXPECT_TRUE(fs::exists(kept + "/job.0")) << kept;
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(fs::exists(file));
  EXPECT_EQ(fs::exists(given + "/job.0"), isRoot);
}

/// What lies inside is removed, not what it leads to.
TEST(RendezvousFolders, of_the_dead_lead_nowhere) {
  const OwnTemporary temporary;
  const std::string dead = temporary.abandon("ds-ranks-AAAAAA"), precious = temporary.path + "/precious";
  fs::create_directory(precious);
  writeFile(precious + "/file", "");
  fs::create_directory_symlink(precious, dead + "/link");
  removeAbandonedFolders(temporary.path);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(precious + "/file"));
}

/// Launchers that start at once take no new folder of another for an abandoned one.
TEST(RendezvousFolders, of_those_who_start_at_once_stay) {
  const OwnTemporary temporary;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i) {
        const Result<RendezvousFolder> folder = RendezvousFolder::create();
        ASSERT_TRUE(folder) << folder.error().message;
        std::this_thread::yield();
        EXPECT_TRUE(fs::exists(folder->path() + "/host"));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(fs::is_empty(temporary.path));
}

TEST(RendezvousFolders, that_cannot_be_made_are_named) {
  TemporaryDirectory directory;
  writeFile(directory.path + "/file", "");
  for (const std::string &place : {directory.path + "/none", directory.path + "/file"}) {
    ::setenv("TMPDIR", place.c_str(), 1);
    const Result<RendezvousFolder> folder = RendezvousFolder::create();
    ::unsetenv("TMPDIR");
    ASSERT_FALSE(folder);
    EXPECT_EQ(folder.error().code, ExitCode::Io);
    EXPECT_THAT(folder.error().message, AllOf(HasSubstr(place + "/ds-ranks-"), HasSubstr("(TMPDIR)")));
    EXPECT_THAT(folder.error().hint, HasSubstr("set TMPDIR"));
  }
}

} // namespace
} // namespace ds::rt
