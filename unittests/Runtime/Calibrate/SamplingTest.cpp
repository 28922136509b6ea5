//===- SamplingTest.cpp - Medians, lines and the file of a calibration ------------===//
//
// No real time passes: clocks are lists.
//
//===---------------------------------------------------------------------------===//
#include "Calibrate/Sampling.h"
#include "Calibrate/Context.h"
#include "Calibrate/Figures.h"
#include "Calibrate/Products.h"

#include "ds/Config/Cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::rt;

namespace {

/// A clock by which run i takes durations[i] nanoseconds, the last one from then on.
class FakeClock {
public:
  explicit FakeClock(std::vector<int64_t> durations) : durations(std::move(durations)) {}
  CalibrationClock clock() {
    return [this] { return now; };
  }
  std::function<Status(uint32_t)> body() {
    return [this](uint32_t run) {
      runs.push_back(run);
      now += durations[std::min(next++, durations.size() - 1)];
      return Status();
    };
  }
  std::vector<uint32_t> runs;

private:
  std::vector<int64_t> durations;
  size_t next = 0;
  int64_t now = 1000;
};

TEST(Sampling, TheMedianIgnoresWhatOthersDisturb) {
  const Sample sample = summarize({1, 50, 1.1, 0.9, 1});
  EXPECT_DOUBLE_EQ(sample.seconds, 1);
  EXPECT_NEAR(sample.spread, 0.1, 1e-12); // quartiles 1 and 1.1
  EXPECT_EQ(sample.count, 5u);
  EXPECT_DOUBLE_EQ(summarize({1, 3}).seconds, 2); // between the middle two
  EXPECT_DOUBLE_EQ(summarize({4}).spread, 0);
}

TEST(Sampling, WarmUpsAreRunButNotMeasured) {
  FakeClock fake({900000, 800000, 2000, 2000, 2000});
  Result<Sample> sample = measureRepeatedly(fake.body(), {2, 3, 3, 1, {}}, fake.clock());
  ASSERT_TRUE(sample);
  EXPECT_DOUBLE_EQ(sample->seconds, 2e-6);
  EXPECT_THAT(fake.runs, testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(Sampling, TheBudgetEndsMeasuringButNeverBelowTheLeast) {
  FakeClock slow({1000000000});
  EXPECT_EQ(measureRepeatedly(slow.body(), {0, 3, 64, 0.5, {}}, slow.clock())->count, 3u);
  FakeClock quick({1000});
  EXPECT_EQ(measureRepeatedly(quick.body(), {0, 3, 64, 10e-6, {}}, quick.clock())->count, 10u);
  FakeClock many({1});
  EXPECT_EQ(measureRepeatedly(many.body(), {0, 3, 64, 1, {}}, many.clock())->count, 64u);
}

TEST(Sampling, WhatRunsBeforeIsNotMeasured) {
  FakeClock fake({500, 7});
  const std::function<Status(uint32_t)> body = fake.body();
  SamplingOptions options{0, 2, 2, 1, [&] { (void)body(99); }};
  FakeClock measured({300});
  EXPECT_DOUBLE_EQ(measureRepeatedly(measured.body(), options, measured.clock())->seconds, 300e-9);
  EXPECT_THAT(fake.runs, testing::ElementsAre(99, 99));
}

TEST(Sampling, AClockThatStandsOrRunsBackwardsIsRefused) {
  for (const int64_t step : {0, -5}) {
    FakeClock fake({step});
    Result<Sample> sample = measureRepeatedly(fake.body(), {0, 3, 3, 1, {}}, fake.clock());
    ASSERT_FALSE(sample);
    EXPECT_EQ(sample.error().code, ExitCode::Internal);
    EXPECT_THAT(sample.error().message, testing::HasSubstr("clock"));
  }
}

TEST(Sampling, AFailureOfTheBodyEndsMeasuring) {
  int runs = 0;
  const auto body = [&](uint32_t) {
    return ++runs == 2 ? Status(Error{ExitCode::Device, "gone", ""}) : Status();
  };
  FakeClock fake({1});
  Result<Sample> sample = measureRepeatedly(body, {1, 3, 3, 1, {}}, fake.clock());
  ASSERT_FALSE(sample);
  EXPECT_EQ(sample.error().message, "gone");
  EXPECT_EQ(runs, 2);
}

TEST(FitLine, FindsLatencyAndRateThroughABadPoint) {
  // 5 us and 1e9 bytes/s; the third measurement was disturbed.
  const Line line = fitLine({{1e3, 6e-6}, {1e4, 15e-6}, {1e5, 900e-6}, {1e6, 1005e-6}, {1e7, 10005e-6}});
  EXPECT_NEAR(line.fixed, 5e-6, 0.1e-6);
  EXPECT_NEAR(line.rate, 1e9, 1e7);
}

TEST(FitLine, TimeThatDoesNotRiseHasNoRateAndNothingIsNegative) {
  EXPECT_EQ(fitLine({{1, 3e-6}, {100, 3e-6}}).rate, 0);
  EXPECT_DOUBLE_EQ(fitLine({{1, 3e-6}, {100, 3e-6}}).fixed, 3e-6);
  EXPECT_EQ(fitLine({{1e3, 1e-6}, {1e6, 2e-3}}).fixed, 0); // the line crosses the axis below 0
}

TEST(Sampling, ALongCalibrationAsksLess) {
  Calibration calibration;
  const SamplingOptions first = calibration.sampling();
  calibration.elapsed = 41;
  const SamplingOptions later = calibration.sampling();
  EXPECT_GT(first.least, later.least);
  EXPECT_GT(first.budgetSeconds, 2 * later.budgetSeconds);
  EXPECT_GE(later.least, 1u);
}

TEST(Products, ThatAreSlowerThanSmallerOnesAreMeasuredAgain) {
  using testing::ElementsAre;
  const std::vector<std::vector<double>> grid = {
      {16, 16, 16, 10, 10, 10}, {16, 16, 64, 20, 20, 14}, {16, 64, 16, 20, 7, 20}, {16, 64, 64, 30, 30, 15}};
  // The third has a form that falls from 10 to 7. 15 is more than three quarters of 20 by one side, and
  // of 14.
  EXPECT_THAT(findSlowShapes(grid), ElementsAre(2));
  std::vector<std::vector<double>> even = grid;
  even[2][4] = even[3][5] = 20;
  EXPECT_THAT(findSlowShapes(even), testing::IsEmpty());
  even[3][3] = 14; // of 20 by either side
  EXPECT_THAT(findSlowShapes(even), ElementsAre(3));
  even[3][3] = 30;
  even[0][4] = 0.5; // takes 8192 units of time, the second a quarter of them
  EXPECT_THAT(findSlowShapes(even), ElementsAre(0));
}

TEST(Figures, AreWrittenAsACommentedTreeThatTheReaderTakes) {
  Figures figures;
  figures.text("name", "a \"quoted\" \\ name", "");
  figures.text("base", "a100-80g", "where the rest comes from");
  figures.number("device.launch_seconds", 1.23456e-6, "measured today");
  figures.rows("device.matmul_flops.fp32", {{64, 1e12}, {512, 2e12}}, "measured too");
  figures.count("host.cores", 3, "");
  const std::string text = figures.write({"a heading"});
  EXPECT_EQ(text, "// a heading\n"
                  "{\n"
                  "  \"name\": \"a \\\"quoted\\\" \\\\ name\",\n"
                  "  // where the rest comes from\n"
                  "  \"base\": \"a100-80g\",\n"
                  "  \"device\": {\n"
                  "    // measured today\n"
                  "    \"launch_seconds\": 1.235e-06,\n"
                  "    \"matmul_flops\": {\n"
                  "      // measured too\n"
                  "      \"fp32\": [\n"
                  "        [64, 1e+12],\n"
                  "        [512, 2e+12]\n"
                  "      ]\n"
                  "    }\n"
                  "  },\n"
                  "  \"host\": {\n"
                  "    \"cores\": 3\n"
                  "  }\n"
                  "}\n");
  Result<config::Cluster> cluster = config::readClusterText(text, "c");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->name, "a \"quoted\" \\ name");
  EXPECT_EQ(cluster->device.launchSeconds, 1.235e-6);
  EXPECT_EQ(cluster->device.matmulFlops[config::DType::F32].at(512), 2e12);
  EXPECT_EQ(cluster->host.cores, 3);
}

} // namespace
