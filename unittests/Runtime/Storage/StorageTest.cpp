//===- StorageTest.cpp - Storage over a queue in memory --------------------------------===//

#include "FaultyQueue.h"

#include "Files/AlignedBlock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::HasSubstr;

namespace {

constexpr uint64_t kUnit = kStorageUnit, kMiB = uint64_t(1) << 20;

/// 4 MiB of storage with digests, in which 'a' and 'b' lie.
struct StorageTest : testing::Test {
  void SetUp() override {
    auto own = std::make_unique<FaultyQueue>(4, 4 * kMiB);
    queue = own.get();
    options.directory = "/nvme";
    options.bytes = 4 * kMiB;
    options.rank = 3;
    options.verify = true;
    options.regions = {{0, 2 * kMiB, "a"}, {2 * kMiB, 2 * kMiB, "b"}};
    options.warn = [this](const std::string &line) { warnings.push_back(line); };
    storage = std::move(*Storage::over(std::move(own), options));
    for (uint64_t i = 0; i < 4 * kMiB; ++i)
      memory.get()[i] = static_cast<std::byte>(i * 7 + i / kUnit);
  }

  StorageOptions options;
  FaultyQueue *queue = nullptr;
  std::unique_ptr<Storage> storage;
  AlignedBlock memory = allocateBlock(4 * kMiB), other = allocateBlock(4 * kMiB);
  std::vector<std::string> warnings;
};

TEST_F(StorageTest, readsWhatWasWritten) {
  ASSERT_TRUE(storage->write(0, memory.get(), 4 * kMiB));
  ASSERT_TRUE(storage->read(kMiB, other.get(), 2 * kMiB));
  EXPECT_EQ(std::memcmp(other.get(), memory.get() + kMiB, 2 * kMiB), 0);
  EXPECT_EQ(storage->totals().bytesWritten, 4 * kMiB);
  EXPECT_EQ(storage->totals().bytesRead, 2 * kMiB);
}

TEST_F(StorageTest, aLostBlockIsNamed) {
  ASSERT_TRUE(storage->write(0, memory.get(), 4 * kMiB));
  queue->contents[3 * kMiB + 5] ^= std::byte{1};
  EXPECT_TRUE(storage->read(0, other.get(), 3 * kMiB));
  const Status status = storage->read(0, other.get(), 4 * kMiB);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_THAT(status.error().message,
              HasSubstr("1048576 bytes at offset 3145728 of rank 3, in 'b' do not read"));
}

TEST_F(StorageTest, aBlockThatWasNotWrittenIsNamed) {
  ASSERT_TRUE(storage->write(0, memory.get(), kMiB));
  queue->fault = [](const StorageRequest &request) -> std::optional<int64_t> {
    return request.writes && request.offset == 0 ? std::optional<int64_t>() : std::nullopt;
  };
  std::vector<std::byte> old(queue->contents.begin(), queue->contents.begin() + kMiB);
  memory.get()[17] ^= std::byte{1};
  ASSERT_TRUE(storage->write(0, memory.get(), kMiB));
  std::copy(old.begin(), old.end(), queue->contents.begin()); // the disk has said yes, and forgotten
  const Status status = storage->read(0, other.get(), kMiB);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("in 'a' do not read as they were written"));
}

TEST_F(StorageTest, withoutDigestsNothingIsCompared) {
  auto own = std::make_unique<FaultyQueue>(4, 4 * kMiB);
  queue = own.get();
  options.verify = false;
  storage = std::move(*Storage::over(std::move(own), options));
  ASSERT_TRUE(storage->write(0, memory.get(), kMiB));
  queue->contents[5] ^= std::byte{1};
  EXPECT_TRUE(storage->read(0, other.get(), kMiB));
}

TEST_F(StorageTest, digestsFollowWhatIsWrittenOverThem) {
  ASSERT_TRUE(storage->write(0, memory.get(), 4 * kMiB));
  // Across the end of the first MiB: what was known of both is gone, and of the new bytes all is known.
  ASSERT_TRUE(storage->write(kMiB - kUnit, memory.get(), 2 * kUnit));
  EXPECT_TRUE(storage->read(0, other.get(), 4 * kMiB));
  queue->contents[kMiB + 1] ^= std::byte{1};
  EXPECT_FALSE(storage->read(kMiB - kUnit, other.get(), 2 * kUnit));
}

TEST_F(StorageTest, anyBytesCanBeChanged) {
  ASSERT_TRUE(storage->write(0, memory.get(), 4 * kMiB));
  std::vector<std::byte> expected = queue->contents;
  // Within a unit, up to the end of one, over several, and whole ones.
  const std::pair<uint64_t, uint64_t> cases[] = {
      {100, 7}, {kUnit + 1, kUnit - 1}, {2 * kUnit, 5}, {4 * kUnit - 3, 3 * kUnit}, {9 * kUnit, kUnit}};
  for (const auto &[offset, bytes] : cases) {
    ASSERT_TRUE(storage->change(offset, bytes, [&](std::byte *copy) {
      std::memset(copy, 0xab, bytes);
      return Status();
    }));
    std::fill_n(expected.begin() + static_cast<ptrdiff_t>(offset), bytes, std::byte{0xab});
    ASSERT_EQ(queue->contents, expected) << offset;
    ASSERT_TRUE(storage->inspect(offset - 1, bytes + 2, [&](const std::byte *copy) {
      EXPECT_EQ(std::memcmp(copy, expected.data() + offset - 1, bytes + 2), 0) << offset;
      return Status();
    }));
  }
}

