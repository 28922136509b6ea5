//===- SlotsTest.cpp - Values that wait between segments -----------------------===//
#include "PassedOn.h"

#include "Program/Execution.h"
#include "ds/Runtime/Engine/Executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::rt {
namespace {

using test::PassedOn;

/// What the backward of each micro-batch of a step has read, where the input of micro-batch m is 100 + m.
std::vector<float> seenBy(const PassedOn &p, bool poison) {
  EXPECT_TRUE(verifyProgram(p.b.program)) << verifyProgram(p.b.program).error().message;
  auto executor = Executor::load(p.b.program, {.poison = poison});
  EXPECT_TRUE(executor) << executor.error().message;
  for (int step = 0; step < 2; ++step)
    EXPECT_TRUE((*executor)->runStep([&](uint32_t m) -> Status {
      std::fill_n(static_cast<float *>((*executor)->inputs(m).at(0)), PassedOn::kElements, 100.0f + m);
      return {};
    }));
  std::vector<float> seen;
  for (uint32_t m = 0; m < 3; ++m)
    seen.push_back(static_cast<const float *>((*executor)->data(p.seen, m))[PassedOn::kElements - 1]);
  return seen;
}

TEST(Slots, EachBackwardReadsItsOwnForward) {
  for (bool poison : {false, true}) {
    EXPECT_EQ(seenBy(PassedOn(2), poison), (std::vector<float>{100, 101, 102}));
    EXPECT_EQ(seenBy(PassedOn(3), poison), (std::vector<float>{100, 101, 102}));
    // With one slot the second forward overwrites what the first backward is to read, and so on.
    EXPECT_EQ(seenBy(PassedOn(1), poison), (std::vector<float>{101, 102, 102}));
  }
}

TEST(Slots, InputsWaitToo) {
  PassedOn p(1);
  Buffer &x = p.b.program.buffers[p.x];
  x.slots = 2, x.slotStride = 512; // in the slots of another value: nothing else is in its way
  x.offset = p.b.arenas().device;
  p.b.arenas().device += 1024;
  p.b.program.lifetimes.push_back({Space::Device, x.offset, 1024});
  p.b.program.operands[p.b.program.commands[1].firstOperand] = p.x; // the backward reads the input
  EXPECT_EQ(seenBy(p, false), (std::vector<float>{100, 101, 102}));
}

TEST(Slots, AlsoOnOtherStreams) {
  PassedOn p;
  p.b.program.streams = {StreamKind::ToHost, StreamKind::Compute};
  Buffer &seen = p.b.program.buffers[p.seen];
  for (Lifetime &lifetime : p.b.program.lifetimes)
    if (lifetime.offset == seen.offset)
      lifetime.space = Space::Host;
  seen.space = Space::Host;
  p.b.arenas().host = p.b.arenas().device;
  for (Command &command : p.b.program.commands)
    command.stream = 1;
  p.b.program.commands[1].kind = CommandKind::Copy;
  p.b.program.commands[1].callee = p.b.program.commands[1].stream = 0;
  EXPECT_EQ(seenBy(p, false), (std::vector<float>{100, 101, 102}));
}

TEST(Slots, CommandsAreBoundForTheirOwnSlotsAlone) {
  const PassedOn two(2), three(3), one(1);
  const auto bindings = [](const PassedOn &p, uint32_t command) { return numBindings(p.b.program, command); };
  EXPECT_EQ(bindings(one, 0), 1u);
  EXPECT_EQ(bindings(two, 0), 2u);
  EXPECT_EQ(bindings(three, 1), 3u);
  EXPECT_EQ(slotPeriod(two.b.program, two.b.program.commands[1]), 6u); // 2 and 3 slots
  EXPECT_EQ(bindings(two, 1), 3u) << "there are no more micro-batches";
}

TEST(Slots, ASegmentRunsForAnyMicroBatch) {
  const PassedOn p;
  auto executor = Executor::load(p.b.program, {.poison = false});
  ASSERT_TRUE(executor);
  for (uint32_t m : {1, 0}) {
    std::fill_n(static_cast<float *>((*executor)->data(p.x)), PassedOn::kElements, 5.0f + m);
    ASSERT_TRUE((*executor)->run(0, m));
  }
  EXPECT_EQ(static_cast<const float *>((*executor)->data(p.a, 0))[0], 5);
  EXPECT_EQ(static_cast<const float *>((*executor)->data(p.a, 1))[0], 6);
}

} // namespace
} // namespace ds::rt
