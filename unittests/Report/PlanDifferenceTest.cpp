//===- PlanDifferenceTest.cpp - How plans differ, and why one does not fit ----------===//

#include "PlanSamples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace ds::report;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PlanReport, EqualPlansHaveNoDifference) {
  for (const PlanReport &report : {sample(), twoGroups()}) {
    std::string text = diffPlans(report, report, "a", "b");
    EXPECT_THAT(text, ::testing::StartsWith("no difference: all "));
    EXPECT_THAT(text, ::testing::EndsWith(" figures are equal\n"));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  }
}

TEST(PlanReport, DifferenceHasBothValuesBytesAndPercent) {
  PlanReport before = sample(), after = sample();
  after.ranks[0].peakBytes = after.ranks[0].deviceArena = 1500 * kMiB;
  after.ranks[0].peakAt = "gelu, h.3";
  after.ranks[0].byLayer.pop_back();
  std::string text = diffPlans(before, after, "a.json", "b.json");
  EXPECT_THAT(text,
              ::testing::StartsWith("- a.json\n+ b.json\n\ninputs\n  none that both plans name\n\nrank 0\n"));
  // 500 MiB less of 2000: -524,288,000 bytes, -25 %.
  EXPECT_THAT(text, HasSubstr("  peak                                    2.0 GiB      1.5 GiB"
                              "       -524,288,000 bytes    -25.00 %\n"));
  EXPECT_THAT(text, HasSubstr("  peak at: cross_entropy backward, lm_head -> gelu, h.3\n"));
  EXPECT_THAT(text, HasSubstr("  layer: lm_head                        400.0 MiB            - "));
  EXPECT_THAT(text, Not(HasSubstr("lower bound")));
  EXPECT_THAT(text, HasSubstr(" figures are equal\n"));
}

/// Whether `parts` stand in `text` in this order.
static ::testing::AssertionResult areInOrder(const std::string &text, const std::vector<std::string> &parts) {
  size_t at = 0;
  for (const std::string &part : parts) {
    at = text.find(part, at);
    if (at == std::string::npos)
      return ::testing::AssertionFailure() << "no \"" << part << "\" in its place in\n" << text;
    at += part.size();
  }
  return ::testing::AssertionSuccess();
}

TEST(PlanDiff, CausesComeBeforeConsequences) {
  PlanReport before = sample(), after = sample();
  after.model = "large.pt", after.parameters *= 2, after.target = "dgx-h100", after.memoryLimit = 1000 * kMiB;
  after.world = 4, after.mesh.dp = 4, after.ranks[0].lastRank = 3;
  after.inputs = {{"train_micro_batch_size_per_gpu", "8"},
                  {"precision", "\"fp32\""},
                  {"optimizer.params.lr", "0.001"},
                  {"loss_chunks", "4"}};
  EXPECT_TRUE(
      areInOrder(diffPlans(before, after, "a", "b"),
                 {"- a\n+ b\n\ninputs\n  model: gpt.pt -> large.pt\n  parameters: 124,439,808 -> "
                  "248,879,616\n  target: cpu -> dgx-h100\n"
                  "  memory limit: 16.0 GiB (17,179,869,184 bytes) -> 1000.0 MiB (1,048,576,000 bytes)\n"
                  "  ranks: 1 -> 4\n  dp: 1 -> 4\n  train_micro_batch_size_per_gpu: 4 -> 8\n"
                  "  precision: bf16 -> fp32\n  loss_chunks: - -> 4\n"
                  "  zero_optimization.offload_param: {\"device\":\"cpu\"} -> -\n\n",
                  "plan\n  fits: yes -> no\n\n", "rank 0 -> ranks 0 to 3\n  the same\n\n"}));
}

TEST(PlanDiff, SaysWhatIsTrained) {
  PlanReport before = sample(), after = sample();
  after.trainedParameters = 4718592;
  EXPECT_TRUE(
      areInOrder(diffPlans(before, after, "a", "b"), {"inputs\n  of them trained: all -> 4,718,592\n"}));
}

TEST(PlanDiff, SaysWhatATokenMeets) {
  PlanReport before = sample(), after = sample();
  after.activeParameters = 62914560;
  EXPECT_TRUE(areInOrder(diffPlans(before, after, "a", "b"),
                         {"inputs\n  of them active for a token: - -> 62,914,560\n"}));
}

