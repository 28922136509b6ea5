//===- ExecutorRanksTest.cpp - Programs of many ranks run as they say ----------===//
//
// Each rank is a thread with an executor of its own; what they send goes through FakeRanks.
//
//===---------------------------------------------------------------------------===//
#include "FakeRanks.h"
#include "ProgramBuilder.h"

#include "ds/Runtime/Engine/Executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::rt {
namespace {

using test::FakeRanks;
using test::ProgramBuilder;
using testing::HasSubstr;

/// What a rank's program left behind, and how its segment ended.
struct Ended {
  Status status;
  std::unique_ptr<Executor> executor;

  float at(uint32_t buffer, int64_t i = 0) const {
    return static_cast<const float *>(executor->data(buffer))[i];
  }
};

/// Loads `program` on every rank, lets `prepare` fill it, and runs its first segment `rounds` times.
std::vector<Ended> runRanks(FakeRanks &ranks, const Program &program,
                            const std::function<void(Executor &)> &prepare, bool poison = false,
                            int rounds = 1) {
  Status valid = verifyProgram(program);
  EXPECT_TRUE(valid) << (valid ? "" : valid.error().message);
  std::vector<Ended> ended(ranks.world);
  ranks.forEachRank([&](uint32_t rank) {
    ExecutorOptions options{.isa = {}, .poison = poison, .rank = rank};
    options.communicator = ranks.communicators(rank, program.mesh);
    options.failed = [&](const Error &error) { ranks.abort(error.message); };
    Result<std::unique_ptr<Executor>> loaded = Executor::load(program, options);
    ASSERT_TRUE(loaded) << loaded.error().message;
    ended[rank].executor = std::move(*loaded);
    for (int round = 0; round < rounds && ended[rank].status; ++round) {
      prepare(*ended[rank].executor);
      ended[rank].status = ended[rank].executor->run(0);
    }
  });
  return ended;
}

/// Writes first, first + 1, ... into a buffer.
void count(Executor &executor, uint32_t buffer, float first) {
  auto *data = static_cast<float *>(executor.data(buffer));
  for (int64_t i = 0; i < numElements(executor.program().buffers[buffer]); ++i)
    data[i] = first + static_cast<float>(i);
}

/// One of each kind of collective, on the streams of communication and without waiting between them.
struct OneOfEach {
  static constexpr uint32_t kWorld = 3;
  ProgramBuilder b;
  uint32_t full, window, grad, part, loss, root, send, receive;

  OneOfEach() {
    b.ranks(kWorld);
    full = b.keep({kWorld * 4});
    window = b.rankWindow(full, {0});
    grad = b.keep({kWorld, 5});
    part = b.keep({5});
    loss = b.keep({});
    root = b.keep({2});
    send = b.keep({kWorld * 2});
    receive = b.keep({kWorld, 2});
    using enum CollectiveKind;
    b.communicate(AllGather, Reduction::None, 4, {window, full}, 1);
    b.communicate(ReduceScatter, Reduction::Sum, 5, {grad, part}, 2);
    b.communicate(AllReduce, Reduction::Max, 1, {loss, loss});
    b.communicate(Broadcast, Reduction::None, 2, {root}, 1, {1});
    b.communicate(AllToAll, Reduction::None, 2, {send, receive}, 2);
    b.segment();
  }
  void fill(Executor &executor) const {
    const float rank = static_cast<float>(executor.rank());
    count(executor, full, -100);
    count(executor, window, 10 * rank);
    count(executor, grad, 100 * rank);
    count(executor, loss, rank == 1 ? 7 : rank);
    count(executor, root, 1000 * rank);
    count(executor, send, 10 * rank);
  }
};

TEST(ExecutorRanks, CollectivesDoWhatTheProgramSays) {
  for (bool poison : {false, true}) {
    OneOfEach o;
    FakeRanks ranks(3);
    const auto ended = runRanks(
        ranks, o.b.program, [&](Executor &executor) { o.fill(executor); }, poison, /*rounds=*/3);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      const Ended &e = ended[rank];
      ASSERT_TRUE(e.status) << e.status.error().message;
      for (int64_t i = 0; i < 12; ++i)
        EXPECT_EQ(e.at(o.full, i), static_cast<float>(10 * (i / 4) + i % 4)) << "rank " << rank;
      for (int64_t i = 0; i < 5; ++i) // (0 + 100 + 200) + 3 * (5 rank + i)
        EXPECT_EQ(e.at(o.part, i), static_cast<float>(300 + 3 * (5 * rank + i))) << "rank " << rank;
      EXPECT_EQ(e.at(o.loss), 7);
      EXPECT_EQ(e.at(o.root, 1), 1001);
      for (int64_t i = 0; i < 6; ++i) // part `rank` of rank i / 2
        EXPECT_EQ(e.at(o.receive, i), static_cast<float>(10 * (i / 2) + 2 * rank + i % 2)) << "rank " << rank;
    }
  }
}

