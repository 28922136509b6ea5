//===- TransferTest.cpp - Transfers in blocks, and each way in which they fail ---------===//

#include "FaultyQueue.h"

#include "Storage/TransferSet.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace ds::rt;
using namespace ds::rt::test;

namespace {

constexpr uint64_t kUnit = kStorageUnit;

std::vector<std::byte> numbers(uint64_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> data(bytes);
  for (std::byte &each : data)
    each = static_cast<std::byte>(random());
  return data;
}

StorageSettings blocksOf(uint64_t units) {
  StorageSettings settings;
  settings.blockBytes = units * kUnit;
  return settings;
}

/// A file of 64 units and memory for it.
struct TransferTest : testing::Test {
  FaultyQueue queue{4, 64 * kUnit};
  std::vector<std::byte> memory = numbers(64 * kUnit, 1);
  StorageSettings settings = blocksOf(2);

  TransferOutcome write(uint64_t units = 64) {
    return transferBlocks(queue, settings, true, 0, memory.data(), units * kUnit);
  }
};

TEST_F(TransferTest, blocksFillTheQueueAndArrive) {
  EXPECT_EQ(write().error, 0);
  EXPECT_EQ(queue.contents, memory);
  EXPECT_EQ(queue.seen.most, 4u);
  EXPECT_EQ(std::accumulate(queue.seen.sizes.begin(), queue.seen.sizes.end(), size_t(0)),
            32u); // 64 units / 2
}

TEST_F(TransferTest, aPartIsReadWhereItLies) {
  queue.contents = numbers(64 * kUnit, 2);
  std::vector<std::byte> to(5 * kUnit); // blocks of 2, 2 and 1
  EXPECT_EQ(transferBlocks(queue, settings, false, 7 * kUnit, to.data(), to.size()).error, 0);
  EXPECT_TRUE(std::equal(to.begin(), to.end(), queue.contents.begin() + 7 * kUnit));
  EXPECT_EQ(std::accumulate(queue.seen.sizes.begin(), queue.seen.sizes.end(), size_t(0)), 3u);
}

TEST_F(TransferTest, singleSubmitStartsOneByOne) {
  settings.singleSubmit = true;
  EXPECT_EQ(write().error, 0);
  EXPECT_EQ(queue.seen.sizes, std::vector<size_t>(32, 1));
  EXPECT_EQ(queue.contents, memory);
}

TEST_F(TransferTest, withoutOverlapAllAreWaitedForFirst) {
  settings.overlapEvents = false;
  queue.reorders = true; // told of one by one
  EXPECT_EQ(write().error, 0);
  EXPECT_EQ(queue.seen.sizes, std::vector<size_t>(8, 4)); // 32 blocks, 4 at a time
  EXPECT_EQ(queue.contents, memory);
}

TEST_F(TransferTest, blocksAreWholeUnits) {
  settings.blockBytes = kUnit + 1;
  EXPECT_EQ(write().error, 0);
  EXPECT_EQ(std::accumulate(queue.seen.sizes.begin(), queue.seen.sizes.end(), size_t(0)), 32u);
}

TEST_F(TransferTest, whatIsShortGoesOnAtAUnit) {
  std::vector<std::pair<uint64_t, uint32_t>> asked;
  queue.fault = [&](const StorageRequest &request) -> std::optional<int64_t> {
    asked.push_back({request.offset, request.bytes});
    return asked.size() == 1 ? std::optional<int64_t>(kUnit + 512) : std::nullopt;
  };
  EXPECT_EQ(write(2).error, 0);
  const std::vector<std::pair<uint64_t, uint32_t>> expected = {{0, 2 * kUnit}, {kUnit, kUnit}};
  EXPECT_EQ(asked, expected);
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 2 * kUnit, queue.contents.begin()));
}

