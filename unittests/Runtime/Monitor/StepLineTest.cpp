//===- StepLineTest.cpp - What a run prints of a step --------------------------------===//

#include "Training/StepLine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

using namespace ds::rt;
using testing::HasSubstr;
using testing::Not;

namespace {

StepRecord record(uint64_t step, double loss, double seconds) {
  StepRecord made;
  made.step = step;
  made.loss = loss;
  made.stepSeconds = seconds;
  made.samplesPerSecond = 8 / seconds;
  return made;
}

TEST(StepLineTest, FieldsStandBelowOneAnother) {
  StepLine line(100, 0, {}, false);
  const std::string wide = line.spell(record(9, 0.123456, 0.01)), narrow = line.spell(record(10, 2, 0.5));
  EXPECT_THAT(wide, testing::StartsWith("step 9/100  loss 0.123456  "));
  EXPECT_THAT(narrow, testing::StartsWith("step 10/100  loss 2         16.0 samples/s   memory"));
  EXPECT_EQ(line.spell(record(11, 0.123456, 0.01)).find("memory"), narrow.find("memory"));
}

/// The first step warms up: 90 steps of 2 s, whatever it took.
TEST(StepLineTest, TheTimeThatIsLeftIsTheMeanOfAllButTheFirst) {
  StepLine line(100, 0, {}, false);
  EXPECT_THAT(line.spell(record(8, 1, 500)), Not(HasSubstr("left")));
  EXPECT_THAT(line.spell(record(9, 1, 1)), HasSubstr("  1:31 left")); // 91 x 1 s
  EXPECT_THAT(line.spell(record(10, 1, 3)), HasSubstr("  3:00 left"));
  EXPECT_THAT(line.spell(record(100, 1, 3)), Not(HasSubstr("left")));
}

TEST(StepLineTest, EvaluationsHaveTheirNames) {
  StepRecord made = record(1, 1, 1);
  made.evaluations = {{"", 3.25}};
  EXPECT_THAT(StepLine(9, 0, {}, false).spell(made), testing::EndsWith("  eval_loss 3.25"));
  made.evaluations = {{"valid", 3.25}, {"code", 2.5}};
  EXPECT_THAT(StepLine(9, 0, {}, false).spell(made),
              testing::EndsWith("  eval_loss 3.25 of valid, 2.5 of code"));
}

TEST(StepLineTest, Durations) {
  EXPECT_EQ(durationText(9.4), "0:09");
  EXPECT_EQ(durationText(3723), "1:02:03");
  EXPECT_EQ(durationText(2 * 86400 + 3723), "2d 01:02:03");
  EXPECT_EQ(durationText(NAN), "?");
  EXPECT_EQ(durationText(INFINITY), "?");
}

/// 4e12 operations in 2 s, 1e12 of them recomputed, of a device of 8e12: 37.5 % for what the model needs.
TEST(StepLineTest, UtilisationCountsWhatTheModelNeeds) {
  Predicted predicted;
  predicted.flopsPerStep = 4e12;
  EXPECT_THAT(StepLine(9, 0, predicted, false).spell(record(1, 1, 2)), HasSubstr("  2 TFLOP/s  memory"));
  predicted.recomputeFlops = 1e12;
  predicted.peakFlopsPerSecond = 4e12;
  EXPECT_THAT(StepLine(9, 0, predicted, false).spell(record(1, 1, 2)), HasSubstr("  2 TFLOP/s  MFU 37.5 %"));
  const auto throughput = throughputOf(predicted, 2);
  EXPECT_EQ(throughput->utilisation, 0.375);
  EXPECT_EQ(throughput->withRecompute, 0.5);
  EXPECT_FALSE(throughputOf({}, 2)) << "no operations are known";
}

TEST(StepLineTest, ColourOnlyWhereItIsWanted) {
  StepRecord skipped = record(1, 1, 1);
  skipped.skipped = true;
  EXPECT_THAT(StepLine(2, 0, {}, false).spell(skipped), Not(HasSubstr("\033")));
  EXPECT_THAT(StepLine(2, 0, {}, true).spell(skipped), HasSubstr("\033[33mskipped\033[0m"));
}

TEST(StepLineTest, ColourOnTerminalsThatAreNoLauncher) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(master, 0);
  ASSERT_EQ(::grantpt(master) + ::unlockpt(master), 0);
  const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ::setenv("TERM", "xterm", 1);
  for (const char *name : {"NO_COLOR", "PMIX_RANK"})
    ::unsetenv(name);
  EXPECT_TRUE(mayColour(terminal));
  EXPECT_FALSE(mayColour(-1)) << "no terminal";
  const std::pair<const char *, const char *> without[] = {{"NO_COLOR", "1"}, {"PMIX_RANK", "0"}};
  for (auto [name, value] : without) {
    ::setenv(name, value, 1);
    EXPECT_FALSE(mayColour(terminal)) << name;
    ::unsetenv(name);
  }
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(mayColour(terminal)) << "dumb";
  ::close(terminal);
  ::close(master);
}

/// Which of steps 1, 2, ... are printed, when each takes `seconds`.
std::vector<uint64_t> printedOf(PrintedSteps printed, uint64_t steps, double seconds) {
  std::vector<uint64_t> numbers;
  for (uint64_t step = 1; step <= steps; ++step)
    if (printed.isNext(step, 1000 + static_cast<double>(step) * seconds, /*forced=*/step == steps))
      numbers.push_back(step);
  return numbers;
}

/// 2000 is what many configurations have: a run of 1000 steps would say nothing before its last one.
TEST(PrintedStepsTest, TheFirstOnesAndOneAMinute) {
  EXPECT_THAT(printedOf({std::nullopt, 2000}, 2500, 0.01), testing::ElementsAre(1, 2, 3, 2000, 2500));
  EXPECT_THAT(printedOf({std::nullopt, 2000}, 10, 30), testing::ElementsAre(1, 2, 3, 5, 7, 9, 10));
  EXPECT_THAT(printedOf({std::nullopt, 5}, 10, 25), testing::ElementsAre(1, 2, 3, 5, 8, 10))
      << "60 seconds after the last one, whatever it was printed for";
  EXPECT_THAT(printedOf({std::nullopt, 0}, 4, 0.01), testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(printedOf({std::nullopt, 1}, 4, 0.01), testing::ElementsAre(1, 2, 3, 4));
}

TEST(PrintedStepsTest, TheCommandLineIsExact) {
  EXPECT_THAT(printedOf({4, 2000}, 10, 600), testing::ElementsAre(4, 8, 10));
  EXPECT_THAT(printedOf({1, 2000}, 3, 0.01), testing::ElementsAre(1, 2, 3));
}

} // namespace