TEST(PlanDiff, LargestChangesComeFirst) {
  PlanReport before = sample(), after = sample();
  before.predicted.stepSeconds = 0.5, after.predicted.stepSeconds = 0.75;
  before.predicted.terms = {{"forward", 0.1, ""}, {"backward", 0.2, ""}, {"update", 0.2, ""}};
  after.predicted.terms = {{"forward", 0.2, ""}, {"backward", 0.55, ""}};
  before.predicted.communicationBytes = {{"all_gather", kMiB}, {"all_reduce", kMiB}};
  after.predicted.communicationBytes = {{"all_gather", 2 * kMiB}, {"all_reduce", 9 * kMiB}};
  after.ranks[0].atPeak = {475 * kMiB, 51 * kMiB, 949 * kMiB, 449 * kMiB, 0, 76 * kMiB};
  after.ranks[0].peakBytes -= kMiB;
  // 51 MiB less beats 50 MiB more; 0.35 s beats 0.2 s and 0.1 s.
  EXPECT_TRUE(areInOrder(diffPlans(before, after, "a", "b"),
                         {"rank 0\n  peak ", "\n  at peak: activations ", "\n  at peak: gradients ",
                          "\n  at peak: parameters ", "\nstep\n  step seconds ", "\n  term: backward ",
                          "\n  term: update ", "\n  term: forward ", "\ncommunication\n  all_reduce ",
                          "\n  all_gather "}));
}

TEST(PlanDiff, AnOldPlanDiffersInNothingThatItDoesNotSay) {
  PlanReport before = sample(), after = sample();
  before.inputs.clear();
  EXPECT_THAT(diffPlans(before, after, "a", "b"), ::testing::StartsWith("no difference: all "));
  after.target = "h200";
  std::string text = diffPlans(before, after, "a", "b");
  EXPECT_THAT(text, HasSubstr("\ninputs\n  target: cpu -> h200\n"
                              "  a does not say its configuration: an older ds-opt wrote it\n\n"));
  EXPECT_THAT(text, Not(HasSubstr("b does not say")));
  EXPECT_THAT(text, Not(HasSubstr("precision")));
}

/// A plan of `stages` stages of four ranks, of which each keeps less by 100 MiB than the one before.
static PlanReport pipeline(uint32_t stages) {
  PlanReport report = sample();
  report.world = 4 * stages, report.mesh = {4, 1, stages, 1};
  report.ranks.assign(stages, report.ranks[0]);
  for (uint32_t stage = 0; stage < stages; ++stage) {
    RankPlan &rank = report.ranks[stage];
    rank.stage = stage, rank.firstRank = 4 * stage, rank.lastRank = 4 * stage + 3;
    rank.peakBytes -= 100 * kMiB * stage;
  }
  return report;
}

TEST(PlanDiff, StagesThatChangeAlikeAreShownOnce) {
  PlanReport before = pipeline(4), after = pipeline(4);
  for (RankPlan &rank : after.ranks)
    rank.hostArena = rank.stage == 0 ? 0 : kMiB;
  std::string text = diffPlans(before, after, "a", "b");
  EXPECT_THAT(text, HasSubstr("\nranks 4 to 15 (stages 1 to 3)\n  host arena "));
  EXPECT_EQ(text.find("host arena"), text.rfind("host arena"));
  EXPECT_THAT(text, Not(HasSubstr("ranks 0 to 3")));
}

TEST(PlanDiff, RanksWithoutAPartnerAreNamed) {
  std::string text = diffPlans(pipeline(2), pipeline(3), "a.json", "b.json");
  EXPECT_THAT(text, HasSubstr("\nranks 8 to 11 (stage 2): only in b.json\n  peak "));
  EXPECT_THAT(text, HasSubstr("  at peak: optimizer "));
  EXPECT_THAT(text, Not(HasSubstr("device arena")));
  EXPECT_THAT(text, Not(HasSubstr("ranks 0 to 3")));
  text = diffPlans(pipeline(3), pipeline(2), "a.json", "b.json");
  EXPECT_THAT(text, HasSubstr("\nranks 8 to 11 (stage 2): only in a.json\n  peak "));
  PlanReport empty = pipeline(3);
  empty.ranks[2].peakBytes = 0, empty.ranks[2].atPeak = {};
  EXPECT_THAT(diffPlans(pipeline(2), empty, "a", "b"), HasSubstr("(stage 2): only in b\n  peak "));
}

TEST(PlanDiff, RanksWithOtherNamesAreNamedWhereTheyDoNotDiffer) {
  std::string text = diffPlans(pipeline(1), pipeline(2), "a.json", "b.json");
  EXPECT_THAT(text, HasSubstr("\nranks 0 to 3 -> ranks 0 to 3 (stage 0)\n  the same\n"));
  EXPECT_THAT(text, HasSubstr("\nranks 0 to 3 -> ranks 4 to 7 (stage 1)\n  peak "));
}

