//===- TwoDirectoriesTest.cpp - An arena whose parameters have a directory of their own ------===//
//
// What needs a disk with direct access is left out where the working directory has none.
//
//===---------------------------------------------------------------------------===//

#include "Files/AlignedBlock.h"
#include "Storage/StorageFile.h"
#include "ds/Runtime/Storage/Storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

/// Bytes that the disk of all directories still has; absent: what it really has.
static std::optional<uint64_t> room;

/// Stands before the C library's.
extern "C" int fallocate(int file, int mode, off_t offset, off_t bytes) {
  if (room) {
    if (static_cast<uint64_t>(bytes) > *room) {
      errno = ENOSPC;
      return -1;
    }
    *room -= static_cast<uint64_t>(bytes);
  }
  return static_cast<int>(::syscall(SYS_fallocate, file, mode, offset, bytes));
}

namespace {

constexpr uint64_t kMiB = uint64_t(1) << 20;

/// 8 MiB of storage, of which parameters have [1, 3) and [6, 7) MiB.
struct TwoDirectoriesTest : testing::Test {
  void SetUp() override {
    char pattern[] = "two-directories-test-XXXXXX";
    root = fs::absolute(::mkdtemp(pattern));
    for (const char *name : {"optimizer", "parameters"})
      fs::create_directory(root / name);
    options.directory = root / "optimizer";
    options.parameterDirectory = root / "parameters";
    options.map = StorageMap({{kMiB, 3 * kMiB}, {6 * kMiB, 7 * kMiB}});
    options.bytes = 8 * kMiB;
    options.verify = true;
    const Result<int> file = makeStorageFile({options.directory, 0, {{0, 4096}}});
    if (!file)
      GTEST_SKIP() << file.error().message;
    ::close(*file);
  }
  void TearDown() override {
    room.reset();
    EXPECT_TRUE(fs::is_empty(root / "optimizer") && fs::is_empty(root / "parameters"));
    fs::remove_all(root);
  }
  Error refused() const {
    const Result<std::unique_ptr<Storage>> storage = Storage::open(options);
    return storage ? Error{ExitCode::Ok, "it was opened", ""} : storage.error();
  }

  fs::path root;
  StorageOptions options;
};

/// A descriptor of its own for the nameless file that this process has open in `directory`.
int reopen(const std::string &directory) {
  for (const fs::directory_entry &entry : fs::directory_iterator("/proc/self/fd"))
    if (std::error_code error;
        fs::read_symlink(entry, error).string().starts_with(directory + "/ds-storage-"))
      return ::open(entry.path().c_str(), O_RDONLY);
  return -1;
}

/// Whether the bytes of `ranges` are those of `memory`, and all space that the file takes is theirs.
void expectOnly(const std::string &directory, const std::vector<StorageRange> &ranges,
                const std::byte *memory) {
  const int file = reopen(directory);
  ASSERT_GE(file, 0) << directory;
  struct stat status {};
  ASSERT_EQ(::fstat(file, &status), 0);
  EXPECT_EQ(status.st_nlink, 0u);
  EXPECT_EQ(static_cast<uint64_t>(status.st_size), ranges.back().end);
  EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, bytesOf(ranges));
  EXPECT_LT(static_cast<uint64_t>(status.st_blocks) * 512, bytesOf(ranges) + kMiB);
  for (const StorageRange &range : ranges) {
    std::vector<std::byte> bytes(range.end - range.begin);
    ASSERT_EQ(::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(range.begin)),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(std::memcmp(bytes.data(), memory + range.begin, bytes.size()), 0) << range.begin;
  }
  ::close(file);
}

TEST_F(TwoDirectoriesTest, bothQueuesWriteEachByteIntoItsFile) {
  const ds::rt::AlignedBlock memory = allocateBlock(8 * kMiB), other = allocateBlock(8 * kMiB);
  for (uint64_t i = 0; i < 8 * kMiB; ++i)
    memory.get()[i] = static_cast<std::byte>(i * 13 + i / 4096 + 1);
  for (const bool threads : {false, true}) {
    options.threads = threads;
    options.settings.blockBytes = 3 * kMiB / 2;
    const Result<std::unique_ptr<Storage>> storage = Storage::open(options);
    ASSERT_TRUE(storage) << storage.error().message;
    EXPECT_THAT((*storage)->describe(), HasSubstr("optimizer' and '"));
    ASSERT_TRUE((*storage)->write(0, memory.get(), 8 * kMiB));
    expectOnly(options.directory, options.map.rangesOf(0, options.bytes), memory.get());
    expectOnly(options.parameterDirectory, options.map.rangesOf(1, options.bytes), memory.get());
    std::memset(other.get(), 0, 8 * kMiB);
    const Status status = (*storage)->read(0, other.get(), 8 * kMiB);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(std::memcmp(memory.get(), other.get(), 8 * kMiB), 0);
  }
}

TEST_F(TwoDirectoriesTest, eachIsRefusedByItsOwnName) {
  options.parameterDirectory += "/none";
  Error error = refused();
  EXPECT_EQ(error.code, ExitCode::Io);
  EXPECT_THAT(error.message, HasSubstr("parameters/none': No such file or directory"));
  EXPECT_EQ(error.hint, "name a directory on a local disk with --nvme-parameters DIR");
  options.directory += "/missing";
  error = refused();
  EXPECT_THAT(error.message, HasSubstr("optimizer/missing': No such file or directory"));
  EXPECT_EQ(error.hint, "name a directory on a local disk with --nvme DIR");
}

TEST_F(TwoDirectoriesTest, oneFileSystemHasRoomForBothOrNone) {
  room = 8 * kMiB; // parameters 3, all else 5
  EXPECT_EQ(refused().message, "it was opened");
  room = 8 * kMiB - 1;
  Error error = refused();
  EXPECT_EQ(error.code, ExitCode::DoesNotFit);
  EXPECT_THAT(error.message, HasSubstr("parameters': the plan keeps 3145728 bytes there on each rank, but "));
  EXPECT_THAT(error.message,
              testing::ContainsRegex(" are free beside the 5242880 of '.*optimizer', which is on "
                                     "the same file system$"));
  EXPECT_THAT(error.hint, HasSubstr("another directory with --nvme-parameters DIR"));
  room = 5 * kMiB - 1;
  error = refused();
  EXPECT_EQ(error.code, ExitCode::DoesNotFit);
  EXPECT_THAT(error.message, HasSubstr("optimizer': the plan keeps 5242880 bytes there on each rank, but "));
  EXPECT_THAT(error.message, Not(HasSubstr("beside")));
}

TEST_F(TwoDirectoriesTest, whatAnotherFileSystemHasIsNotCounted) {
  const int elsewhere = ::memfd_create("neighbour", MFD_CLOEXEC);
  ASSERT_GE(elsewhere, 0);
  room = kMiB;
  const Result<int> file =
      makeStorageFile({options.directory, 0, {{0, 2 * kMiB}}, "--nvme", {elsewhere, "/elsewhere", kMiB}});
  ::close(elsewhere);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ExitCode::DoesNotFit);
  EXPECT_THAT(file.error().message, testing::EndsWith(" are free"));
}

} // namespace
