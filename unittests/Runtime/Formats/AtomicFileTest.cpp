//===- AtomicFileTest.cpp - Complete or absent ---------------------------------===//

#include "ds/Runtime/Files/AtomicFile.h"
#include "TestFiles.h"
#include "ds/Runtime/Files/MappedFile.h"

#include "gmock/gmock.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;

namespace {

class AtomicFileTest : public FormatsTest {
protected:
  /// A node of the memory device `minor` (3: null, 7: full) in the test's own directory; "" where none may be
  /// made. Never /dev's own: a test that fails as root would replace it.
  std::string makeDevice(const std::string &name, unsigned minor) const {
    bool isUsable = mknod(path(name).c_str(), S_IFCHR | 0600, makedev(1, minor)) == 0 &&
                    access(path(name).c_str(), W_OK) == 0;
    int fd = isUsable ? open(path(name).c_str(), O_WRONLY) : -1;
    if (fd < 0) // a container, or a mount without devices
      return "";
    close(fd);
    return path(name);
  }
};

/// Limits the size of files that this process may write, as a full disk that needs no mount. The signal that
/// comes with it would kill this process.
class FileSizeLimit {
public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_DFL);
    getrlimit(RLIMIT_FSIZE, &previous);
    rlimit limit = {bytes, previous.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &previous); }

private:
  rlimit previous;
};

TEST_F(AtomicFileTest, CommitMakesTheFile) {
  ASSERT_TRUE(writeFileAtomically(path("a"), "hello"));
  EXPECT_EQ(read(path("a")), "hello");
  EXPECT_EQ(list(), std::set<std::string>{"a"});
}

TEST_F(AtomicFileTest, NothingIsVisibleBeforeCommit) {
  write("a", "old");
  auto file = AtomicFile::create(path("a"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("new and longer"));
  EXPECT_EQ(read(path("a")), "old");
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read(path("a")), "new and longer");
}

TEST_F(AtomicFileTest, KilledProcessLeavesNothing) {
  int probe = open(path("").c_str(), O_TMPFILE | O_RDWR, 0600);
  if (probe < 0)
    GTEST_SKIP() << "every file has a name here";
  close(probe);
  write("a", "old");
  pid_t child = fork();
  if (child == 0) {
    auto file = AtomicFile::create(path("a"));
    if (file && file->write("new"))
      kill(getpid(), SIGKILL);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(list(), std::set<std::string>{"a"});
  EXPECT_EQ(read(path("a")), "old");
}

TEST_F(AtomicFileTest, DroppedFileLeavesNothing) {
  write("a", "old");
  {
    auto file = AtomicFile::create(path("a"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("new"));
    EXPECT_LE(list().size(), 2u); // it has a name only where the file system knows none without
  }
  EXPECT_EQ(list(), std::set<std::string>{"a"});
  EXPECT_EQ(read(path("a")), "old");
}

TEST_F(AtomicFileTest, MissingDirectoryIsIo) {
  auto file = AtomicFile::create(path("missing/a"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ExitCode::Io);
  EXPECT_THAT(file.error().message, HasSubstr("missing/a': No such file or directory"));
}

TEST_F(AtomicFileTest, DirectoryAsTargetIsIo) {
  auto file = AtomicFile::create(directory);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ExitCode::Io);
  EXPECT_THAT(file.error().message, HasSubstr("Is a directory"));
  EXPECT_FALSE(AtomicFile::create(directory + "/"));
  EXPECT_FALSE(AtomicFile::create(""));
}

TEST_F(AtomicFileTest, UnwritableDirectoryIsIo) {
  // /proc refuses new files to everyone, root included.
  auto file = AtomicFile::create("/proc/self/ds-formats-test");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ExitCode::Io);
  if (geteuid() == 0)
    return; // permissions do not bind root
  chmod(directory.c_str(), 0555);
  auto denied = AtomicFile::create(path("a"));
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, ExitCode::Io);
  EXPECT_THAT(denied.error().message, HasSubstr("Permission denied"));
}