TEST(ExecutorRanks, AWindowLiesElsewhereOnEveryRank) {
  OneOfEach o;
  FakeRanks ranks(3);
  const auto ended = runRanks(ranks, o.b.program, [](Executor &) {});
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const auto *base = static_cast<std::byte *>(ended[rank].executor->data(o.full));
    EXPECT_EQ(static_cast<std::byte *>(ended[rank].executor->data(o.window)) - base, rank * 16);
  }
}

/// Collectives along each axis of two by two ranks, and along both, in place where the axes say.
struct OnAGrid {
  const Mesh mesh = {{"dp", 2}, {"tp", 2}};
  ProgramBuilder b;
  uint32_t row, column, all, root, inRow, inColumn, inAll;

  OnAGrid() {
    b.ranks(mesh);
    row = b.keep({8}), column = b.keep({8}), all = b.keep({16}), root = b.keep({2});
    inRow = b.rankWindow(row, {1}), inColumn = b.rankWindow(column, {0}), inAll = b.rankWindow(all, {0, 1});
    using enum CollectiveKind;
    b.communicateAlong({1}, AllGather, Reduction::None, 4, {inRow, row}, 1);
    b.communicateAlong({0}, ReduceScatter, Reduction::Sum, 4, {column, inColumn}, 2);
    b.communicateAlong({0, 1}, AllGather, Reduction::None, 4, {inAll, all}, 1);
    b.communicateAlong({0}, Broadcast, Reduction::None, 2, {root}, 1, {1});
    b.segment();
  }
  void fill(Executor &executor) const {
    const float rank = static_cast<float>(executor.rank());
    for (uint32_t window : {inRow, inAll})
      count(executor, window, 10 * rank);
    count(executor, column, 100 * rank);
    count(executor, root, 1000 * rank);
  }
  void check(const Ended &e, uint32_t rank) const {
    const std::vector<uint32_t> above = mesh.group(rank, {0}), beside = mesh.group(rank, {1});
    for (int64_t i = 0; i < 16; ++i)
      EXPECT_EQ(e.at(all, i), static_cast<float>(10 * (i / 4) + i % 4)) << "rank " << rank;
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(e.at(row, i), static_cast<float>(10 * beside[static_cast<size_t>(i) / 4] + i % 4));
    for (int64_t i = 0; i < 4; ++i) { // part `dp` of the sums of two ranks
      const int64_t at = 4 * (rank / 2) + i;
      EXPECT_EQ(e.at(column, at), static_cast<float>(100 * (above[0] + above[1]) + 2 * at));
    }
    EXPECT_EQ(e.at(root, 1), static_cast<float>(1000 * above[1] + 1)) << "of position 1";
    EXPECT_EQ(dataPositionOf(*e.executor), rank / 2);
  }
};

TEST(ExecutorRanks, GroupsMeetAlongTheirAxes) {
  for (bool poison : {false, true}) {
    OnAGrid grid;
    FakeRanks ranks(4);
    const auto ended = runRanks(
        ranks, grid.b.program, [&](Executor &executor) { grid.fill(executor); }, poison, /*rounds=*/2);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      ASSERT_TRUE(ended[rank].status) << ended[rank].status.error().message;
      grid.check(ended[rank], rank);
    }
  }
}

/// Gathers on one stream what compute then counts up and the other stream reduces: two rounds of it, so that
/// the second gather reuses the buffer of the first once compute has read it.
struct Pipeline {
  ProgramBuilder b;
  uint32_t shard, full, part;

  Pipeline() {
    using enum CommandKind;
    b.ranks(2);
    b.program.numEvents = 6;
    shard = b.keep({64});
    full = b.keep({128});
    part = b.keep({64});
    for (uint16_t round = 0; round < 2; ++round) {
      const uint16_t event = 3 * round;
      if (round > 0)
        b.command(WaitEvent, event - 1, {}, {}, 1);
      b.communicate(CollectiveKind::AllGather, Reduction::None, 64, {shard, full}, 1);
      b.command(RecordEvent, event, {}, {}, 1);
      b.command(WaitEvent, event, {}, {});
      b.launch("ds_count", 128, {full});
      b.command(RecordEvent, event + 1, {}, {});
      b.command(WaitEvent, event + 1, {}, {}, 2);
      b.communicate(CollectiveKind::ReduceScatter, Reduction::Sum, 64, {full, part}, 2);
      b.command(RecordEvent, event + 2, {}, {}, 2);
    }
    b.command(WaitEvent, 5, {}, {});
    b.launch("ds_count", 128, {full});
    b.segment();
    b.program.image = test::readBytes(DS_TEST_KERNELS);
  }
};

