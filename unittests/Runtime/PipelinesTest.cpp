//===- PipelinesTest.cpp - Pipelines of which the transfers outlive segments --------===//
//
// Each rank is a thread with an executor of its own. What stages send goes through memory, through Gloo, or
// through FakeRanks, which is over before a sender can know.
//
//===---------------------------------------------------------------------------===//
#include "Comm/Ranks.h"
#include "FakeRanks.h"
#include "Layers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <future>
#include <mutex>
#include <random>

namespace ds::rt {
namespace {

using test::FakeRanks;
using test::Layers;
using test::Pipeline;
using test::PipelineItem;
using test::PipelineKind;
using test::PipelineTable;
using test::ProgramBuilder;
using testing::HasSubstr;

using enum PipelineKind;
using Results = std::map<std::string, std::vector<float>>;

/// Loads `program` on a rank, and lets `body` have it.
void runRank(const Program &program, uint32_t rank, const CommunicatorOf &communicators, bool poison,
             const std::function<void(Executor &)> &body,
             const std::function<void(const Error &)> &failed = {}) {
  ExecutorOptions options{.isa = {}, .poison = poison, .rank = rank};
  options.communicator = communicators;
  options.failed = failed;
  Result<std::unique_ptr<Executor>> loaded = Executor::load(program, options);
  ASSERT_TRUE(loaded) << loaded.error().message;
  body(**loaded);
}

/// What `steps` steps of all ranks come to; nothing, and a failure of the test's, where one fails.
class Training {
public:
  Training(const Layers &layers, int steps) : layers(layers), steps(steps) {}

