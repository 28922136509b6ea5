//===- SimulateTest.cpp - Schedules over streams and links ---------------------------===//
//
// Cases whose times are worked out by hand, and random ones against a reference that lets time go by in small
// steps.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Simulate.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

using namespace ds::cost;
using Kind = SimCommand::Kind;

static SimCommand compute(uint32_t stream, double seconds) { return {Kind::Compute, stream, seconds}; }
static SimCommand gather(uint32_t stream, double seconds, uint32_t link = 0) {
  return {Kind::Collective, stream, seconds, link};
}
static SimCommand copy(uint32_t stream, double seconds, uint32_t link) {
  return {Kind::ToHost, stream, seconds, link};
}
static SimCommand record(uint32_t stream, uint32_t event) { return {Kind::Record, stream, 0, 0, event}; }
static SimCommand wait(uint32_t stream, uint32_t event) { return {Kind::Wait, stream, 0, 0, event}; }

static void expectSpan(const Simulation &step, size_t command, double begin, double end) {
  EXPECT_DOUBLE_EQ(step.spans[command].begin, begin) << "command " << command;
  EXPECT_DOUBLE_EQ(step.spans[command].end, end) << "command " << command;
}

TEST(Simulate, NothingTakesNoTime) {
  Simulation step = simulate({}, 2);
  EXPECT_EQ(step.seconds, 0);
  EXPECT_EQ(step.busySeconds, std::vector<double>({0, 0}));
}

TEST(Simulate, AStreamRunsItsCommandsInOrderAndStreamsRunBesideEachOther) {
  Simulation step = simulate({compute(0, 2), gather(1, 5), compute(0, 1)}, 2);
  expectSpan(step, 0, 0, 2);
  expectSpan(step, 1, 0, 5);
  expectSpan(step, 2, 2, 3);
  EXPECT_DOUBLE_EQ(step.seconds, 5);
  EXPECT_DOUBLE_EQ(step.computeSeconds, 3);
  EXPECT_DOUBLE_EQ(step.exposedCommunicationSeconds, 2); // from 3 to 5 nothing computes
  EXPECT_EQ(step.busySeconds, std::vector<double>({3, 5}));
}

TEST(Simulate, AWaitStandsUntilItsEventIsRecorded) {
  //          0: gather 0-3, record     1: compute 0-1, wait 1-3, compute 3-4
  Simulation step = simulate({gather(0, 3), record(0, 7), compute(1, 1), wait(1, 7), compute(1, 1)}, 2);
  expectSpan(step, 1, 3, 3);
  expectSpan(step, 3, 1, 3);
  expectSpan(step, 4, 3, 4);
  EXPECT_DOUBLE_EQ(step.exposedCommunicationSeconds, 2);
  EXPECT_EQ(step.busySeconds, std::vector<double>({3, 2})); // waiting is no work
}

TEST(Simulate, WhatTheHostAloneComputesIsCountedApart) {
  // The device computes until 2, the host from 1 to 4: alone from 2 on.
  SimCommand update = compute(1, 3);
  update.onHost = true;
  Simulation step = simulate({compute(0, 1), record(0, 1), compute(0, 1), wait(1, 1), update}, 2);
  EXPECT_DOUBLE_EQ(step.computeSeconds, 4);
  EXPECT_DOUBLE_EQ(step.exposedHostSeconds, 2);
}

TEST(Simulate, WhatWaitsForCopiesAndStorageIsCountedApart) {
  // Compute 0-1, a collective 0-2, storage 0-4, a copy 0-5: exposed are 1, 2 and 1 seconds.
  Simulation step = simulate({compute(0, 1), gather(1, 2), {Kind::Storage, 2, 4, 2}, copy(3, 5, 1)}, 4);
  EXPECT_DOUBLE_EQ(step.computeSeconds, 1);
  EXPECT_DOUBLE_EQ(step.exposedCommunicationSeconds, 1);
  EXPECT_DOUBLE_EQ(step.exposedStorageSeconds, 2);
  EXPECT_DOUBLE_EQ(step.exposedToHostSeconds, 1);
  EXPECT_DOUBLE_EQ(step.exposedToDeviceSeconds, 0);
}

TEST(Simulate, CopiesOfBothWaysShareNoLinkAndTheirTimeIsEachsHalf) {
  // Compute 0-1, to the host 0-4, to the device 0-6: both ways for 3 seconds, then one for 2.
  Simulation step = simulate({compute(0, 1), copy(1, 4, 1), {Kind::ToDevice, 2, 6, 2}}, 3);
  expectSpan(step, 1, 0, 4);
  expectSpan(step, 2, 0, 6);
  EXPECT_DOUBLE_EQ(step.exposedToHostSeconds, 1.5);
  EXPECT_DOUBLE_EQ(step.exposedToDeviceSeconds, 3.5);
}