TEST_F(TransferTest, interruptionsAreAskedAgain) {
  for (const int error : {EINTR, EAGAIN, ECANCELED, EBUSY, ENOMEM}) {
    int left = 100;
    queue.fault = [&](const StorageRequest &) -> std::optional<int64_t> {
      return left-- > 0 ? std::optional<int64_t>(-error) : std::nullopt;
    };
    EXPECT_EQ(write().error, 0) << std::strerror(error);
    EXPECT_EQ(queue.contents, memory);
    queue.contents.assign(queue.contents.size(), std::byte{0});
  }
}

TEST_F(TransferTest, nothingIsAskedForEver) {
  queue.fault = [](const StorageRequest &) -> std::optional<int64_t> { return -EAGAIN; };
  EXPECT_EQ(write().error, EAGAIN);
  queue.fault = [](const StorageRequest &) -> std::optional<int64_t> { return 0; };
  EXPECT_EQ(write().error, EIO);
  queue.fault = nullptr;
  queue.submitError = [] { return EAGAIN; };
  EXPECT_EQ(write().error, EAGAIN);
  queue.submitError = nullptr;
  queue.waitError = [] { return EINTR; };
  EXPECT_EQ(write().error, EINTR);
}

TEST_F(TransferTest, anIoErrorIsTriedOnceMore) {
  int left = 1;
  queue.fault = [&](const StorageRequest &request) -> std::optional<int64_t> {
    return request.offset == 6 * kUnit && left-- > 0 ? std::optional<int64_t>(-EIO) : std::nullopt;
  };
  EXPECT_EQ(write().error, 0);
  EXPECT_EQ(queue.contents, memory);
  left = 2;
  const TransferOutcome outcome = write();
  EXPECT_EQ(outcome.error, EIO);
  EXPECT_EQ(outcome.offset, 6 * kUnit);
  EXPECT_TRUE(queue.underWay.empty()); // memory is the caller's again
}

TEST_F(TransferTest, otherErrorsAreFinal) {
  int asked = 0;
  queue.fault = [&](const StorageRequest &request) -> std::optional<int64_t> {
    if (request.offset != 0)
      return std::nullopt;
    ++asked;
    return -ENXIO;
  };
  EXPECT_EQ(write().error, ENXIO);
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(queue.underWay.empty());
}

TEST_F(TransferTest, aFileThatEndsIsAnError) {
  queue.contents.resize(10 * kUnit);
  const TransferOutcome outcome = transferBlocks(queue, settings, false, 0, memory.data(), 64 * kUnit);
  EXPECT_EQ(outcome.error, EIO);
  EXPECT_GE(outcome.offset, 10 * kUnit);
}

TEST_F(TransferTest, moreThanWasAskedForIsAnError) {
  queue.fault = [](const StorageRequest &request) -> std::optional<int64_t> {
    return request.offset == 0 ? std::optional<int64_t>(3 * kUnit) : std::nullopt;
  };
  EXPECT_EQ(write(2).error, EIO);
}

TEST_F(TransferTest, aQueueThatTakesNothingFails) {
  queue.submitError = [] { return EBADF; };
  EXPECT_EQ(write().error, EBADF);
  queue.submitError = nullptr;
  queue.waitError = [] { return EBADF; };
  EXPECT_EQ(write().error, EBADF);
}

TEST_F(TransferTest, theNextBeginsBeforeTheLastHasEnded) {
  queue.reorders = true;
  TransferSet set(queue, settings);
  const uint64_t first = set.begin(true, 0, memory.data(), 10 * kUnit);
  const uint64_t second = set.begin(true, 10 * kUnit, memory.data() + 10 * kUnit, 54 * kUnit);
  EXPECT_FALSE(set.isDone(first));
  int left = 32; // blocks of 2 units that have not been started
  while (!set.isDone(first)) {
    set.advance();
    left =
        32 - static_cast<int>(std::accumulate(queue.seen.sizes.begin(), queue.seen.sizes.end(), size_t(0)));
    EXPECT_TRUE(left == 0 || queue.underWay.size() == 4); // never idle
  }
  EXPECT_EQ(set.finish(second).error, 0);
  EXPECT_EQ(set.finish(first).error, 0);
  EXPECT_EQ(queue.contents, memory);
}

