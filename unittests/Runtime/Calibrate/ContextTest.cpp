//===- ContextTest.cpp - When a figure is measured again ---------------------------===//
#include "Calibrate/Context.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::rt;

namespace {

/// A calibration on one rank whose measurements are a list: seconds, spread and how often a thread was
/// preempted.
struct Listed {
  struct Attempt {
    double seconds, spread;
    int64_t preempted;
  };
  std::vector<Attempt> attempts;
  size_t next = 0;
  int64_t preempted = 0;
  std::unique_ptr<RankGroup> group = std::move(*connect({}, {}));
  Calibration calibration{.group = group.get(),
                          .clock = [] { return int64_t(0); },
                          .preemptions = [this] { return preempted; },
                          .date = {},
                          .processor = {},
                          .storageDirectory = {},
                          .pool = std::move(*Pool::create(4096)),
                          .figures = {},
                          .worstFigure = {}};

  Result<Sample> run() {
    return calibration.measure("figure", [this]() -> Result<Sample> {
      const Attempt &attempt = attempts[std::min(next++, attempts.size() - 1)];
      preempted += attempt.preempted;
      return Sample{attempt.seconds, attempt.spread, 9};
    });
  }
};

TEST(Calibration, MeasuresACalmMachineOnce) {
  Listed listed{.attempts = {{2, 0.1, 0}, {1, 0.1, 0}}};
  EXPECT_DOUBLE_EQ(listed.run()->seconds, 2);
  EXPECT_EQ(listed.next, 1u);
}

TEST(Calibration, MeasuresAgainWhatScatters) {
  Listed listed{.attempts = {{2, 0.9, 0}, {1, 0.1, 0}}};
  EXPECT_DOUBLE_EQ(listed.run()->seconds, 1);
  EXPECT_EQ(listed.next, 2u);
}

TEST(Calibration, MeasuresAgainWhereAThreadLostItsProcessorThoughAllRunsAreAlike) {
  Listed listed{.attempts = {{500, 0.01, 40}, {600, 0.01, 41}, {1, 0.01, 0}}};
  EXPECT_DOUBLE_EQ(listed.run()->seconds, 1);
  EXPECT_EQ(listed.next, 3u);
}

TEST(Calibration, TakesTheFastestWhereItNeverIsCalm) {
  Listed listed{.attempts = {{5, 0.9, 1}, {4, 0.8, 1}, {6, 0.7, 1}}};
  EXPECT_DOUBLE_EQ(listed.run()->seconds, 4);
  EXPECT_EQ(listed.next, 5u);
  EXPECT_DOUBLE_EQ(listed.calibration.worstSpread, 0.8);
  EXPECT_EQ(listed.calibration.worstFigure, "figure");
}

TEST(Calibration, HasNoPatienceLeftAfterHalfAMinute) {
  Listed listed{.attempts = {{5, 0.9, 1}, {4, 0.8, 1}}};
  listed.calibration.clock = [] { return int64_t(31) * 1'000'000'000; };
  EXPECT_DOUBLE_EQ(listed.run()->seconds, 5);
  EXPECT_EQ(listed.next, 1u);
}

} // namespace