TEST(Simulate, AWaitIsForTheLastRecordBeforeIt) {
  // The event is recorded at 1 and again at 5: the first wait is for 1, the second for 5.
  Simulation step = simulate({gather(0, 1), record(0, 0), wait(1, 0), compute(1, 1), gather(0, 4),
                              record(0, 0), wait(1, 0), compute(1, 1)},
                             2);
  expectSpan(step, 3, 1, 2);
  expectSpan(step, 6, 2, 5);
  expectSpan(step, 7, 5, 6);
}

TEST(Simulate, AWaitForWhatComesLaterOrNeverDoesNotStand) {
  Simulation step = simulate({wait(1, 3), compute(1, 1), gather(0, 9), record(0, 3), wait(1, 4)}, 2);
  expectSpan(step, 0, 0, 0);
  expectSpan(step, 1, 0, 1);
  expectSpan(step, 4, 1, 1);
}

TEST(Simulate, OneRecordReleasesEveryStreamThatStands) {
  Simulation step =
      simulate({compute(0, 2), record(0, 0), wait(1, 0), gather(1, 1), wait(2, 0), copy(2, 3, 0)}, 3);
  expectSpan(step, 3, 2, 3);
  expectSpan(step, 5, 2, 5);
}

TEST(Simulate, TransfersOnOneLinkShareIt) {
  // Together from 0: each at half speed. The short one (2) ends at 4; the other has 4 - 2 = 2 left, alone: 6.
  Simulation step = simulate({gather(0, 2, 1), gather(1, 4, 1)}, 2);
  expectSpan(step, 0, 0, 4);
  expectSpan(step, 1, 0, 6);
  EXPECT_DOUBLE_EQ(step.exposedCommunicationSeconds, 6);
}

TEST(Simulate, AThirdTransferSlowsTheOthersFromThenOn) {
  // a (6) and b (6) share link 5 from 0; c (1) joins at 2, when both have 5 left. Three ways: c needs 3 s and
  // ends at 5, a and b then have 4 left and end at 5 + 8 = 13.
  Simulation step = simulate({copy(0, 6, 5), copy(1, 6, 5), compute(2, 2), copy(2, 1, 5)}, 3);
  expectSpan(step, 3, 2, 5);
  expectSpan(step, 0, 0, 13);
  expectSpan(step, 1, 0, 13);
}

TEST(Simulate, DifferentLinksDoNotShare) {
  Simulation step = simulate({gather(0, 2, 1), gather(1, 4, 2), gather(2, 3)}, 3);
  expectSpan(step, 0, 0, 2);
  expectSpan(step, 1, 0, 4);
  expectSpan(step, 2, 0, 3);
}

TEST(Simulate, ComputeIsSlowerBesideACollective) {
  // A quarter of the speed is lost for 4 s: 3 of 5 s are done by then, 2 are left.
  Simulation step = simulate({compute(0, 5), gather(1, 4)}, 2, 0.25);
  expectSpan(step, 0, 0, 6);
  expectSpan(step, 1, 0, 4);
  // A copy takes nothing from it.
  EXPECT_DOUBLE_EQ(simulate({compute(0, 5), copy(1, 4, 0)}, 2, 0.25).seconds, 5);
}

TEST(Simulate, CommandsWithoutATimePassAtOnce) {
  Simulation step = simulate({compute(0, 0), compute(0, 1), gather(1, 0, 3), compute(0, 0)}, 2);
  expectSpan(step, 0, 0, 0);
  expectSpan(step, 2, 0, 0);
  expectSpan(step, 3, 1, 1);
}

//===----------------------------------------------------------------------===//
// The reference
//===----------------------------------------------------------------------===//

namespace {
/// Lets time go by in steps of kStep; shares nothing with the simulation but its interface.
class Stepper {
public:
  static constexpr double kStep = 1e-3;

  Stepper(const std::vector<SimCommand> &commands, uint32_t streams, double contention)
      : commands(commands), contention(contention), left(commands.size()), done(commands.size()),
        next(streams, 0), spans(commands.size()) {
    for (size_t index = 0; index < commands.size(); ++index)
      left[index] = commands[index].seconds;
  }

  Simulation run() {
    double exposed = 0, computed = 0, time = 0;
    for (int tick = 0;; ++tick) {
      time = tick * kStep;
      for (bool isNew = true; isNew;) {
        isNew = false;
        for (uint32_t stream = 0; stream < next.size(); ++stream)
          isNew |= pass(stream, time);
      }
      std::vector<size_t> under = running();
      if (under.empty())
        break;
      auto count = [&](auto predicate) {
        return std::count_if(under.begin(), under.end(), [&](size_t c) { return predicate(commands[c]); });
      };
      bool collective = count([](const SimCommand &c) { return c.kind == Kind::Collective; }) > 0;
      bool computes = count([](const SimCommand &c) { return c.kind == Kind::Compute; }) > 0;
      computed += computes ? kStep : 0;
      exposed += collective && !computes ? kStep : 0;
      for (size_t index : under) {
        double speed = 1;
        if (commands[index].kind == Kind::Compute)
          speed = collective ? 1 - contention : 1;
        else if (commands[index].link != 0)
          speed = 1.0 / count([&](const SimCommand &c) { return c.link == commands[index].link; });
        left[index] -= speed * kStep;
      }
    }
    Simulation result;
    result.spans = spans;
    result.seconds = time;
    result.computeSeconds = computed;
    result.exposedCommunicationSeconds = exposed;
    return result;
  }

private:
  /// The command at the head of a stream; empty at its end.
  std::optional<size_t> head(uint32_t stream) const {
    for (size_t index = next[stream]; index < commands.size(); ++index)
      if (commands[index].stream == stream)
        return index;
    return {};
  }