TEST_F(TransferTest, whatWasDoneBeforeAFailureIsDone) {
  queue.fault = [](const StorageRequest &request) -> std::optional<int64_t> {
    return request.offset == 20 * kUnit ? std::optional<int64_t>(-ENXIO) : std::nullopt;
  };
  TransferSet set(queue, settings);
  const uint64_t good = set.begin(true, 0, memory.data(), 2 * kUnit);
  const uint64_t bad = set.begin(true, 20 * kUnit, memory.data(), 2 * kUnit);
  const uint64_t late = set.begin(true, 30 * kUnit, memory.data(), 30 * kUnit);
  EXPECT_EQ(set.finish(bad).error, ENXIO);
  EXPECT_EQ(set.finish(late).error, ENXIO);
  EXPECT_EQ(set.finish(good).error, 0);
  EXPECT_TRUE(queue.underWay.empty());
}

/// A queue that fails at random, and what it has done.
struct Chance {
  std::mt19937 &random;
  uint64_t faults = 0;
  std::map<uint64_t, int> ioErrors; ///< by the end of a block
  bool isFatal = false;

  std::optional<int64_t> operator()(const StorageRequest &request) {
    const uint32_t kind = random() % 100;
    if (kind >= 40)
      return std::nullopt;
    ++faults;
    if (kind < 1) {
      isFatal |= ++ioErrors[request.offset + request.bytes] > 1;
      return -EIO;
    }
    constexpr int kPassing[] = {EINTR, EAGAIN, ECANCELED, EBUSY};
    if (kind < 15)
      return -kPassing[random() % 4];
    const int64_t part = random() % request.bytes / 512 * 512;
    return part > 0 ? part : -EINTR;
  }
};

TEST(TransferFaults, tenThousandAtRandom) {
  std::mt19937 random(3);
  uint64_t faults = 0, failures = 0;
  for (uint32_t round = 0; faults < 10000; ++round) {
    const uint64_t units = 1 + random() % 100;
    FaultyQueue queue(1 + random() % 16, 100 * kUnit);
    StorageSettings settings = blocksOf(1 + random() % 8);
    settings.singleSubmit = random() % 4 == 0;
    settings.overlapEvents = random() % 4 != 0;
    Chance chance{random, 0, {}, false};
    queue.takesPart = queue.reorders = true;
    queue.random.seed(round);
    queue.fault = [&](const StorageRequest &request) { return chance(request); };
    queue.submitError = queue.waitError = [&] {
      chance.faults += random() % 10 == 0;
      return random() % 10 == 0 ? EAGAIN : 0;
    };
    const bool writes = random() % 2;
    const uint64_t at = random() % (101 - units) * kUnit;
    std::vector<std::byte> memory = numbers(units * kUnit, round), file = numbers(100 * kUnit, ~round);
    queue.contents = file;
    std::vector<std::byte> expected = file;
    std::copy(memory.begin(), memory.end(), expected.begin() + static_cast<ptrdiff_t>(at));
    const TransferOutcome outcome = transferBlocks(queue, settings, writes, at, memory.data(), memory.size());
    faults += chance.faults;
    failures += outcome.error != 0;
    ASSERT_EQ(outcome.error != 0, chance.isFatal) << "round " << round;
    ASSERT_TRUE(queue.underWay.empty()) << "round " << round;
    if (outcome.error != 0)
      ASSERT_EQ(outcome.error, EIO);
    else if (writes)
      ASSERT_EQ(queue.contents, expected) << "round " << round;
    else
      ASSERT_TRUE(std::equal(memory.begin(), memory.end(), file.begin() + static_cast<ptrdiff_t>(at)))
          << "round " << round;
  }
  EXPECT_GT(failures, 0u);
}

} // namespace
