//===- StorageFileTest.cpp - Files of storage, and the directories that have none ------===//
//
// What needs a disk with direct access is left out where the working directory has none.
//
//===---------------------------------------------------------------------------===//

#include "Storage/StorageFile.h"
#include "Files/AlignedBlock.h"
#include "ds/Runtime/Storage/Storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;
namespace fs = std::filesystem;

/// Whether files are as on a file system without direct access.
static bool isPlain = false;

/// Stands before the C library's.
extern "C" int fcntl(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const auto argument = va_arg(arguments, unsigned long);
  va_end(arguments);
  if (!isPlain || command != F_SETFL || !(argument & O_DIRECT))
    return static_cast<int>(::syscall(SYS_fcntl, file, command, argument));
  errno = EINVAL;
  return -1;
}

namespace {

constexpr uint64_t kMiB = uint64_t(1) << 20;

struct StorageFileTest : testing::Test {
  void SetUp() override {
    char pattern[] = "storage-test-XXXXXX";
    directory = ::mkdtemp(pattern);
    options.directory = directory;
    options.bytes = 16 * kMiB;
    options.verify = true;
  }
  void TearDown() override { fs::remove_all(directory); }

  bool hasDirectAccess() const {
    const Result<int> file = makeStorageFile({directory, 0, {{0, 4096}}});
    if (file)
      ::close(*file);
    return static_cast<bool>(file);
  }
  Error refused() const {
    const Result<std::unique_ptr<Storage>> storage = Storage::open(options);
    return storage ? Error{ExitCode::Ok, "it was opened", ""} : storage.error();
  }

  std::string directory;
  StorageOptions options;
};

TEST_F(StorageFileTest, bothQueuesKeepWhatTheyAreGiven) {
  if (!hasDirectAccess())
    GTEST_SKIP() << "no direct access here";
  const ds::rt::AlignedBlock memory = allocateBlock(16 * kMiB), other = allocateBlock(16 * kMiB);
  for (uint64_t i = 0; i < 16 * kMiB; ++i)
    memory.get()[i] = static_cast<std::byte>(i * 13 + i / 4096);
  for (const bool threads : {false, true}) {
    options.threads = threads;
    const Result<std::unique_ptr<Storage>> storage = Storage::open(options);
    ASSERT_TRUE(storage) << storage.error().message;
    EXPECT_THAT((*storage)->describe(), HasSubstr(threads ? "8 threads" : "of "));
    const std::span<std::byte> staging(other.get(), 8 * kMiB); // half of what is read is registered
    (*storage)->useMemory(std::span(&staging, 1));
    ASSERT_TRUE((*storage)->write(0, memory.get(), 16 * kMiB));
    std::memset(other.get(), 0, 16 * kMiB);
    const Status status = (*storage)->read(0, other.get(), 16 * kMiB);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(std::memcmp(memory.get(), other.get(), 16 * kMiB), 0);
  }
}

TEST_F(StorageFileTest, ioUringCanBeTurnedOff) {
  ::setenv("DS_NO_IO_URING", "1", 1);
  const int file = 0;
  EXPECT_EQ(openUring({&file, 1}, 8), nullptr);
  ::unsetenv("DS_NO_IO_URING");
}

TEST_F(StorageFileTest, hasNoNameAndAllItsSpace) {
  const Result<int> file = makeStorageFile({directory, 2, {{0, 16 * kMiB}}});
  if (!file)
    GTEST_SKIP() << file.error().message;
  EXPECT_TRUE(fs::is_empty(directory));
  struct stat status {};
  ASSERT_EQ(::fstat(*file, &status), 0);
  EXPECT_EQ(status.st_nlink, 0u);
  EXPECT_EQ(static_cast<uint64_t>(status.st_size), 16 * kMiB);
  EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, 16 * kMiB);
  EXPECT_NE(::fcntl(*file, F_GETFL) & O_DIRECT, 0);
  ::close(*file);
}

TEST_F(StorageFileTest, onlyWhatTheDeadHaveLeftGoes) {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(0);
  ::waitpid(child, nullptr, 0);
  const std::string dead = directory + "/ds-storage-" + std::to_string(child) + "-rank0",
                    living = directory + "/ds-storage-" + std::to_string(::getppid()) + "-rank0",
                    foreign = directory + "/ds-storage-notes", folder = directory + "/ds-storage-x";
  for (const std::string &path : {dead, living, foreign})
    std::ofstream(path) << "bytes";
  const Result<int> file = makeStorageFile({directory, 0, {{0, 4096}}});
  if (file)
    ::close(*file);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(living));
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(StorageFileTest, aFileSystemWithoutDirectAccessIsRefused) {
  isPlain = true;
  const Error error = refused();
  isPlain = false;
  EXPECT_EQ(error.code, ExitCode::Io);
  EXPECT_THAT(error.message, HasSubstr("its file system has no direct access (O_DIRECT)"));
  EXPECT_TRUE(fs::is_empty(directory));
}

TEST_F(StorageFileTest, aMissingDirectoryIsRefused) {
  options.directory += "/none";
  EXPECT_EQ(refused().code, ExitCode::Io);
  EXPECT_THAT(refused().message, HasSubstr("No such file or directory"));
}

TEST_F(StorageFileTest, aFileIsNoDirectory) {
  options.directory += "/file";
  std::ofstream(options.directory) << "bytes";
  EXPECT_THAT(refused().message, HasSubstr("is no directory"));
}

TEST_F(StorageFileTest, aDirectoryThatCannotBeWrittenIsRefused) {
  options.directory = "/proc/self";
  EXPECT_EQ(refused().code, ExitCode::Io);
  EXPECT_THAT(refused().message, HasSubstr("cannot be written"));
}

TEST_F(StorageFileTest, memoryIsNoStorage) {
  if (::access("/dev/shm", W_OK) != 0)
    GTEST_SKIP() << "no /dev/shm";
  options.directory = "/dev/shm";
  EXPECT_EQ(refused().code, ExitCode::Io);
  EXPECT_THAT(refused().message, HasSubstr("is memory (tmpfs)"));
}

TEST_F(StorageFileTest, whatDoesNotFitIsRefused) {
  if (!hasDirectAccess())
    GTEST_SKIP() << "no direct access here";
  options.bytes = fs::space(directory).capacity + kMiB;
  const Error error = refused();
  EXPECT_EQ(error.code, ExitCode::DoesNotFit);
  EXPECT_THAT(error.message, HasSubstr("the plan keeps " + std::to_string(options.bytes) + " bytes there"));
  EXPECT_TRUE(fs::is_empty(directory));
}

TEST_F(StorageFileTest, aLimitOfFilesIsRefused) {
  if (!hasDirectAccess())
    GTEST_SKIP() << "no direct access here";
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, small{8 * kMiB, RLIM_INFINITY};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  small.rlim_max = before.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Error error = refused();
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(error.code, ExitCode::DoesNotFit);
  EXPECT_THAT(error.message, HasSubstr("no such file may be made: File too large"));
}

} // namespace
