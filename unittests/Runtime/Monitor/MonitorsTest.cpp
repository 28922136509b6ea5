//===- MonitorsTest.cpp - Curves of runs that begin, go on and fail -----------------===//

#include "Monitor/Monitors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

class MonitorsTest : public testing::Test {
protected:
  MonitorsTest() {
    std::string pattern = "/tmp/ds-monitors-XXXXXX";
    root = ::mkdtemp(pattern.data());
    watch.csv = MonitorSettings{root + "/csv", "job"};
    watch.tensorboard = MonitorSettings{root + "/tb", "job"};
  }
  ~MonitorsTest() override { fs::remove_all(root); }

  /// Writes steps [first, last] of 8 samples each, as one run.
  void run(uint64_t first, uint64_t last, std::optional<uint64_t> resumedAt = {}) {
    Result<Monitors> monitors =
        Monitors::open(watch, resumedAt, [&](const std::string &text) { told += text; });
    ASSERT_TRUE(monitors) << monitors.error().message;
    for (uint64_t step = first; step <= last; ++step) {
      StepRecord record;
      record.step = step;
      record.loss = step == 3 ? NAN : 1.0 / static_cast<double>(step);
      record.lr = 0.25;
      monitors->write(record, 8 * step);
    }
  }
  std::string table(const std::string &name) const {
    std::ifstream file(root + "/csv/job/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t numEventFiles() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(root + "/tb/job"), {}));
  }
  std::string root, told;
  WatchSettings watch;
};

TEST_F(MonitorsTest, TablesAreDeepSpeeds) {
  run(1, 3);
  EXPECT_EQ(table("Train_Samples_train_loss.csv"), "step,train_loss\n8,1\n16,0.5\n24,nan\n");
  EXPECT_EQ(table("Train_Samples_lr.csv"), "step,lr\n8,0.25\n16,0.25\n24,0.25\n");
  EXPECT_FALSE(fs::exists(root + "/csv/job/Train_Samples_loss_scale.csv")) << "the program has none";
}

TEST_F(MonitorsTest, EachEvaluationHasATable) {
  StepRecord record;
  record.step = 1;
  record.evaluations = {{"valid", 3.25}, {"code", 2.5}};
  std::map<std::string, double> values;
  for (const Scalar &each : scalarsOf(record))
    values[each.tag] = each.value;
  EXPECT_EQ(values, (std::map<std::string, double>{{"Train/Samples/eval_loss", 3.25},
                                                   {"Train/Samples/eval_loss_valid", 3.25},
                                                   {"Train/Samples/eval_loss_code", 2.5}}));
}

/// A run that goes on behind step 2 makes step 3 again: its old row goes.
TEST_F(MonitorsTest, AResumedRunGoesOnWithItsTables) {
  run(1, 3);
  run(3, 4, /*resumedAt=*/16);
  EXPECT_EQ(table("Train_Samples_lr.csv"), "step,lr\n8,0.25\n16,0.25\n24,0.25\n32,0.25\n");
  EXPECT_EQ(numEventFiles(), 2u);
  EXPECT_EQ(told, "");
}

TEST_F(MonitorsTest, ANewRunMovesEarlierTablesAside) {
  run(1, 2);
  run(1, 1);
  EXPECT_EQ(table("Train_Samples_lr.csv"), "step,lr\n8,0.25\n");
  EXPECT_EQ(table("Train_Samples_lr.1.csv"), "step,lr\n8,0.25\n16,0.25\n");
  EXPECT_THAT(told, HasSubstr("the earlier table of lr '"));
}

TEST_F(MonitorsTest, WhatIsNotAskedForIsNotWritten) {
  watch = {};
  run(1, 1);
  EXPECT_TRUE(fs::is_empty(root));
}

TEST_F(MonitorsTest, ADirectoryThatCannotBeMadeIsRefused) {
  std::ofstream(root + "/file") << "x";
  for (auto *monitor : {&watch.csv, &watch.tensorboard}) {
    const std::optional<MonitorSettings> good = *monitor;
    *monitor = MonitorSettings{root + "/file", "job"};
    const Result<Monitors> monitors = Monitors::open(watch, {}, nullptr);
    ASSERT_FALSE(monitors);
    EXPECT_EQ(monitors.error().code, ExitCode::Io);
    *monitor = good;
  }
}

} // namespace