  void runOn(Executor &executor) {
    const Status status = layers.train(executor, steps);
    EXPECT_TRUE(status) << status.error().message;
    const std::lock_guard lock(mutex);
    if (status)
      results.merge(layers.results(executor));
  }
  Results onFakeRanks(bool poison = false) {
    const Program &program = layers.program();
    FakeRanks ranks(program.world);
    ranks.forEachRank([&](uint32_t rank) {
      runRank(program, rank, ranks.communicators(rank, program.mesh), poison,
              [&](Executor &executor) { runOn(executor); });
    });
    return std::exchange(results, {});
  }
  Results on(const char *transport) {
    const Program &program = layers.program();
    test::runRanksOn(
        transport, program.world,
        [&](RankGroup &group) {
          const CommunicatorOf communicators = [&](uint32_t stream, AxisSet axes) {
            return &group.subset(stream, program.mesh.group(group.rank(), axes));
          };
          runRank(program, group.rank(), communicators, false, [&](Executor &executor) { runOn(executor); });
        },
        std::chrono::seconds(20), /*finish=*/true);
    return std::exchange(results, {});
  }

private:
  const Layers &layers;
  const int steps;
  std::mutex mutex; ///< guards results while ranks run
  Results results;
};

std::string verdictOf(const Program &program) {
  const Status status = verifyProgram(program);
  return status ? "accepted" : status.error().message;
}

/// What one rank makes of as many layers and micro-batches.
Results onOneRank(const Pipeline &of, int steps) {
  const Layers one(Pipeline{GPipe, 1, of.numChunks(), of.microBatches});
  EXPECT_EQ(verdictOf(one.program()), "accepted");
  return Training(one, steps).onFakeRanks();
}

constexpr int kSteps = 3;

void expectAsOneRank(const Pipeline &pipeline) {
  const Layers layers(pipeline);
  ASSERT_EQ(verdictOf(layers.program()), "accepted");
  const Results expected = onOneRank(pipeline, kSteps);
  EXPECT_EQ(expected.size(), pipeline.numChunks() + 1u);
  EXPECT_EQ(Training(layers, kSteps).onFakeRanks(), expected);
  EXPECT_EQ(Training(layers, kSteps).onFakeRanks(/*poison=*/true), expected);
  for (const char *transport : {"memory", "gloo"})
    EXPECT_EQ(Training(layers, kSteps).on(transport), expected) << transport;
}

TEST(Pipelines, AllForwardsBeforeAllBackwards) {
  for (const auto &[stages, microBatches] : {std::pair(2u, 1u), {2, 8}, {3, 5}, {4, 3}})
    expectAsOneRank({GPipe, stages, 1, microBatches});
}

TEST(Pipelines, OneForwardOneBackward) {
  for (const auto &[stages, microBatches] : {std::pair(2u, 1u), {2, 8}, {3, 2}, {4, 8}, {4, 5}})
    expectAsOneRank({OneForwardOneBackward, stages, 1, microBatches});
}

TEST(Pipelines, Interleaved) {
  for (const auto &[stages, chunks, microBatches] :
       {std::tuple(2u, 2u, 4u), {2, 3, 2}, {3, 2, 6}, {4, 2, 8}, {2, 2, 5}})
    expectAsOneRank({Interleaved, stages, chunks, microBatches});
}

/// Of 1F1B a stage has as many micro-batches under way as there are stages from it on.
TEST(Pipelines, KeepAsManyMicroBatchesAsAreUnderWay) {
  constexpr uint32_t kStages = 4;
  for (uint32_t microBatches : {2u, 8u}) {
    const Layers layers({OneForwardOneBackward, kStages, 1, microBatches});
    const Buffer &x = layers.program().buffers[layers.program().inputs[0].buffer];
    EXPECT_EQ(x.slots, std::min(microBatches, kStages));
    const Layers all({GPipe, kStages, 1, microBatches});
    EXPECT_EQ(all.program().buffers[all.program().inputs[0].buffer].slots, microBatches);
  }
}

/// The second forward of stage 0 begins although nobody takes what the first has made: stage 1 begins its
/// step only then.
TEST(Pipelines, ForwardsGoOnWhileAMessageWaits) {
  const Layers layers({OneForwardOneBackward, 2, 1, 4});
  ASSERT_EQ(verdictOf(layers.program()), "accepted");
  std::promise<void> isFilled;
  std::future<void> filled = isFilled.get_future();
  test::runRanks(2, [&](RankGroup &group) {
    const CommunicatorOf communicators = [&](uint32_t stream, AxisSet) { return &group.channel(stream); };
    runRank(layers.program(), group.rank(), communicators, false, [&](Executor &executor) {
      layers.start(executor);
      if (group.rank() == 1)
        filled.wait_for(std::chrono::seconds(15));
      const Status status = executor.runStep([&](uint32_t m) {
        if (group.rank() == 0 && m == 1)
          isFilled.set_value();
        return layers.fill(executor, 0, m);
      });
      EXPECT_TRUE(status) << status.error().message;
    });
    if (group.rank() == 0) { // for the next transport
      isFilled = {};
      filled = isFilled.get_future();
    }
  });
}

/// Every execution of every lane is measured, on the stream of its lane.
TEST(Pipelines, AreMeasured) {
  const Pipeline pipeline{OneForwardOneBackward, 2, 1, 4};
  const Layers layers(pipeline);
  FakeRanks ranks(2);
  ranks.forEachRank([&](uint32_t rank) {
    runRank(layers.program(), rank, ranks.communicators(rank, layers.program().mesh), false,
            [&](Executor &executor) {
              executor.measure(true);
              ASSERT_TRUE(layers.train(executor, 1));
              const std::vector<Timing> timings = executor.takeTimings();
              std::vector<int64_t> begins;
              for (const Timing &timing : timings)
                if (timing.stream == 1)
                  begins.push_back(timing.beginNs);
              EXPECT_EQ(begins.size(), 2 * pipeline.microBatches);
              EXPECT_TRUE(std::ranges::is_sorted(begins)) << "one after another on a lane";
            });
  });
}

/// Two stages swap what their forwards make of each micro-batch, in one exchange of a transfer: neither could
/// send first.
TEST(Pipelines, OppositeMessagesOfATransferPassAtOnce) {
  ProgramBuilder b;
  b.program.streams = {StreamKind::Compute, StreamKind::Transfer};
  b.program.accumulation = 4;
  uint32_t seen[2];
  for (uint32_t stage : {0u, 1u}) {
    if (stage > 0)
      b.addStage();
    const uint32_t x = b.input("x", {8}), own = b.slotted({8}, 2), other = b.slotted({8}, 2);
    seen[stage] = b.slotted({8}, 4);
    b.library(LibraryFn::Copy, {x, own});
    const uint32_t forward = b.segment({Work::Forward}, "forward");
    b.exchange({{CollectiveKind::Send, stage ? "back" : "forth", own, 1 - stage},
                {CollectiveKind::Recv, stage ? "forth" : "back", other, 1 - stage}},
               /*stream=*/1);
    const uint32_t swap = b.segment({Work::Transfer}, "swap");
    b.library(LibraryFn::Copy, {other, seen[stage]});
    const uint32_t backward = b.segment({Work::Backward}, "backward");
    std::vector<ScheduleEntry> &schedule = b.program.stages[stage].schedule;
    schedule.clear();
    for (uint32_t m = 0; m < 4; ++m) { // the forward of a slot waits for the swap before it, as does the swap
      schedule.push_back({forward, m, 1, Gradients::None, false, {0, m > 1 ? m - 1 : 0, 0}});
      schedule.push_back({swap, m, 1, Gradients::None, false, {m > 1 ? 2 * m : m + 1, 0, 0}});
      if (m > 0)
        schedule.push_back({backward, m - 1, 1, Gradients::None, false, {0, m, 0}});
    }
    schedule.push_back({backward, 3, 1, Gradients::None, false, {0, 4, 0}});
    schedule.push_back({b.segment({Work::Update}, "update")});
  }
  ASSERT_EQ(verdictOf(b.program), "accepted");
  test::runRanks(2, [&](RankGroup &group) {
    const CommunicatorOf communicators = [&](uint32_t stream, AxisSet) { return &group.channel(stream); };
    for (bool poison : {false, true})
      runRank(b.program, group.rank(), communicators, poison, [&](Executor &executor) {
        const Status status = executor.runStep([&](uint32_t m) -> Status {
          std::fill_n(static_cast<float *>(executor.inputs(m).at(0)), 8, 10.0f * group.rank() + m);
          return {};
        });
        ASSERT_TRUE(status) << status.error().message;
        for (uint32_t m = 0; m < 4; ++m)
          EXPECT_EQ(static_cast<const float *>(executor.data(seen[group.rank()], m))[7],
                    10.0f * (1 - group.rank()) + m);
      });
  });
}

/// Gathers of a parameter that is cut in two run beside what computes, into the slots of two micro-batches.
Program moving(uint32_t &own, uint32_t &seen) {
  constexpr int64_t kElements = 8;
  ProgramBuilder b;
  b.ranks(2);
  b.program.accumulation = 3;
  own = b.keep({kElements});
  const uint32_t all = b.slotted({2 * kElements}, 2);
  seen = b.slotted({2 * kElements}, 3);
  b.communicate(CollectiveKind::AllGather, Reduction::None, kElements, {own, all}, 1);
  const uint32_t move = b.segment({Work::Move}, "move");
  b.library(LibraryFn::Copy, {all, seen});
  const uint32_t forward = b.segment({Work::Forward}, "forward");
  const uint32_t update = b.segment({Work::Update}, "update");
  const auto entry = [](uint32_t segment, uint32_t m, LaneCounts after) {
    return ScheduleEntry{segment, m, 1, Gradients::None, false, after};
  };
  b.program.stages[0].schedule = {entry(move, 0, {}),           entry(move, 1, {}),
                                  entry(forward, 0, {0, 0, 1}), entry(move, 2, {1, 0, 0}),
                                  entry(forward, 1, {0, 0, 2}), entry(forward, 2, {0, 0, 3}),
                                  entry(update, 0, {})};
  return b.program;
}

TEST(Pipelines, MovesRunBesideWhatComputes) {
  uint32_t own = 0, seen = 0;
  const Program program = moving(own, seen);
  ASSERT_EQ(verdictOf(program), "accepted");
  for (bool poison : {false, true}) {
    FakeRanks ranks(2);
    ranks.forEachRank([&](uint32_t rank) {
      runRank(program, rank, ranks.communicators(rank, program.mesh), poison, [&](Executor &executor) {
        std::fill_n(static_cast<float *>(executor.data(own)), 8, 5.0f + static_cast<float>(rank));
        ASSERT_TRUE(executor.runStep({}));
        for (uint32_t m = 0; m < 3; ++m) {
          const auto *values = static_cast<const float *>(executor.data(seen, m));
          EXPECT_EQ(values[7], 5) << m;
          EXPECT_EQ(values[15], 6) << m;
        }
      });
    });
  }
  Program early = program;
  early.stages[0].schedule[3].after = {};
  EXPECT_THAT(verdictOf(early),
              HasSubstr("'move' for micro-batch 2 may run beside 'forward' for micro-batch 0"));
}

/// What one rank cannot do ends what others wait for, on every lane.
TEST(Pipelines, AFailureEndsTheWaitOfOthers) {
  const Layers layers({OneForwardOneBackward, 3, 1, 6});
  for (uint32_t failing : {0u, 2u}) {
    FakeRanks ranks(3);
    ranks.forEachRank([&](uint32_t rank) {
      runRank(
          layers.program(), rank, ranks.communicators(rank, layers.program().mesh), false,
          [&](Executor &executor) {
            layers.start(executor);
            const Status status = executor.runStep([&](uint32_t m) -> Status {
              if (rank == failing && m == 3)
                return Error{ExitCode::Io, "no more data", ""};
              return layers.fill(executor, 0, m);
            });
            ASSERT_FALSE(status);
            EXPECT_THAT(status.error().message, HasSubstr("no more data"));
          },
          [&](const Error &error) { ranks.abort(error.message); });
    });
  }
}

/// A message that fails is the failure of the step, whichever lane it is on, and nothing hangs.
TEST(Pipelines, AMessageThatFailsEndsTheStep) {
  const Layers layers({Interleaved, 2, 2, 4});
  for (uint32_t microBatch : {0u, 1u, 3u}) {
    FakeRanks ranks(2);
    ranks.forEachRank([&](uint32_t rank) {
      runRank(layers.program(), rank, ranks.communicators(rank, layers.program().mesh), false,
              [&](Executor &executor) {
                layers.start(executor);
                const Status status = executor.runStep([&](uint32_t m) {
                  if (rank == 1 && m == microBatch)
                    ranks.abort("rank 1 has gone");
                  return layers.fill(executor, 0, m);
                });
                ASSERT_FALSE(status);
                EXPECT_EQ(status.error().code, ExitCode::Peer);
                EXPECT_THAT(status.error().message, HasSubstr("rank 1 has gone"));
              });
    });
  }
}

} // namespace
} // namespace ds::rt
