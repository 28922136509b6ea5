//===- StepPlayerTest.cpp - Executions are walked in order, with poison between -----===//
#include "Player/StepPlayer.h"
#include "Player/Poison.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::rt {
namespace {

using testing::ElementsAre;

/// Writes down what it is asked for; command `failsAt` fails.
class Recorder final : public OrderedPlayer {
public:
  Recorder(const Program &program, const Poison *poison, std::vector<std::string> &log,
           uint32_t failsAt = UINT32_MAX)
      : OrderedPlayer(program, poison), log(log), failsAt(failsAt) {}

private:
  Status begin(const Execution &part) override {
    log.push_back(fmt::format("begin {} of {}", part.segment, part.microBatch));
    return {};
  }
  Status command(uint32_t index, const Execution &part) override {
    log.push_back(fmt::format("command {} for {}", index, part.microBatch));
    return index == failsAt ? Status(Error{ExitCode::Device, "fails", ""}) : Status();
  }
  Status end(const Execution &part) override {
    log.push_back(fmt::format("end {}", part.segment));
    return {};
  }
  Error explain(const Error &error, uint32_t index) const override {
    return Error{error.code, fmt::format("command {} {}", index, error.message), ""};
  }

  std::vector<std::string> &log;
  const uint32_t failsAt;
};

/// Commands 0 and 1 in segment 0, command 2 in segment 1. Four bytes at 64 live from the first command to the
/// second, eight at 128 while the third runs.
Program twoSegments() {
  Program program;
  program.stages.resize(1);
  program.segments.resize(2);
  program.segments[0].numCommands = 2;
  program.segments[1].firstCommand = 2;
  program.segments[1].numCommands = 1;
  Lifetime first{Space::Device, 64, 4}, second{Space::Device, 128, 8};
  first.segment = 0, first.begin = 0, first.end = 2;
  second.segment = 1, second.begin = 0, second.end = 1;
  program.lifetimes = {first, second};
  return program;
}

TEST(StepPlayerTest, WalksExecutionsInOrder) {
  const Program program = twoSegments();
  const std::vector<Execution> step = {{0, 0, true}, {0, 1, true}, {1, 1, false}};
  std::vector<std::string> log;
  ASSERT_TRUE(Recorder(program, nullptr, log).play(step));
  EXPECT_THAT(log, ElementsAre("begin 0 of 0", "command 0 for 0", "command 1 for 0", "end 0", //
                               "begin 0 of 1", "command 0 for 1", "command 1 for 1", "end 0", //
                               "begin 1 of 1", "command 2 for 1", "end 1"));
}

TEST(StepPlayerTest, TheFirstFailureEndsTheStepAndIsExplained) {
  const Program program = twoSegments();
  const std::vector<Execution> step = {{0, 0, true}, {1, 0, false}};
  std::vector<std::string> log;
  const Status status = Recorder(program, nullptr, log, /*failsAt=*/0).play(step);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "command 0 fails");
  EXPECT_THAT(log, ElementsAre("begin 0 of 0", "command 0 for 0"));
}

TEST(StepPlayerTest, PoisonsWhatBeginsAndEndsToLive) {
  const Program program = twoSegments();
  const std::vector<Execution> step = {{0, 0, true}, {1, 0, false}};
  std::vector<std::string> log;
  const Poison poison(program, [&](const Lifetime &lifetime, uint8_t byte) -> Status {
    log.push_back(fmt::format("{} at {}", byte, lifetime.offset));
    return {};
  });
  ASSERT_TRUE(Recorder(program, &poison, log).play(step));
  EXPECT_THAT(log, ElementsAre("begin 0 of 0", "255 at 64", "command 0 for 0", "command 1 for 0", "255 at 64",
                               "end 0", //
                               "begin 1 of 0", "255 at 128", "command 2 for 0", "255 at 128", "end 1"));
}

} // namespace
} // namespace ds::rt
