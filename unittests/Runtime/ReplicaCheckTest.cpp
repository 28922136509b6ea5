//===- ReplicaCheckTest.cpp - A bit that flips in one rank's memory -------------===//
//
// Ranks are threads. Of a model on a mesh some states are cut, by buckets or by dimensions, and some are
// whole on every rank; the test flips one bit of one rank and asks who is named, and for what.
//
//===---------------------------------------------------------------------------===//
#include "Training/ReplicaCheck.h"
#include "FakeRanks.h"
#include "ProgramBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

namespace ds::rt {
namespace {

using test::FakeRanks;
using test::ProgramBuilder;
using testing::Each;
using testing::HasSubstr;

/// Parameters `whole` [100] and `last` [5], a moment, `columns` [4, 6] whose columns are cut along tp if
/// there is such an axis, and a master of `whole` that ranks along dp hold together.
Program model(const Mesh &mesh) {
  ProgramBuilder b;
  b.ranks(mesh);
  b.state("whole", {100});
  Layout columns;
  if (const std::optional<AxisSet> tp = mesh.find("tp"))
    columns.cuts = {AxisSet(), *tp};
  const uint32_t held = b.keep(localShape(b.program.mesh, columns, std::vector<int64_t>{4, 6}));
  b.program.states.push_back({"columns", {}, Role::Parameter, "", {4, 6}, held, {}, true, columns});
  b.state("last", {5});
  b.state("moment", {100}, {}, Role::Moment);
  b.program.states.back().owner = "whole";
  b.sharded("whole.master", {100}, b.keep({100 / mesh.size(*mesh.find("dp"))}), 0, {}, Role::Master, "whole");
  b.segment();
  return b.program;
}

constexpr size_t kWhole = 0, kColumns = 1, kLast = 2, kMoment = 3, kMaster = 4;

struct Flip {
  uint32_t rank;
  size_t state;
  uint64_t byte;
};

/// How a check after step 7 ends on each rank, with bits flipped.
std::vector<Status> check(const Program &program, const std::vector<Flip> &flips, uint64_t *bytes = nullptr) {
  const Status valid = verifyProgram(program);
  EXPECT_TRUE(valid) << valid.error().message;
  FakeRanks ranks(program.world);
  std::vector<Status> ends(program.world);
  ranks.forEachRank([&](uint32_t rank) {
    ExecutorOptions options;
    options.rank = rank;
    auto executor = Executor::load(program, options);
    ASSERT_TRUE(executor) << executor.error().message;
    for (const Flip &flip : flips)
      if (flip.rank == rank)
        static_cast<uint8_t *>((*executor)->data(program.states[flip.state].buffer))[flip.byte] ^= 0x10;
    ReplicaCheck replicas(**executor, &ranks.channel(rank, 0),
                          [](uint32_t who) { return "rank " + std::to_string(who); });
    if (bytes && rank == 0)
      *bytes = replicas.bytes();
    ends[rank] = replicas.run(7);
  });
  return ends;
}

/// What all ranks say; empty if all are content, "differently" if they do not say the same.
std::string verdictOf(const Program &program, const std::vector<Flip> &flips) {
  std::vector<std::string> messages;
  for (const Status &status : check(program, flips)) {
    EXPECT_TRUE(status || status.error().code == ExitCode::Diverged);
    messages.push_back(status ? "" : status.error().message);
  }
  for (const std::string &message : messages)
    if (message != messages[0])
      return "differently";
  return messages[0];
}

std::string verdict(const Mesh &mesh, const std::vector<Flip> &flips) {
  return verdictOf(model(mesh), flips);
}

TEST(ReplicaCheck, IsContentWithEqualReplicas) {
  EXPECT_EQ(verdict({{"dp", 2}}, {}), "");
  EXPECT_EQ(verdict({{"dp", 2}, {"tp", 2}}, {}), "");
}

TEST(ReplicaCheck, NamesTheRankThatDiffersFromMost) {
  EXPECT_EQ(verdict({{"dp", 5}}, {{3, kWhole, 399}}),
            "step 7: replicas of 'whole' differ: rank 3 has other values than most");
  EXPECT_EQ(verdict({{"dp", 5}}, {{0, kLast, 0}}),
            "step 7: replicas of 'last' differ: rank 0 has other values than most");
}

/// Of two nobody can say which is right.
TEST(ReplicaCheck, NamesBothOfTwo) {
  EXPECT_EQ(verdict({{"dp", 2}}, {{0, kLast, 3}}),
            "step 7: replicas of 'last' differ: rank 0, rank 1 are not "
            "what most are, or agree with nobody");
}

TEST(ReplicaCheck, NamesTheFirstStateAndAllWhoDifferInIt) {
  EXPECT_THAT(verdict({{"dp", 5}}, {{4, kLast, 0}, {2, kColumns, 9}, {1, kColumns, 9}}),
              HasSubstr("'columns' differ: rank 1, rank 2 are not"));
}

/// Ranks 0 and 2 have the left columns, 1 and 3 the right ones.
TEST(ReplicaCheck, ComparesEachPartWithItsOwnReplicas) {
  EXPECT_THAT(verdict({{"dp", 2}, {"tp", 2}}, {{3, kColumns, 0}}),
              HasSubstr("'columns' differ: rank 1, rank 3 are not"));
  EXPECT_EQ(verdict({{"dp", 2}, {"tp", 2}}, {{1, kColumns, 5}, {3, kColumns, 5}}), "")
      << "parts may differ from other parts";
}

/// A master that ranks along dp hold together has replicas along tp alone.
TEST(ReplicaCheck, KnowsWhoHoldsWhatOfABucket) {
  EXPECT_EQ(verdict({{"dp", 4}}, {{2, kMaster, 1}}), "") << "nobody else has it";
  EXPECT_THAT(verdict({{"dp", 2}, {"tp", 2}}, {{2, kMaster, 1}}),
              HasSubstr("'whole.master' differ: rank 2, rank 3 are not"));
}

TEST(ReplicaCheck, LeavesMomentsAlone) { EXPECT_EQ(verdict({{"dp", 4}}, {{1, kMoment, 0}}), ""); }

TEST(ReplicaCheck, SaysHowMuchThereIsToCompare) {
  uint64_t bytes = 0;
  check(model({{"dp", 2}}), {}, &bytes);
  EXPECT_EQ(bytes, 4u * (100 + 24 + 5)); // without the master
  check(model({{"dp", 2}, {"tp", 2}}), {}, &bytes);
  EXPECT_EQ(bytes, 4u * (100 + 12 + 5 + 50));
}

//===- Stages ----------------------------------------------------------------------===//

/// On each of two stages "tied" [8], which both share, and "own0" [50] or "own1" [60].
Program stages(uint32_t dp) {
  ProgramBuilder b;
  for (uint32_t stage = 0; stage < 2; ++stage) {
    if (stage > 0)
      b.addStage();
    b.state("tied", {8});
    b.state("own" + std::to_string(stage), {50 + 10 * stage});
    b.segment();
    b.program.stages[stage].schedule = {{stage, 0, 1, Gradients::Set, true}};
  }
  b.program.mesh = {{"pp", 2}, {"dp", dp}};
  b.program.stageAxes = {0};
  b.program.world = 2 * dp;
  return b.program;
}

constexpr size_t kTied0 = 0, kOwn0 = 1, kTied1 = 2, kOwn1 = 3;

TEST(ReplicaCheck, ComparesWithinStages) {
  EXPECT_EQ(verdictOf(stages(2), {}), "");
  EXPECT_THAT(verdictOf(stages(2), {{3, kOwn1, 239}}), HasSubstr("'own1' differ: rank 2, rank 3 are not"));
  EXPECT_THAT(verdictOf(stages(3), {{1, kOwn0, 0}}), HasSubstr("'own0' differ: rank 1 has other values"));
  EXPECT_EQ(verdictOf(stages(1), {{0, kOwn0, 0}, {1, kOwn1, 0}}), "") << "nobody else has them";
}

TEST(ReplicaCheck, ComparesWhatStagesShare) {
  EXPECT_THAT(verdictOf(stages(2), {{2, kTied1, 3}}),
              HasSubstr("'tied' differ: rank 2 has other values than most"));
  EXPECT_THAT(verdictOf(stages(1), {{0, kTied0, 31}}), HasSubstr("'tied' differ: rank 0, rank 1 are not"));
}

} // namespace
} // namespace ds::rt