  std::vector<size_t> running() const {
    std::vector<size_t> under;
    for (uint32_t stream = 0; stream < next.size(); ++stream)
      if (auto index = head(stream); index && commands[*index].kind < Kind::Record)
        under.push_back(*index);
    return under;
  }

  bool mayPass(size_t index) const {
    if (commands[index].kind != Kind::Wait)
      return left[index] <= kStep / 2;
    for (size_t before = index; before-- > 0;)
      if (commands[before].kind == Kind::Record && commands[before].event == commands[index].event)
        return done[before];
    return true;
  }

  /// Goes one command on, if its time is over.
  bool pass(uint32_t stream, double time) {
    std::optional<size_t> index = head(stream);
    if (!index || !mayPass(*index))
      return false;
    done[*index] = true;
    spans[*index].end = time;
    next[stream] = *index + 1;
    if (auto following = head(stream))
      spans[*following].begin = time;
    return true;
  }

  const std::vector<SimCommand> &commands;
  double contention;
  std::vector<double> left;
  std::vector<bool> done;
  std::vector<size_t> next;
  std::vector<SimSpan> spans;
};
} // namespace

/// Random commands on `streams` streams: durations up to 2 s, two links, four events.
static std::vector<SimCommand> randomSchedule(std::mt19937 &random, uint32_t streams, size_t count) {
  auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  std::vector<SimCommand> commands;
  for (size_t index = 0; index < count; ++index) {
    SimCommand command{static_cast<Kind>(draw(6)), draw(streams), draw(200) / 100.0, draw(3), draw(4)};
    if (command.kind == Kind::Compute)
      command.link = 0;
    if (command.kind >= Kind::Record)
      command.seconds = command.link = 0;
    commands.push_back(command);
  }
  return commands;
}

TEST(Simulate, AgreesWithSmallSteps) {
  std::mt19937 random(7);
  for (int instance = 0; instance < 150; ++instance) {
    std::vector<SimCommand> commands = randomSchedule(random, 4, 24);
    double contention = instance % 3 * 0.25;
    Simulation fast = simulate(commands, 4, contention), slow = Stepper(commands, 4, contention).run();
    // Every command is seen to end up to a step late.
    double tolerance = static_cast<double>(commands.size()) * 2 * Stepper::kStep;
    ASSERT_NEAR(fast.seconds, slow.seconds, tolerance) << instance;
    EXPECT_NEAR(fast.computeSeconds, slow.computeSeconds, tolerance) << instance;
    EXPECT_NEAR(fast.exposedCommunicationSeconds, slow.exposedCommunicationSeconds, tolerance) << instance;
    for (size_t index = 0; index < commands.size(); ++index) {
      ASSERT_NEAR(fast.spans[index].begin, slow.spans[index].begin, tolerance) << instance << " " << index;
      ASSERT_NEAR(fast.spans[index].end, slow.spans[index].end, tolerance) << instance << " " << index;
    }
  }
}

TEST(Simulate, TwoRunsGiveTheSameBits) {
  std::mt19937 random(11);
  std::vector<SimCommand> commands = randomSchedule(random, 5, 3000);
  Simulation a = simulate(commands, 5, 0.1), b = simulate(commands, 5, 0.1);
  for (size_t index = 0; index < commands.size(); ++index)
    ASSERT_TRUE(a.spans[index].begin == b.spans[index].begin && a.spans[index].end == b.spans[index].end);
  EXPECT_EQ(a.seconds, b.seconds);
}

TEST(Simulate, NoStreamOverlapsItselfAndEventsHoldInALargeSchedule) {
  std::mt19937 random(3);
  std::vector<SimCommand> commands = randomSchedule(random, 5, 20000);
  Simulation step = simulate(commands, 5);
  std::vector<double> end(5, 0);
  std::vector<std::optional<double>> recorded(4);
  for (size_t index = 0; index < commands.size(); ++index) {
    const SimCommand &command = commands[index];
    EXPECT_GE(step.spans[index].begin, end[command.stream]);
    EXPECT_GE(step.spans[index].end, step.spans[index].begin);
    end[command.stream] = step.spans[index].end;
    if (command.kind == Kind::Record)
      recorded[command.event] = step.spans[index].end;
    if (command.kind == Kind::Wait && recorded[command.event]) {
      EXPECT_GE(step.spans[index].end, *recorded[command.event]);
    }
  }
  EXPECT_DOUBLE_EQ(step.seconds, *std::max_element(end.begin(), end.end()));
}