TEST(PlanReport, RefusalNamesPeakLimitAndWhatIsLive) {
  PlanReport report = sample();
  report.memoryLimit = 1000 * kMiB;
  ASSERT_FALSE(report.fits());
  ds::Error error = doesNotFit(report);
  EXPECT_EQ(error.code, ds::ExitCode::DoesNotFit);
  EXPECT_THAT(
      error.message,
      HasSubstr(
          "rank 0 needs 2.0 GiB (2,097,152,000 bytes) at cross_entropy backward, lm_head, but the limit "
          "is 1000.0 MiB (1,048,576,000 bytes)\n  the largest values live there:\n"));
  EXPECT_THAT(error.message, HasSubstr("393.0 MiB  activations    logits in lm_head"));
  EXPECT_THAT(error.hint, HasSubstr("optimizer states are 47 % of the peak"));
  report.ranks[0].atPeak = {1, 1, 1, 97, 0, 0};
  EXPECT_THAT(doesNotFit(report).hint, HasSubstr("lower train_micro_batch_size_per_gpu"));
  report.ranks[0].largest.resize(30, {"v", "", 1, Category::Workspace});
  std::string message = doesNotFit(report).message; // ten lines at most
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 11);
}

TEST(PlanReport, RefusalNamesTheHostWhereTheDevicesWouldDo) {
  PlanReport report = sample();
  report.memoryLimit = 4000 * kMiB;
  report.ranks[0].hostArena = 3 * kMiB;
  ASSERT_TRUE(report.fits());
  report.hostsFit = false;
  ASSERT_FALSE(report.fits());
  ds::Error error = doesNotFit(report);
  EXPECT_EQ(error.code, ds::ExitCode::DoesNotFit);
  EXPECT_EQ(error.message,
            "the plan does not fit the host: rank 0 keeps 3.0 MiB (3,145,728 bytes) there, beside "
            "2.0 GiB of the device");
  ds::Result<PlanReport> read = readPlanJson(printPlanJson(report), "plan.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->fits());
  EXPECT_FALSE(read->hostsFit);
  report.hostLimit = 2 * kMiB;
  EXPECT_THAT(doesNotFit(report).message,
              ::testing::EndsWith(", but the limit is 2.0 MiB (2,097,152 bytes)"));
}

TEST(PlanReport, SaysWhatIsOnTheHostAndWhatWaitsForIt) {
  PlanReport report = sample();
  std::string without = printPlanJson(report);
  for (const char *key :
       {"\"host\": {", "exposed_copy", "exposed_to_", "exposed_storage", "host_memory_limit"})
    EXPECT_EQ(without.find(key), std::string::npos) << key;
  report.host = HostUse{3 * kMiB, kMiB};
  report.hostLimit = 4 * kMiB;
  report.predicted.exposedCopySeconds = 0.25;
  report.predicted.exposedToHostSeconds = 0.05;
  report.predicted.exposedToDeviceSeconds = 0.2;
  report.predicted.exposedStorageSeconds = 0.5;
  std::string text = printPlanText(report);
  EXPECT_THAT(text, HasSubstr("of the ranks of a node"));
  EXPECT_THAT(text, HasSubstr("page-locked, each rank"));
  ds::Result<PlanReport> read = readPlanJson(printPlanJson(report), "plan.json");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(read->host);
  EXPECT_EQ(read->host->nodeBytes, 3 * kMiB);
  EXPECT_EQ(read->host->lockedBytes, kMiB);
  EXPECT_EQ(read->hostLimit, 4 * kMiB);
  EXPECT_EQ(read->predicted.exposedCopySeconds, 0.25);
  EXPECT_EQ(read->predicted.exposedToHostSeconds, 0.05);
  EXPECT_EQ(read->predicted.exposedToDeviceSeconds, 0.2);
  EXPECT_EQ(read->predicted.exposedStorageSeconds, 0.5);
}

TEST(PlanReport, SaysWhichDirectoryHasHowMuchOfStorage) {
  PlanReport report = sample();
  EXPECT_EQ(printPlanJson(report).find("nvme_paths"), std::string::npos);
  report.ranks[0].nvmeArena = 3 * kMiB;
  report.ranks[0].nvmePaths = {{"/optimizer", 2 * kMiB}, {"/parameters", kMiB}};
  EXPECT_THAT(printPlanText(report), HasSubstr("  nvme        3.0 MiB  3,145,728 bytes\n"
                                               "              2.0 MiB  2,097,152 bytes in /optimizer\n"
                                               "              1.0 MiB  1,048,576 bytes in /parameters\n"));
  ds::Result<PlanReport> read = readPlanJson(printPlanJson(report), "plan.json");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->ranks[0].nvmePaths.size(), 2u);
  EXPECT_EQ(read->ranks[0].nvmePaths[1].path, "/parameters");
  EXPECT_EQ(read->ranks[0].nvmePaths[1].bytes, kMiB);
  PlanReport other = *read;
  other.ranks[0].nvmePaths = {{"/optimizer", 3 * kMiB}};
  EXPECT_THAT(diffPlans(report, other, "a", "b"), HasSubstr("nvme arena, in /parameters"));
}

TEST(PlanReport, WithoutALimitEverythingFits) {
  PlanReport report = sample();
  report.memoryLimit = 0;
  EXPECT_TRUE(report.fits());
  EXPECT_THAT(printPlanText(report), ::testing::EndsWith("\nneeds: 2.0 GiB (no limit is known)\n"));
}
