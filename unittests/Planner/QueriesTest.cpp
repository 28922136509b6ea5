//===- QueriesTest.cpp - What other plans of a program would take and cost ----------===//
#include "PlannedMachine.h"
#include "ds/Planner/PlanSummary.h"
#include "ds/Planner/ProgramChanges.h"
#include "ds/Planner/ProgramQueries.h"
#include "ds/Planner/QueryText.h"

#include "gmock/gmock.h"

using namespace ds::planner;
using ds::report::PlanChoice;
using ds::report::PlanReport;
using testing::HasSubstr;

namespace {

class Queries : public testing::Test {
protected:
  /// The report of the present plan, with the answers.
  PlanReport ask() {
    PlanReport report = machine.report(machine.settings);
    ds::Status status = addQueries(machine.settings, machine.config, machine.planner(), nullptr, report);
    EXPECT_TRUE(status) << status.error().message;
    return report;
  }

  PlannedMachine machine;
};

// The peak is 100 + 7 * samples: 128 samples take 996 bytes, one more takes 1003.
TEST_F(Queries, FindTheLargestMicroBatchExactly) {
  machine.settings.maxBatch = true;
  EXPECT_EQ(ask().maxBatch, 128);
  EXPECT_LE(machine.plans, 12); // each is a compilation
  for (int64_t limit : {107, 113, 114, 500, 12345, 99999}) {
    machine.limit = limit;
    EXPECT_EQ(ask().maxBatch, (limit - 100) / 7) << limit;
  }
}

TEST_F(Queries, NoMicroBatchFitsWhereStatesDoNot) {
  machine.settings.maxBatch = true;
  machine.limit = 101;
  PlanReport report = ask();
  EXPECT_EQ(report.maxBatch, 0);
  EXPECT_FALSE(someFit(report));
}

TEST_F(Queries, TellWhereTheModelIsTheBound) {
  machine.settings.maxBatch = true;
  machine.mostSamples = 20;
  PlanReport report = ask();
  EXPECT_EQ(report.maxBatch, 20);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], HasSubstr("bounded by the model, not by memory: the model takes at most 20"));
}

// 96 = 3 * 32: lengths go in steps of 32. The peak is 100 + 28 * length / 96.
TEST_F(Queries, FindTheLongestSequenceInStepsOfItsPowerOfTwo) {
  machine.settings.maxSeq = true;
  EXPECT_EQ(ask().maxSeq, 3072); // 996 bytes; 3104 would take 1005
}

TEST_F(Queries, RefuseSequencesWhereInputsHaveNone) {
  machine.settings.maxSeq = true;
  PlanReport report = machine.report(machine.settings);
  machine.settings.inputs = {"x=4xi64"};
  ds::Status status = addQueries(machine.settings, machine.config, machine.planner(), nullptr, report);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ds::ExitCode::Invalid);
  EXPECT_THAT(status.error().message, HasSubstr("no --input has a second dimension"));
}

// Stages 0 to 3 times micro-batches 1, 2, 4, 8 and 16 of the 16 samples that a rank has in a step.
TEST_F(Queries, TabulateStagesAndMicroBatches) {
  machine.settings.whatIf = true;
  PlanReport report = ask();
  ASSERT_EQ(report.whatIf.size(), 20u);
  EXPECT_EQ(machine.plans, 19); // the present one is there already
  int best = 0;
  for (const PlanChoice &choice : report.whatIf) {
    EXPECT_EQ(choice.microBatch * choice.accumulation, 16);
    best += choice.best;
  }
  EXPECT_EQ(best, 1);
  const PlanChoice &fastest = *std::find_if(report.whatIf.begin(), report.whatIf.end(),
                                            [](const PlanChoice &choice) { return choice.best; });
  EXPECT_EQ(fastest.zeroStage, 0); // a step takes as long as it has micro-steps, times its stage and one
  EXPECT_EQ(fastest.microBatch, 16);
}

TEST_F(Queries, LeaveOutOfTheTableWhatTheModelRefuses) {
  machine.settings.whatIf = true;
  machine.mostSamples = 4;
  PlanReport report = ask();
  EXPECT_EQ(report.whatIf.size(), 12u);
  EXPECT_EQ(report.notes.size(), 8u);
  EXPECT_THAT(report.notes[0], HasSubstr("left out of the table: train_micro_batch_size_per_gpu = 8"));
}

TEST_F(Queries, NothingIsMarkedWhereNothingFits) {
  machine.settings.whatIf = true;
  machine.limit = 1;
  PlanReport report = ask();
  for (const PlanChoice &choice : report.whatIf)
    EXPECT_FALSE(choice.best || choice.fits);
  EXPECT_THAT(printWhatIf(report), HasSubstr("none of them fits"));
}

// 100 / (1 + stage) + 7 * micro: at 90 bytes the present plan (128) does not fit, and stage 1 takes 78.
TEST_F(Queries, NameTheLeastChangeThatFits) {
  machine.limit = 90;
  std::optional<PlanChoice> change = changeOfProgram(machine.settings, machine.config, machine.planner());
  ASSERT_TRUE(change && change->fits);
  EXPECT_EQ(change->change, "zero_optimization.stage = 1");
  EXPECT_EQ(machine.plans, 1); // and no other
}

