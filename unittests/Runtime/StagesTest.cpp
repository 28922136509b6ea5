//===- StagesTest.cpp - Every rank runs its own stage --------------------------===//
#include "TwoStages.h"

#include "Program/Stages.h"
#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Program/Groups.h"
#include "ds/Runtime/State/Weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::rt {
namespace {

using test::TwoStages;
using testing::HasSubstr;

/// By rank.
std::vector<uint32_t> stagesOf(const Mesh &mesh, AxisSet axes) {
  Program p;
  p.world = mesh.size();
  p.mesh = mesh;
  p.stageAxes = axes;
  std::vector<uint32_t> stages;
  for (uint32_t rank = 0; rank < p.world; ++rank)
    stages.push_back(stageOf(p, rank));
  EXPECT_EQ(numStages(p), *std::max_element(stages.begin(), stages.end()) + 1);
  return stages;
}

TEST(Stages, AreThePositionsAlongTheirAxes) {
  EXPECT_EQ(stagesOf({{"pp", 2}, {"dp", 3}}, {0}), (std::vector<uint32_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(stagesOf({{"dp", 2}, {"pp", 2}, {"tp", 2}}, {1}),
            (std::vector<uint32_t>{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(stagesOf({{"pp.far", 2}, {"pp.near", 2}}, {0, 1}), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(stagesOf({{"depth", 2}, {"pp", 2}}, {0}), (std::vector<uint32_t>{0, 0, 1, 1}))
      << "no name counts";
  EXPECT_EQ(stagesOf({{"pp", 2}}, {}), (std::vector<uint32_t>{0, 0}));
}

TEST(Groups, AreThoseOfAllStagesInOneOrder) {
  Program p;
  p.mesh = {{"pp", 2}, {"dp", 2}, {"tp", 3}, {"sp", 1}};
  const auto communicate = [&](uint8_t stream, AxisSet axes) {
    Command &command = p.commands.emplace_back();
    command.kind = CommandKind::Collective;
    command.stream = stream;
    command.callee = static_cast<uint32_t>(p.collectives.size());
    p.collectives.emplace_back().axes = axes;
  };
  communicate(2, {1});
  communicate(0, {1, 2}); // another stage's, perhaps
  communicate(0, {1});
  communicate(2, {1});
  communicate(1, {3});       // along which every rank is alone
  p.commands.emplace_back(); // a kernel
  EXPECT_EQ(groupsOf(p), (std::vector<GroupUse>{{0, {1}}, {0, {1, 2}}, {2, {1}}}));
}

/// One for the thread that computes, whether or not it communicates, and one for each other stream that does.
TEST(Groups, HaveAChannelForEachStream) {
  Program p;
  p.mesh = {{"dp", 2}, {"tp", 1}};
  p.streams = {StreamKind::Compute, StreamKind::ToHost, StreamKind::Reduce, StreamKind::Gather,
               StreamKind::Exchange};
  EXPECT_EQ(numChannels(p), 1u);
  const auto communicate = [&](uint8_t stream, AxisSet axes) {
    Command &command = p.commands.emplace_back();
    command.kind = CommandKind::Collective;
    command.stream = stream;
    command.callee = static_cast<uint32_t>(p.collectives.size());
    p.collectives.emplace_back().axes = axes;
  };
  communicate(4, {1}); // alone
  EXPECT_EQ(numChannels(p), 1u);
  communicate(3, {0});
  communicate(2, {0});
  communicate(3, {0});
  EXPECT_EQ(numChannels(p), 3u);
  communicate(0, {0});
  EXPECT_EQ(numChannels(p), 3u);
  EXPECT_EQ(channelsOf(p), (std::vector<std::optional<uint32_t>>{0, std::nullopt, 1, 2, std::nullopt}));
}

TEST(Stages, TakingOneLeavesNothingOfTheOthers) {
  TwoStages two;
  const Program taken = takeStage(two.b.program, 1);
  ASSERT_EQ(taken.stages.size(), 1u);
  EXPECT_EQ(taken.stages[0].arenas.device, two.b.program.stages[1].arenas.device);
  EXPECT_EQ(taken.stages[0].schedule.at(0).segment, 0u);
  EXPECT_EQ(taken.stages[0].evaluation, 1);
  ASSERT_EQ(taken.segments.size(), 2u);
  EXPECT_EQ(taken.segments[1].firstCommand, 2u);
  EXPECT_EQ(taken.commands.size(), 3u);
  ASSERT_EQ(taken.states.size(), 2u);
  EXPECT_EQ(taken.states[1].name, "own1");
  EXPECT_EQ(taken.inputs.size(), 1u);
  EXPECT_EQ(taken.outputs.size(), 1u);
  for (const Lifetime &lifetime : taken.lifetimes)
    EXPECT_TRUE(lifetime.stage == 0 && (lifetime.segment == Lifetime::kWholeStep || lifetime.segment == 0));
}

std::unique_ptr<Executor> load(const ExecutorOptions &options) {
  Result<std::unique_ptr<Executor>> executor = Executor::load(TwoStages().b.program, options);
  EXPECT_TRUE(executor) << (executor ? "" : executor.error().message);
  return executor ? std::move(*executor) : nullptr;
}

TEST(Stages, RunOnTheirRanks) {
  const TwoStages two;
  ASSERT_TRUE(verifyProgram(two.b.program));
  for (bool poison : {false, true}) {
    for (uint32_t rank : {0, 1}) {
      auto executor = load({.isa = {}, .poison = poison, .rank = rank});
      ASSERT_TRUE(executor);
      const auto *own = static_cast<const float *>(executor->data(two.own[rank]));
      ASSERT_TRUE(executor->runStep([&](uint32_t microBatch) -> Status {
        std::fill_n(static_cast<float *>(executor->inputs(microBatch).at(0)), 8, 3.0f + rank);
        return {};
      }));
      EXPECT_EQ(own[7], 3.0f + rank);
      ASSERT_TRUE(executor->run(static_cast<uint32_t>(executor->stage().evaluation)));
      EXPECT_EQ(own[7], 10.0f + rank);
      EXPECT_EQ(executor->stage().arenas.device, two.b.program.stages[rank].arenas.device);
    }
  }
}

TEST(Stages, ATiedParameterStartsAlikeOnAll) {
  const TwoStages two;
  auto first = load({.isa = {}, .poison = {}, .rank = 0}),
       second = load({.isa = {}, .poison = {}, .rank = 1});
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(initializeStates(*first, 7, false) && initializeStates(*second, 7, false));
  const auto *a = static_cast<const float *>(first->data(two.tied[0]));
  const auto *b = static_cast<const float *>(second->data(two.tied[1]));
  EXPECT_EQ(std::vector<float>(a, a + 8), std::vector<float>(b, b + 8));
  EXPECT_NE(a[0], 0);
}

TEST(Stages, CanBeChosen) {
  auto executor = load({.isa = {}, .poison = {}, .rank = 0, .stage = 1});
  ASSERT_TRUE(executor);
  EXPECT_EQ(executor->program().states.at(1).name, "own1");
  auto none = Executor::load(TwoStages().b.program, {.isa = {}, .poison = {}, .rank = 0, .stage = 2});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ExitCode::Internal);
  EXPECT_THAT(none.error().message, HasSubstr("stage 2 of a program of 2"));
}

} // namespace
} // namespace ds::rt
