//===- PipelineMutationsTest.cpp - Tables of pipelines in which something is changed ----===//
//
// What the verifier accepts comes to an end on every rank, whatever is sent when, and to the numbers of one
// rank but for the order of sums. 2,000 tables; 10,000 if the environment has DS_ALL_FAULTS (script/matrix).
//
//===---------------------------------------------------------------------------===//
#include "FakeRanks.h"
#include "Layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>

namespace ds::rt {
namespace {

using test::FakeRanks;
using test::Layers;
using test::Pipeline;
using test::PipelineKind;
using Results = std::map<std::string, std::vector<float>>;

/// One step of all ranks; nothing where it fails or has no end within ten seconds.
Results runStep(const Layers &layers, const Program &program) {
  FakeRanks ranks(program.world);
  std::atomic<uint32_t> ended{0};
  std::thread watch([&] {
    for (int look = 0; look < 10000 && ended < program.world; ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (ended < program.world)
      ranks.abort("it hangs");
  });
  std::mutex mutex;
  Results results;
  std::atomic<bool> fails{false};
  ranks.forEachRank([&](uint32_t rank) {
    ExecutorOptions options{.isa = {}, .poison = false, .rank = rank};
    options.communicator = ranks.communicators(rank, program.mesh);
    Result<std::unique_ptr<Executor>> loaded = Executor::load(program, options);
    ASSERT_TRUE(loaded) << loaded.error().message;
    if (!layers.train(**loaded, 1))
      fails = true;
    ++ended;
    const std::lock_guard lock(mutex);
    results.merge(layers.results(**loaded));
  });
  watch.join();
  return fails ? Results() : results;
}

class Mutations {
public:
  explicit Mutations(uint32_t seed) : random(seed) {}

  uint32_t pick(size_t count) { return static_cast<uint32_t>(random() % count); }
  Pipeline pipeline() {
    const uint32_t stages = 2 + pick(2);
    const auto kind = static_cast<PipelineKind>(pick(3));
    return {kind, stages, kind == PipelineKind::Interleaved ? 2u : 1u, 1 + pick(4)};
  }
  /// Changes one entry of one stage, or its neighbour's place.
  void apply(Program &program) {
    std::vector<ScheduleEntry> &schedule = program.stages[pick(program.stages.size())].schedule;
    const size_t i = pick(schedule.size() - 1);
    ScheduleEntry &entry = schedule[i];
    uint32_t &count = entry.after[pick(2)];
    switch (pick(6)) {
    case 0:
      return std::swap(entry, schedule[i + 1]);
    case 1: // each waits for what the other has waited for
      std::swap(entry, schedule[i + 1]);
      return std::swap(entry.after, schedule[i + 1].after);
    case 2:
      count += 1;
      return;
    case 3:
      count -= count > 0;
      return;
    case 4:
      entry.firstMicroBatch = pick(program.accumulation);
      return;
    default:
      schedule.erase(schedule.begin() + static_cast<ptrdiff_t>(i));
    }
  }

private:
  std::mt19937 random;
};

/// Within what another order of a few sums in f32 makes of numbers around 1.
void expectNear(const Results &results, const Results &expected, uint32_t seed) {
  ASSERT_EQ(results.size(), expected.size()) << "seed " << seed;
  for (const auto &[name, values] : expected)
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(results.at(name)[i], values[i], 1e-4) << name << " " << i << ", seed " << seed;
}

TEST(PipelineMutations, ThatAreAcceptedComeToAnEnd) {
  int accepted = 0, refused = 0;
  std::map<std::tuple<PipelineKind, uint32_t, uint32_t>, Results> expected;
  const uint32_t count = std::getenv("DS_ALL_FAULTS") ? 10000 : 2000;
  for (uint32_t seed = 0; seed < count; ++seed) {
    Mutations mutations(seed);
    const Pipeline pipeline = mutations.pipeline();
    const test::PipelineTable table = test::tableOf(pipeline);
    ASSERT_FALSE(table.empty()) << "seed " << seed;
    const Layers layers(pipeline, table, mutations.pick(2) * pipeline.microBatches);
    Program program = layers.program();
    ASSERT_TRUE(verifyProgram(program)) << verifyProgram(program).error().message << ", seed " << seed;
    Results &whole = expected[{pipeline.kind, pipeline.stages, pipeline.microBatches}];
    if (whole.empty())
      whole = runStep(layers, program);
    for (uint32_t i = 0; i <= mutations.pick(2); ++i)
      mutations.apply(program);
    const bool isValid = bool(verifyProgram(program));
    ++(isValid ? accepted : refused);
    if (isValid)
      expectNear(runStep(layers, program), whole, seed);
  }
  EXPECT_GT(accepted, 200);
  EXPECT_GT(refused, 500);
}

} // namespace
} // namespace ds::rt
