//===- TemporaryFileTest.cpp - A file without a name until it is whole ---------------===//
#include "ds/Support/TemporaryFile.h"

#include "gtest/gtest.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace ds;
namespace fs = std::filesystem;

namespace {

class TemporaryFileTest : public testing::Test {
protected:
  TemporaryFileTest() {
    std::string pattern = testing::TempDir() + "ds-temporary-XXXXXX";
    directory = mkdtemp(pattern.data());
  }
  ~TemporaryFileTest() override { fs::remove_all(directory); }

  std::string path(const std::string &name) const { return directory + "/" + name; }
  std::set<std::string> list() const {
    std::set<std::string> names;
    for (const auto &entry : fs::directory_iterator(directory))
      names.insert(entry.path().filename());
    return names;
  }
  static std::string read(const std::string &path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// The signal that ends a child which opens a temporary file, and then gets `signal`.
  int endChild(int signal, bool allowNameless) const {
    const pid_t child = fork();
    if (child == 0) {
      removeTemporaryFilesOnSignals();
      TemporaryFile file;
      if (file.open(path("a"), allowNameless) != 0 || write(file.fd(), "half", 4) != 4)
        _exit(1);
      raise(signal);
      _exit(2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
  }
  std::string directory;
};

TEST_F(TemporaryFileTest, IsThereOnceItIsKept) {
  for (bool allowNameless : {true, false}) {
    TemporaryFile file;
    ASSERT_EQ(file.open(path("a"), allowNameless), 0);
    ASSERT_EQ(write(file.fd(), "hello", 5), 5);
    EXPECT_FALSE(fs::exists(path("a")));
    ASSERT_EQ(file.keep(path("a")), 0);
    EXPECT_EQ(read(path("a")), "hello");
    EXPECT_EQ(list(), std::set<std::string>{"a"});
    fs::remove(path("a"));
  }
}

TEST_F(TemporaryFileTest, ReplacesWhatWasThere) {
  for (bool allowNameless : {true, false}) {
    std::ofstream(path("a")) << "old";
    TemporaryFile file;
    ASSERT_EQ(file.open(path("a"), allowNameless), 0);
    ASSERT_EQ(write(file.fd(), "new", 3), 3);
    EXPECT_EQ(read(path("a")), "old");
    ASSERT_EQ(file.keep(path("a")), 0);
    file.drop();
    EXPECT_EQ(read(path("a")), "new");
    EXPECT_EQ(list(), std::set<std::string>{"a"});
  }
}

TEST_F(TemporaryFileTest, LeavesNothingWhenItIsDropped) {
  std::vector<TemporaryFile> files(40); // more than the list for signals holds
  for (TemporaryFile &file : files)
    ASSERT_EQ(file.open(path("a"), /*allowNameless=*/false), 0);
  EXPECT_EQ(list().size(), files.size());
  files.clear();
  EXPECT_TRUE(list().empty());
}

TEST_F(TemporaryFileTest, ASignalRemovesWhatHasAName) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    EXPECT_EQ(endChild(signal, /*allowNameless=*/false), signal);
    EXPECT_TRUE(list().empty()) << strsignal(signal);
  }
}

TEST_F(TemporaryFileTest, WhatHasNoNameNeedsNoHandler) {
  TemporaryFile probe;
  ASSERT_EQ(probe.open(path("a")), 0);
  if (!probe.isNameless())
    GTEST_SKIP() << "this file system has no files without a name";
  EXPECT_TRUE(list().empty());
  EXPECT_EQ(endChild(SIGKILL, /*allowNameless=*/true), SIGKILL);
  EXPECT_TRUE(list().empty());
}

TEST_F(TemporaryFileTest, IgnoredSignalsStayIgnored) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGHUP, SIG_IGN); // as nohup does
    removeTemporaryFilesOnSignals();
    raise(SIGHUP);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(TemporaryFileTest, ErrorsAreErrnos) {
  TemporaryFile file;
  EXPECT_EQ(file.open(path("none/a")), ENOENT);
  EXPECT_EQ(file.fd(), -1);
  ASSERT_EQ(file.open(path("a")), 0);
  fs::create_directory(path("a"));
  EXPECT_NE(file.keep(path("a")), 0);
  file.drop();
  EXPECT_EQ(list(), std::set<std::string>{"a"});
}

} // namespace