TEST_F(StorageTest, whatTouchesTheSameBytesKeepsItsOrder) {
  // Requests end in any order, and all of these are under way at once.
  queue->reorders = true;
  std::vector<std::byte> first(memory.get(), memory.get() + kMiB), second(first);
  for (std::byte &each : second)
    each ^= std::byte{0x55};
  for (int round = 0; round < 50; ++round) {
    std::vector<uint64_t> ids;
    auto begin = [&](bool writes, uint64_t offset, std::byte *data) {
      Result<uint64_t> id = storage->begin(writes, offset, data, kMiB);
      ASSERT_TRUE(id);
      ids.push_back(*id);
    };
    std::copy(first.begin(), first.end(), memory.get());
    std::copy(second.begin(), second.end(), other.get());
    begin(true, 0, memory.get());       // first
    begin(true, kMiB, other.get());     // second
    begin(false, 0, other.get());       // first over what was written: behind both
    begin(true, 2 * kMiB, other.get()); // first, as it was read
    begin(false, kMiB, memory.get());   // second over what was written first
    begin(true, 0, memory.get());       // second: what was read of there was compared before
    for (uint64_t id : ids)
      ASSERT_TRUE(storage->finish(id)) << round;
    const std::byte *arena = queue->contents.data();
    EXPECT_TRUE(std::equal(second.begin(), second.end(), arena)) << round;
    EXPECT_TRUE(std::equal(second.begin(), second.end(), arena + kMiB)) << round;
    EXPECT_TRUE(std::equal(first.begin(), first.end(), arena + 2 * kMiB)) << round;
  }
}

TEST_F(StorageTest, anErrorSaysWhereAndIsFinal) {
  queue->fault = [](const StorageRequest &request) -> std::optional<int64_t> {
    return request.offset == 2 * kMiB ? std::optional<int64_t>(-EIO) : std::nullopt;
  };
  const Status status = storage->write(0, memory.get(), 4 * kMiB);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_THAT(status.error().message,
              HasSubstr("storage '/nvme': cannot write the block at offset 2097152 of rank 3, in 'b': "));
  queue->fault = nullptr;
  EXPECT_FALSE(storage->read(0, other.get(), kMiB)); // who goes on would compute with old bytes
}

TEST_F(StorageTest, errorsNameTheDirectoryOfTheirBytes) {
  auto own = std::make_unique<FaultyQueue>(4, 4 * kMiB);
  queue = own.get();
  queue->second.resize(4 * kMiB);
  options.parameterDirectory = "/other";
  options.map = StorageMap({{2 * kMiB, 4 * kMiB}}); // 'b'
  storage = std::move(*Storage::over(std::move(own), options));
  EXPECT_EQ(storage->describe(), "'/nvme' and '/other', a queue in memory, blocks of 1048576 bytes, digests");
  queue->memoryError = ENOMEM;
  const std::span<std::byte> staging(other.get(), kMiB);
  storage->useMemory(std::span(&staging, 1));
  EXPECT_THAT(warnings.at(0), HasSubstr("storage '/nvme' and '/other': 1048576 bytes"));
  ASSERT_TRUE(storage->write(0, memory.get(), 4 * kMiB));
  queue->contents[0] ^= std::byte{1};
  queue->second[3 * kMiB] ^= std::byte{1};
  EXPECT_THAT(storage->read(0, other.get(), 2 * kMiB).error().message,
              HasSubstr("storage '/nvme': 1048576 bytes at offset 0 of rank 3, in 'a' do not read"));
  EXPECT_THAT(storage->read(2 * kMiB, other.get(), 2 * kMiB).error().message,
              HasSubstr("storage '/other': 1048576 bytes at offset 3145728 of rank 3, in 'b' do not read"));
  EXPECT_THAT(storage->read(kUnit, other.get() + 1, kUnit).error().message, HasSubstr("storage '/nvme': "));
  EXPECT_THAT(storage->read(2 * kMiB, other.get() + 1, kUnit).error().message,
              HasSubstr("storage '/other': "));
  queue->fault = [](const StorageRequest &request) -> std::optional<int64_t> {
    return request.file == 1 ? std::optional<int64_t>(-EIO) : std::nullopt;
  };
  ASSERT_TRUE(storage->write(0, memory.get(), 2 * kMiB));
  EXPECT_THAT(storage->write(0, memory.get(), 4 * kMiB).error().message,
              HasSubstr("storage '/other': cannot write the block at offset 2097152 of rank 3, in 'b': "));
}

TEST_F(StorageTest, whatIsNotAlignedOrOutsideIsRefused) {
  EXPECT_FALSE(storage->read(0, other.get() + 8, kUnit));
  EXPECT_FALSE(storage->read(512, other.get(), kUnit));
  EXPECT_FALSE(storage->read(0, other.get(), kUnit + 512));
  EXPECT_FALSE(storage->read(4 * kMiB, other.get(), kUnit));
  EXPECT_FALSE(storage->read(UINT64_MAX - kUnit + 1, other.get(), kUnit));
  EXPECT_TRUE(storage->read(4 * kMiB - kUnit, other.get(), kUnit));
}

TEST_F(StorageTest, memoryThatCannotBeLockedIsToldOnce) {
  queue->memoryError = ENOMEM;
  const std::span<std::byte> staging(other.get(), kMiB);
  storage->useMemory(std::span(&staging, 1));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("1048576 bytes of staging memory are not registered"));
  EXPECT_TRUE(storage->read(0, other.get(), kMiB));
}

TEST_F(StorageTest, addressesStandForBytes) {
  EXPECT_TRUE(storage->addresses().holds(storage->addresses().base()) &&
              storage->addresses().holds(storage->addresses().base() + 4 * kMiB - 1));
  EXPECT_FALSE(storage->addresses().holds(storage->addresses().base() + 4 * kMiB) ||
               storage->addresses().holds(memory.get()));
  EXPECT_EQ(storage->addresses().offsetOf(storage->addresses().base() + 12345), 12345u);
}

} // namespace