TEST(ExecutorRanks, StreamsMeetAtEventsAcrossRanks) {
  for (bool poison : {false, true}) {
    Pipeline p;
    FakeRanks ranks(2);
    const auto ended = runRanks(
        ranks, p.b.program,
        [&](Executor &executor) { count(executor, p.shard, 1000.0f * static_cast<float>(executor.rank())); },
        poison, /*rounds=*/50);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      for (int64_t i : {0, 63}) // both ranks gathered the same and counted one up: twice the element
        EXPECT_EQ(ended[rank].at(p.part, i), static_cast<float>(2 * (1000 * rank + i + 1)));
      EXPECT_GT(ended[rank].executor->takeExposedNs(), 0);
      EXPECT_EQ(ended[rank].executor->takeExposedNs(), 0);
    }
  }
}

TEST(ExecutorRanks, AFailedCollectiveEndsTheSegmentOnEveryRank) {
  // Call 1 on the gather stream is the second gather: compute waits for it, and the other rank is inside it.
  for (bool poison : {false, true}) {
    Pipeline p;
    FakeRanks ranks(2);
    ranks.failAt(1, 1, 1, {ExitCode::Peer, "rank 0 on host h has gone in all_gather_2", ""});
    const auto ended = runRanks(
        ranks, p.b.program, [&](Executor &e) { count(e, p.shard, 0); }, poison);
    ASSERT_FALSE(ended[0].status);
    ASSERT_FALSE(ended[1].status);
    EXPECT_EQ(ended[0].status.error().code, ExitCode::Peer);
    EXPECT_EQ(ended[1].status.error().code, ExitCode::Peer);
    EXPECT_EQ(ended[1].status.error().message, "rank 0 on host h has gone in all_gather_2");
    EXPECT_THAT(ended[0].status.error().message, HasSubstr("told by rank 1"));
    // full counts 1 up only once: the last two launches were not started.
    EXPECT_EQ(ended[1].at(p.full, 5), 6.0f);
  }
}

TEST(ExecutorRanks, AFailureThatOnlyOneStreamKnowsOfEndsWhatOthersWaitFor) {
  // Rank 0 fails in a collective of its compute stream while its gather stream waits for rank 1, which is
  // never going to come: it waits for rank 0 itself.
  ProgramBuilder b;
  b.ranks(2);
  const uint32_t shard = b.keep({64}), full = b.keep({128}), loss = b.keep({});
  b.communicate(CollectiveKind::AllGather, Reduction::None, 64, {shard, full}, 1);
  b.communicate(CollectiveKind::AllReduce, Reduction::Sum, 1, {loss, loss}, 0);
  b.segment();
  FakeRanks ranks(2);
  ExecutorOptions options{.isa = {}, .poison = false, .rank = 0};
  options.communicator = ranks.communicators(0, b.program.mesh);
  options.failed = [&](const Error &error) { ranks.abort("told: " + error.message); };
  auto executor = Executor::load(b.program, options);
  ASSERT_TRUE(executor);
  ranks.failAt(0, 0, 0, {ExitCode::Device, "no device", ""});
  ranks.failOnceSomeoneWaits();
  Status status = (*executor)->run(0);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("no device"));
}

TEST(ExecutorRanks, RefusesAStreamThatHasNobodyToTalkTo) {
  Pipeline p;
  FakeRanks three(3);
  ExecutorOptions options;
  auto none = Executor::load(p.b.program, options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ExitCode::Internal);
  EXPECT_THAT(none.error().message,
              HasSubstr("has 0 ranks to talk to on stream 1, but the mesh has 2 along dp"));
  options.communicator = [&](uint32_t stream, AxisSet) { return &three.channel(0, stream); };
  auto other = Executor::load(p.b.program, options);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("has 3 ranks"));
  options.rank = 2;
  auto outside = Executor::load(p.b.program, options);
  ASSERT_FALSE(outside);
  EXPECT_THAT(outside.error().message, HasSubstr("rank 2 of a program for 2"));
}

} // namespace
} // namespace ds::rt
