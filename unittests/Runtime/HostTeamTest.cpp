//===- HostTeamTest.cpp - The threads that work for the host stream ---------------===//
#include "Cpu/HostTeam.h"
#include "ProgramBuilder.h"

#include "ds/Runtime/Cpu/Arena.h"
#include "ds/Runtime/Engine/Executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <sched.h>
#include <sys/mman.h>
#include <vector>

using namespace ds;
using namespace ds::rt;

/// Several threads do it where there are several processors.
TEST(Arena, IsThereAndZero) {
  constexpr uint64_t kBytes = (uint64_t(300) << 20) + 12345, kPage = 4096;
  const Result<Arena> arena = Arena::create(kBytes, "test");
  ASSERT_TRUE(arena) << arena.error().message;
  EXPECT_EQ(arena->size(), kBytes);
  std::vector<unsigned char> resident((kBytes + kPage - 1) / kPage);
  ASSERT_EQ(::mincore(arena->data(), kBytes, resident.data()), 0);
  EXPECT_TRUE(std::ranges::all_of(resident, [](unsigned char page) { return (page & 1) != 0; }));
  EXPECT_TRUE(std::all_of(arena->data(), arena->data() + kBytes,
                          [](std::byte each) { return each == std::byte{0}; }));
}

TEST(HostTeam, DividesRangesAmongItsThreads) {
  Result<std::unique_ptr<HostTeam>> team = HostTeam::start(3);
  ASSERT_TRUE(team);
  setParallelTeam(team->get());
  std::vector<std::atomic<int>> seen(1000);
  for (int round = 0; round < 50;
       ++round) // threads sleep between rounds, and must neither miss one nor run it twice
    parallelRanges(1000, 7, 3, &seen, [](void *context, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        ++(*static_cast<std::vector<std::atomic<int>> *>(context))[i];
    });
  setParallelTeam(nullptr);
  for (const std::atomic<int> &count : seen)
    ASSERT_EQ(count.load(), 50);
}

TEST(HostTeam, GivesEachThreadANumberOfItsOwn) {
  Result<std::unique_ptr<HostTeam>> team = HostTeam::start(2);
  ASSERT_TRUE(team);
  std::atomic<uint32_t> sum{0}, counts{0};
  struct Context {
    std::atomic<uint32_t> &sum, &counts;
  } context{sum, counts};
  // Asked for more than there are, it says how many there are.
  (*team)->run(8, &context, [](void *data, uint32_t index, uint32_t count) {
    auto &self = *static_cast<Context *>(data);
    self.sum += 1u << (8 * index);
    self.counts += count;
  });
  EXPECT_EQ(sum.load(), 0x0101u);
  EXPECT_EQ(counts.load(), 4u);
}

TEST(HostTeam, SparesAProcessorForWhoDrivesADevice) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2)
    GTEST_SKIP() << "one processor";
  Result<std::unique_ptr<HostTeam>> team = HostTeam::start(2, /*spares=*/true);
  ASSERT_TRUE(team);
  std::vector<cpu_set_t> sets(2);
  (*team)->run(2, &sets, [](void *context, uint32_t index, uint32_t) {
    ::sched_getaffinity(0, sizeof(cpu_set_t), &(*static_cast<std::vector<cpu_set_t> *>(context))[index]);
  });
  EXPECT_TRUE(CPU_EQUAL(&sets[0], &all)); // the caller's stays
  EXPECT_EQ(CPU_COUNT(&sets[1]), CPU_COUNT(&all) - 1);
}

/// Every unit of a kernel of the host's stream runs once, in more parts than there are threads: one that is
/// done takes what others have not begun.
TEST(HostTeam, TakesPartsOfAKernelInTurn) {
  for (const int64_t extent : {1, 63, 64, 65, 1000, 65536, 65599}) {
    test::ProgramBuilder b;
    b.program.streams = {StreamKind::Compute, StreamKind::Host};
    b.program.hostThreads = 3;
    const uint32_t counts = b.keepUnits(Space::Host, {extent}), begins = b.keepUnits(Space::Host, {extent});
    b.command(CommandKind::Kernel, 0, {counts}, {extent}, 1);
    b.command(CommandKind::Kernel, 1, {begins}, {extent}, 1);
    b.segment();
    b.program.kernels = {{"ds_count", 0, 64}, {"ds_begin", 0, 64}};
    b.touch(b.program.kernels[0], {counts}, {extent});
    b.touch(b.program.kernels[1], {begins}, {extent});
    b.program.image = test::readBytes(DS_TEST_KERNELS);
    ASSERT_TRUE(verifyProgram(b.program));
    const Result<std::unique_ptr<Executor>> executor = Executor::load(b.program);
    ASSERT_TRUE(executor) << executor.error().message;
    ASSERT_TRUE((*executor)->run(0));
    const auto *count = static_cast<float *>((*executor)->data(counts)),
               *begin = static_cast<float *>((*executor)->data(begins));
    int64_t parts = 0;
    for (int64_t i = 0; i < extent; ++i) {
      ASSERT_EQ(count[i], 1) << i;
      ASSERT_EQ(begin[i], begin[i] == 0 ? 0 : 1) << i;
      parts += begin[i] != 0;
      EXPECT_TRUE(begin[i] == 0 || i % 64 == 0) << "a grain is not divided";
    }
    // As many as there are grains, but about four for each thread at most.
    EXPECT_EQ(parts, extent <= 64 ? 1 : extent == 65 ? 2 : extent == 1000 ? 8 : 12) << extent;
  }
}
