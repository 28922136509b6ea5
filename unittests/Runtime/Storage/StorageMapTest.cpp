//===- StorageMapTest.cpp - Which file each byte is in, and which block -----------------===//

#include "FaultyQueue.h"

#include "Storage/TransferSet.h"

#include <gtest/gtest.h>

using namespace ds::rt;
using namespace ds::rt::test;

namespace {

constexpr uint64_t kUnit = kStorageUnit;

TEST(StorageMap, withoutRangesAllIsInOneFile) {
  for (const StorageMap &map : {StorageMap(), StorageMap({{3 * kUnit, 3 * kUnit}})}) {
    EXPECT_EQ(map.files(), 1u);
    EXPECT_EQ(map.fileOf(7 * kUnit), 0u);
    EXPECT_EQ(map.endOfRun(7 * kUnit), UINT64_MAX);
    EXPECT_EQ(map.rangesOf(0, 9 * kUnit), (std::vector<StorageRange>{{0, 9 * kUnit}}));
    EXPECT_TRUE(map.rangesOf(1, 9 * kUnit).empty());
  }
}

TEST(StorageMap, rangesAreWholeUnitsInOrderAndJoined) {
  // Units 5, then 2 and 3 in two ranges that touch each other in the middle of one.
  const StorageMap map({{5 * kUnit, 5 * kUnit + 1}, {3 * kUnit + 7, 4 * kUnit}, {2 * kUnit, 3 * kUnit + 7}});
  EXPECT_EQ(map.files(), 2u);
  EXPECT_EQ(map.rangesOf(1, 8 * kUnit),
            (std::vector<StorageRange>{{2 * kUnit, 4 * kUnit}, {5 * kUnit, 6 * kUnit}}));
  EXPECT_EQ(map.rangesOf(0, 8 * kUnit),
            (std::vector<StorageRange>{{0, 2 * kUnit}, {4 * kUnit, 5 * kUnit}, {6 * kUnit, 8 * kUnit}}));
  EXPECT_EQ(bytesOf(map.rangesOf(0, 8 * kUnit)), 5 * kUnit);
  EXPECT_TRUE(StorageMap({{0, 8 * kUnit}}).rangesOf(0, 8 * kUnit).empty());
}

TEST(StorageMap, everyByteIsInOneFile) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> expected(64, 0); // by unit
    std::vector<StorageRange> ranges;
    for (unsigned i = 0; i < random() % 8; ++i) {
      const uint64_t begin = random() % 60, units = random() % 5;
      ranges.push_back({begin * kUnit, (begin + units) * kUnit});
      std::fill_n(expected.begin() + static_cast<ptrdiff_t>(begin), units, 1);
    }
    const StorageMap map(ranges);
    for (uint64_t unit = 0; unit < 64; ++unit) {
      ASSERT_EQ(map.fileOf(unit * kUnit), expected[unit]) << round;
      ASSERT_EQ(map.fileOf(unit * kUnit + kUnit - 1), expected[unit]) << round;
      const uint64_t end = std::min<uint64_t>(64, map.endOfRun(unit * kUnit) / kUnit);
      ASSERT_TRUE(end == 64 || expected[end] != expected[unit]) << round;
      ASSERT_TRUE(std::all_of(expected.begin() + static_cast<ptrdiff_t>(unit),
                              expected.begin() + static_cast<ptrdiff_t>(end),
                              [&](uint32_t file) { return file == expected[unit]; }))
          << round;
    }
  }
}

/// What goes through a queue with its blocks short, in any order and half of it in the second file.
TEST(StorageMap, noBlockIsInTwoFiles) {
  const StorageMap map({{3 * kUnit, 10 * kUnit}, {20 * kUnit, 21 * kUnit}});
  FaultyQueue queue(4, 24 * kUnit);
  queue.second.resize(24 * kUnit);
  queue.takesPart = queue.reorders = true;
  uint64_t blocks = 0;
  queue.fault = [&](const StorageRequest &request) -> std::optional<int64_t> {
    EXPECT_EQ(request.file, map.fileOf(request.offset));
    EXPECT_LE(request.offset + request.bytes, map.endOfRun(request.offset));
    return ++blocks % 3 == 0 && request.bytes > kUnit ? std::optional<int64_t>(kUnit) : std::nullopt;
  };
  StorageSettings settings;
  settings.blockBytes = 4 * kUnit;
  TransferSet set(queue, settings, map);
  std::vector<std::byte> memory(24 * kUnit), other(memory);
  for (size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<std::byte>(1 + i % 255);
  ASSERT_EQ(set.finish(set.begin(true, 0, memory.data(), memory.size())).error, 0);
  for (uint64_t at = 0; at < memory.size(); ++at) {
    const bool isSecond = map.fileOf(at) == 1;
    ASSERT_EQ(queue.second[at], isSecond ? memory[at] : std::byte{0}) << at;
    ASSERT_EQ(queue.contents[at], isSecond ? std::byte{0} : memory[at]) << at;
  }
  ASSERT_EQ(set.finish(set.begin(false, 0, other.data(), other.size())).error, 0);
  EXPECT_EQ(other, memory);
}

} // namespace
