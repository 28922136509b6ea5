//===- PlanDifferenceTest.cpp - How plans differ, and why one does not fit ----------===//

#include "PlanSamples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace ds::report;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PlanReport, EqualPlansHaveNoDifference) {
  EXPECT_THAT(diffPlans(sample(), sample(), "a", "b"), ::testing::StartsWith("no difference: all "));
}

TEST(PlanReport, DifferenceHasBothValuesBytesAndPercent) {
  PlanReport before = sample(), after = sample();
  after.ranks[0].peakBytes = after.ranks[0].deviceArena = 1500 * kMiB;
  after.ranks[0].peakAt = "gelu, h.3";
  after.ranks[0].byLayer.pop_back();
  std::string text = diffPlans(before, after, "a.json", "b.json");
  EXPECT_THAT(text, ::testing::StartsWith("- a.json\n+ b.json\n\nrank 0\n"));
  // 500 MiB less of 2000: -524,288,000 bytes, -25 %.
  EXPECT_THAT(text, HasSubstr("  peak                                    2.0 GiB      1.5 GiB"
                              "       -524,288,000 bytes    -25.00 %\n"));
  EXPECT_THAT(text, HasSubstr("  peak at: cross_entropy backward, lm_head -> gelu, h.3\n"));
  EXPECT_THAT(text, HasSubstr("  layer: lm_head                        400.0 MiB            - "));
  EXPECT_THAT(text, Not(HasSubstr("lower bound")));
  EXPECT_THAT(text, HasSubstr(" figures are equal\n"));
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
}

TEST(PlanReport, WithoutALimitEverythingFits) {
  PlanReport report = sample();
  report.memoryLimit = 0;
  EXPECT_TRUE(report.fits());
  EXPECT_THAT(printPlanText(report), ::testing::EndsWith("\nneeds: 2.0 GiB (no limit is known)\n"));
}