TEST_F(AtomicFileTest, FailedWriteKeepsTheOldFile) {
  write("a", "old");
  Status status;
  {
    FileSizeLimit limit(4096);
    status = writeFileAtomically(path("a"), std::string(10000, 'x'));
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_THAT(status.error().message, HasSubstr("File too large"));
  EXPECT_THAT(status.error().hint, HasSubstr("bytes: raise the limit with `ulimit -f`"));
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
  EXPECT_EQ(read(path("a")), "old");
  EXPECT_EQ(list(), std::set<std::string>{"a"});
}

TEST_F(AtomicFileTest, FullDeviceIsIo) {
  std::string full = makeDevice("full", 7);
  if (full.empty())
    GTEST_SKIP() << "no device can be made here";
  Status status = writeFileAtomically(full, "hello");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_THAT(status.error().message, HasSubstr("No space left on device"));
}

TEST_F(AtomicFileTest, ReserveRefusesBeforeTheFirstByte) {
  auto file = AtomicFile::create(path("a"));
  ASSERT_TRUE(file);
  FileSizeLimit limit(4096);
  Status status = file->reserve(10000);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_THAT(status.error().message, HasSubstr("10000 bytes"));
}

TEST_F(AtomicFileTest, ReservationBeyondWhatWasWrittenIsCutOff) {
  auto file = AtomicFile::create(path("a"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->reserve(100));
  ASSERT_TRUE(file->write("hello"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read(path("a")), "hello");
}

TEST_F(AtomicFileTest, ContentsCanBeVerifiedBeforeCommit) {
  write("a", "old");
  auto file = AtomicFile::create(path("a"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->reserve(100));
  ASSERT_TRUE(file->write("hello"));
  auto mapped = file->map();
  ASSERT_TRUE(mapped) << mapped.error().message;
  ASSERT_EQ(mapped->bytes().size(), 5u);
  EXPECT_EQ(memcmp(mapped->bytes().data(), "hello", 5), 0);
  EXPECT_EQ(mapped->path(), path("a"));
  EXPECT_EQ(read(path("a")), "old");
  ASSERT_TRUE(file->write(" again"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read(path("a")), "hello again");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_FALSE(AtomicFile::create(path("pipe"))->map());
  close(reader);
}

TEST_F(AtomicFileTest, PermissionsOfTheReplacedFileAreKept) {
  write("a", "old");
  chmod(path("a").c_str(), 0640);
  ASSERT_TRUE(writeFileAtomically(path("a"), "new"));
  struct stat info;
  ASSERT_EQ(stat(path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(AtomicFileTest, LinkIsFollowed) {
  write("real", "old");
  std::filesystem::create_symlink("real", path("link"));
  ASSERT_TRUE(writeFileAtomically(path("link"), "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(read(path("real")), "new");
  std::filesystem::create_symlink("later", path("dangling"));
  ASSERT_TRUE(writeFileAtomically(path("dangling"), "first"));
  EXPECT_EQ(read(path("later")), "first");
}

TEST_F(AtomicFileTest, DeviceIsNotReplaced) {
  std::string null = makeDevice("null", 3);
  if (null.empty())
    GTEST_SKIP() << "no device can be made here";
  ASSERT_TRUE(writeFileAtomically(null, "hello"));
  struct stat info;
  ASSERT_EQ(stat(null.c_str(), &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

/// What is printed before and after stays, and comes in order.
TEST_F(AtomicFileTest, StandardOutputIsNotReplaced) {
  const int before = dup(STDOUT_FILENO), printed = open(path("printed").c_str(), O_CREAT | O_WRONLY, 0600);
  dup2(printed, STDOUT_FILENO);
  bool good = ::write(STDOUT_FILENO, "one ", 4) == 4;
  good &= bool(writeFileAtomically("/dev/stdout", "two "));
  good &= ::write(STDOUT_FILENO, "three", 5) == 5;
  dup2(before, STDOUT_FILENO);
  close(before);
  close(printed);
  EXPECT_TRUE(good);
  EXPECT_EQ(read(path("printed")), "one two three");
}

TEST_F(AtomicFileTest, PipeIsWrittenDirectly) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = read(path("pipe")); });
  EXPECT_TRUE(writeFileAtomically(path("pipe"), "hello"));
  reader.join();
  EXPECT_EQ(received, "hello");
  EXPECT_EQ(list(), std::set<std::string>{"pipe"});
}

TEST_F(AtomicFileTest, ClosedPipeIsAnErrorNotASignal) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  auto file = AtomicFile::create(path("pipe"));
  ASSERT_TRUE(file);
  close(reader);
  Status status = file->write("hello"); // would be killed by SIGPIPE
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

TEST_F(AtomicFileTest, LongNameFits) {
  std::string name(255, 'n');
  ASSERT_TRUE(writeFileAtomically(path(name), "x"));
  EXPECT_EQ(read(path(name)), "x");
}

TEST_F(AtomicFileTest, MappingSurvivesReplacement) {
  auto mapped = MappedFile::open(write("a", "old"));
  ASSERT_TRUE(mapped);
  ASSERT_TRUE(writeFileAtomically(path("a"), "new"));
  EXPECT_EQ(memcmp(mapped->bytes().data(), "old", 3), 0);
  EXPECT_TRUE(mapped->checkUnchanged());
}

TEST_F(AtomicFileTest, MappedFileNoticesATruncation) {
  auto mapped = MappedFile::open(write("a", "old contents"));
  ASSERT_TRUE(mapped);
  ASSERT_TRUE(mapped->checkUnchanged());
  ASSERT_EQ(truncate(path("a").c_str(), 3), 0);
  Status status = mapped->checkUnchanged();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_THAT(status.error().message, HasSubstr("12 bytes before, 3 now"));
}

TEST_F(AtomicFileTest, OnlyRegularFilesAreMapped) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string &name : {path("pipe"), directory, std::string("/dev/zero")}) {
    auto mapped = MappedFile::open(name);
    ASSERT_FALSE(mapped) << name;
    EXPECT_EQ(mapped.error().code, ExitCode::Io);
    EXPECT_THAT(mapped.error().message, HasSubstr("expects a regular file"));
  }
  auto missing = MappedFile::open(path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ExitCode::Io);
  auto empty = MappedFile::open(write("empty", ""));
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
}
} // namespace
