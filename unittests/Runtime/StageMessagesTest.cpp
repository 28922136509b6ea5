//===- StageMessagesTest.cpp - Stages that pass on what they compute -----------===//
//
// Each rank is a thread with an executor of its own. What they send goes through memory, through Gloo, or
// through FakeRanks, which is over before a sender can know.
//
//===---------------------------------------------------------------------------===//
#include "Comm/Ranks.h"
#include "FakeRanks.h"
#include "ProgramBuilder.h"
#include "TwoLayers.h"

#include "ds/Runtime/Engine/Executor.h"

#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <thread>

namespace ds::rt {
namespace {

using test::FakeRanks;
using test::ProgramBuilder;
using test::TwoLayers;
using testing::HasSubstr;

constexpr CollectiveKind kSend = CollectiveKind::Send, kRecv = CollectiveKind::Recv;

/// Loads `program` on a rank, and lets `body` have it.
void runRank(const Program &program, uint32_t rank, const CommunicatorOf &communicators, bool poison,
             const std::function<void(Executor &)> &body) {
  ExecutorOptions options{.isa = {}, .poison = poison, .rank = rank};
  options.communicator = communicators;
  Result<std::unique_ptr<Executor>> loaded = Executor::load(program, options);
  ASSERT_TRUE(loaded) << loaded.error().message;
  body(**loaded);
}

/// On every rank, in each way that messages travel, poisoned and not.
void runEverywhere(const Program &program, const std::function<void(Executor &)> &body) {
  const Status valid = verifyProgram(program);
  ASSERT_TRUE(valid) << valid.error().message;
  for (bool poison : {false, true}) {
    FakeRanks fake(program.world);
    fake.forEachRank(
        [&](uint32_t rank) { runRank(program, rank, fake.communicators(rank, program.mesh), poison, body); });
    test::runRanks(program.world, [&](RankGroup &group) {
      const CommunicatorOf communicators = [&](uint32_t stream, AxisSet axes) {
        return &group.subset(stream % 2, program.mesh.group(group.rank(), axes));
      };
      runRank(program, group.rank(), communicators, poison, body);
    });
  }
}

float *floats(Executor &executor, uint32_t buffer) { return static_cast<float *>(executor.data(buffer)); }

TEST(StageMessages, GoDownAChain) {
  ProgramBuilder b;
  std::vector<uint32_t> x;
  for (uint32_t stage = 0; stage < 4; ++stage) {
    if (stage > 0)
      b.addStage();
    x.push_back(b.keep({1000}));
    if (stage > 0)
      b.receive("x" + std::to_string(stage), x.back(), stage - 1);
    b.launch("ds_count", 1000, {x.back()});
    if (stage < 3)
      b.send("x" + std::to_string(stage + 1), x.back(), stage + 1);
    const uint32_t segment = b.segment();
    b.program.stages[stage].schedule = {{segment, 0, 1, Gradients::Set, true}};
  }
  b.program.image = test::readBytes(DS_TEST_KERNELS);
  runEverywhere(b.program, [&](Executor &executor) {
    float *own = floats(executor, x[executor.rank()]);
    for (int step = 0; step < 3; ++step) {
      std::fill_n(own, 1000, executor.rank() == 0 ? 100.0f * static_cast<float>(step) : -1.0f);
      ASSERT_TRUE(executor.runStep([](uint32_t) { return Status(); }));
      EXPECT_EQ(own[0], 100 * step + static_cast<float>(executor.rank()) + 1);
      EXPECT_EQ(own[999], own[0]);
    }
  });
}

/// Every stage sends to both neighbours of a ring and receives from both, all at once.
TEST(StageMessages, GoAroundARingInBothDirections) {
  constexpr uint32_t kStages = 4;
  ProgramBuilder b;
  std::vector<uint32_t> own, left, right;
  const auto name = [](uint32_t from, uint32_t to) {
    return std::to_string(from) + " to " + std::to_string(to);
  };
  for (uint32_t stage = 0; stage < kStages; ++stage) {
    if (stage > 0)
      b.addStage();
    own.push_back(b.keep({5000})), left.push_back(b.keep({5000})), right.push_back(b.keep({5000}));
    const uint32_t next = (stage + 1) % kStages, before = (stage + kStages - 1) % kStages;
    b.exchange({{kSend, name(stage, next), own[stage], next},
                {kSend, name(stage, before), own[stage], before},
                {kRecv, name(next, stage), right[stage], next},
                {kRecv, name(before, stage), left[stage], before}});
    const uint32_t segment = b.segment();
    b.program.stages[stage].schedule = {{segment, 0, 1, Gradients::Set, true}};
  }
  runEverywhere(b.program, [&](Executor &executor) {
    const uint32_t stage = executor.rank();
    for (int step = 0; step < 5; ++step) {
      std::fill_n(floats(executor, own[stage]), 5000, static_cast<float>(10 * step + stage));
      ASSERT_TRUE(executor.runStep([](uint32_t) { return Status(); }));
      EXPECT_EQ(floats(executor, right[stage])[4999], static_cast<float>(10 * step + (stage + 1) % kStages));
      EXPECT_EQ(floats(executor, left[stage])[4999],
                static_cast<float>(10 * step + (stage + kStages - 1) % kStages));
    }
  });
}

/// What one rank computes of both layers, two stages compute of one each, to the bit.
TEST(StageMessages, TrainAsOneRankDoes) {
  const TwoLayers one(1), two(2);
  std::vector<float> weights[2], losses;
  const auto train = [](const TwoLayers &layers, Executor &executor, const std::function<void()> &after) {
    layers.start(executor);
    for (int step = 0; step < 4; ++step) {
      const Status status =
          executor.runStep([&](uint32_t microBatch) { return layers.fill(executor, step, microBatch); });
      ASSERT_TRUE(status) << status.error().message;
      after();
    }
  };
  runRank(one.b.program, 0, {}, false, [&](Executor &executor) {
    train(one, executor, [&] { losses.push_back(*floats(executor, one.loss)); });
    for (uint32_t layer : {0u, 1u})
      weights[layer] = one.weights(executor, layer);
  });
  ASSERT_EQ(losses.size(), 4u);
  EXPECT_LT(losses[3], losses[0]);
  runEverywhere(two.b.program, [&](Executor &executor) {
    const uint32_t layer = executor.rank();
    std::vector<float> told;
    train(two, executor, [&] {
      if (layer == 1)
        told.push_back(*floats(executor, two.loss));
    });
    EXPECT_EQ(two.weights(executor, layer), weights[layer]);
    if (layer == 1) {
      EXPECT_EQ(told, losses);
    }
  });
}

/// Messages among three stages in some order, in which each stage joins some to exchanges; then, perhaps, two
/// neighbours of one stage trade places.
Program makeRandom(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  std::vector<std::vector<ProgramBuilder::End>> ends(3);
  for (uint32_t number = 0; number < 8; ++number) {
    const uint32_t from = pick(3), to = (from + 1 + pick(2)) % 3;
    const std::string name = "m" + std::to_string(pick(4)); // often told apart by their names, not always
    ends[from].push_back({kSend, name, 0, to});
    ends[to].push_back({kRecv, name, 0, from});
  }
  if (std::vector<ProgramBuilder::End> &some = ends[pick(3)]; some.size() > 1 && pick(2) == 0) {
    const uint32_t at = pick(static_cast<uint32_t>(some.size()) - 1);
    std::swap(some[at], some[at + 1]);
  }
  ProgramBuilder b;
  for (uint32_t stage = 0; stage < 3; ++stage) {
    if (stage > 0)
      b.addStage();
    std::vector<ProgramBuilder::End> exchange;
    for (ProgramBuilder::End &end : ends[stage]) {
      end.buffer = b.keep({8});
      exchange.push_back(end);
      if (pick(3) == 0 || &end == &ends[stage].back())
        b.exchange(std::exchange(exchange, {}));
    }
    const uint32_t segment = b.segment();
    b.program.stages[stage].schedule = {{segment, 0, 1, Gradients::Set, true}};
  }
  return b.program;
}

/// What the verifier accepts comes to an end, whatever is sent when.
TEST(StageMessages, ThatAreAcceptedComeToAnEnd) {
  int accepted = 0, refused = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Program program = makeRandom(seed);
    const bool isValid = bool(verifyProgram(program));
    ++(isValid ? accepted : refused);
    FakeRanks ranks(3);
    std::atomic<int> ended{0};
    if (!isValid)
      continue;
    std::thread watch([&] {
      for (int look = 0; look < 2000 && ended < 3; ++look)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (ended < 3)
        ranks.abort("it hangs");
    });
    std::atomic<bool> fails{false};
    ranks.forEachRank([&](uint32_t rank) {
      runRank(program, rank, ranks.communicators(rank, program.mesh), false, [&](Executor &executor) {
        if (!executor.runStep([](uint32_t) { return Status(); }))
          fails = true;
      });
      ++ended;
    });
    watch.join();
    EXPECT_FALSE(fails) << "seed " << seed;
  }
  EXPECT_GT(accepted, 50);
  EXPECT_GT(refused, 20);
}

/// A stage that fails ends what others wait for.
TEST(StageMessages, AFailureEndsTheWaitOfOthers) {
  const TwoLayers two(2);
  FakeRanks ranks(2);
  ranks.forEachRank([&](uint32_t rank) {
    runRank(two.b.program, rank, ranks.communicators(rank, two.b.program.mesh), false,
            [&](Executor &executor) {
              if (rank == 0)
                return ranks.abort("rank 0 has gone");
              two.start(executor);
              const Status status =
                  executor.runStep([&](uint32_t microBatch) { return two.fill(executor, 0, microBatch); });
              ASSERT_FALSE(status);
              EXPECT_EQ(status.error().code, ExitCode::Peer);
              EXPECT_THAT(status.error().message, HasSubstr("rank 0 has gone"));
            });
  });
}

} // namespace
} // namespace ds::rt