TEST_F(Queries, NameTwoChangesAtOnceWhereOneIsNotEnough) {
  machine.limit = 33; // stage 3 and one sample take 25 + 7
  std::optional<PlanChoice> change = changeOfProgram(machine.settings, machine.config, machine.planner());
  ASSERT_TRUE(change);
  EXPECT_EQ(change->change, "zero_optimization.stage = 3 and train_micro_batch_size_per_gpu = 1");
  EXPECT_LE(machine.plans, 8);
}

// At stage 1 states take 50 bytes of 78, half of them the optimizer's.
TEST_F(Queries, NameStatesElsewhereWhereThereIsSuchAPlace) {
  machine.config.zero.stage = 1;
  machine.settings.input = "model.mlir"; // whose micro-batch stays
  machine.limit = 60;
  auto changeWith = [&](const Elsewhere &elsewhere) {
    auto isOfStage = [](const Proposal &proposal) {
      return proposal.choice.zeroStage > 1 ? std::nullopt : std::optional(1.0);
    };
    return changeOfProgram(machine.settings, machine.config, machine.planner(), elsewhere, isOfStage);
  };
  std::optional<PlanChoice> onHost = changeWith({.host = true});
  ASSERT_TRUE(onHost);
  EXPECT_EQ(onHost->change, "zero_optimization.offload_optimizer.device = \"cpu\"");
  EXPECT_EQ(onHost->optimizerHome, "cpu");
  EXPECT_EQ(onHost->deviceBytes, 53);
  std::optional<PlanChoice> without = changeWith({});
  EXPECT_TRUE(!without || without->optimizerHome == "device");
  // Where nothing else suffices all states leave together.
  machine.limit = 41;
  std::optional<PlanChoice> all =
      changeOfProgram(machine.settings, machine.config, machine.planner(), {.host = true});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->change, "zero_optimization.stage = 3 and "
                         "zero_optimization.offload_optimizer.device = \"cpu\" and "
                         "zero_optimization.offload_param.device = \"cpu\"");
}

TEST_F(Queries, NameNoChangeThatDoesNotFit) {
  machine.limit = 10;
  EXPECT_FALSE(changeOfProgram(machine.settings, machine.config, machine.planner()));
}

// Rules hold stages below 2 for too large, and the higher for the faster: the fastest is planned first.
TEST_F(Queries, PlanFirstWhatRulesHoldForTheFastest) {
  machine.limit = 90;
  auto expect = [](const Proposal &proposal) {
    const auto stage = static_cast<double>(proposal.choice.zeroStage);
    return stage > 1 ? std::optional(-stage) : std::nullopt;
  };
  std::optional<PlanChoice> change =
      changeOfProgram(machine.settings, machine.config, machine.planner(), {}, expect);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->change, "zero_optimization.stage = 3");
  EXPECT_EQ(machine.plans, 1);
  // The others follow where it does not fit.
  machine.limit = 1;
  EXPECT_FALSE(changeOfProgram(machine.settings, machine.config, machine.planner(), {}, expect));
  EXPECT_EQ(machine.plans, 1 + 3); // of stages 2 and 3, and of stage 3 with one sample
}

TEST_F(Queries, NameSmallerPlansTheSmallestFirst) {
  std::vector<PlanChoice> smaller =
      smallerPlansOfProgram(machine.settings, machine.config, machine.planner(), 128);
  ASSERT_EQ(smaller.size(), 3u);
  for (size_t index = 0; index < smaller.size(); ++index)
    EXPECT_GE(smaller[index].deviceBytes, index > 0 ? smaller[index - 1].deviceBytes : 0);
  EXPECT_LT(smaller.back().deviceBytes, 128);
}

TEST_F(Queries, ShapesOfMlirStay) {
  machine.settings.input = "model.mlir";
  machine.settings.whatIf = true;
  EXPECT_EQ(ask().whatIf.size(), 4u); // stages alone
}

TEST(HostsHold, WhatTheRanksOfANodeKeepThere) {
  PlanReport report;
  report.world = 8;
  report.memoryLimit = 100;
  report.ranks.resize(1);
  report.ranks[0].deviceArena = 90;
  ds::config::Cluster cluster;
  cluster.devicesPerNode = 4;
  cluster.host.memoryBytes = 50;
  EXPECT_TRUE(mlir::ds::hostsHold(report, cluster, /*isShared=*/true)); // nothing is kept there
  report.ranks[0].hostArena = 11;
  EXPECT_FALSE(mlir::ds::hostsHold(report, cluster, /*isShared=*/true)); // 101 of 100
  EXPECT_TRUE(mlir::ds::hostsHold(report, cluster, /*isShared=*/false)); // 44 of 50
  report.ranks[0].hostArena = 13;
  EXPECT_FALSE(mlir::ds::hostsHold(report, cluster, /*isShared=*/false)); // 52 of 50
  report.world = 2;
  EXPECT_TRUE(mlir::ds::hostsHold(report, cluster, /*isShared=*/false)); // two ranks fill no node
  cluster.host.memoryBytes = 0;
  report.world = 8;
  EXPECT_TRUE(mlir::ds::hostsHold(report, cluster, /*isShared=*/false)); // nothing is known
  for (bool isShared : {false, true}) {                                  // a limit of its own
    report.hostLimit = 13;
    EXPECT_TRUE(mlir::ds::hostsHold(report, cluster, isShared));
    report.hostLimit = 12;
    EXPECT_FALSE(mlir::ds::hostsHold(report, cluster, isShared));
  }
}

} // namespace
