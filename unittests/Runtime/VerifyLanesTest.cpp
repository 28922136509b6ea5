//===- VerifyLanesTest.cpp - Which lanes may run beside each other -----------------===//
//
// Pipelines that train are accepted; each case breaks one rule and expects the message that names who does.
//
//===---------------------------------------------------------------------------===//
#include "Layers.h"
#include "Verdict.h"

#include "Program/Execution.h"

namespace ds::rt {
namespace {

using test::Layers;
using test::Pipeline;
using test::PipelineItem;
using test::PipelineKind;
using test::PipelineTable;
using testing::AllOf;
using testing::HasSubstr;
using Entries = std::vector<ScheduleEntry>;

/// 1F1B on two stages: stage 0 has F0 S0 F1 S1 R0 B0 F2 S2 R1 B1 R2 B2 U, S and R being sends and receives.
Layers turns(uint32_t microBatches = 3) {
  return Layers({PipelineKind::OneForwardOneBackward, 2, 1, microBatches});
}

std::string after(const std::function<void(Program &)> &change) {
  return test::verdict(turns().program(), change);
}
/// Entry of `stage` that runs the segment of this name for `microBatch`.
ScheduleEntry &find(Program &p, uint32_t stage, const std::string &segment, uint32_t microBatch) {
  for (ScheduleEntry &entry : p.stages[stage].schedule)
    if (p.segments[entry.segment].name == segment && entry.firstMicroBatch == microBatch)
      return entry;
  ADD_FAILURE() << "no " << segment;
  return p.stages[stage].schedule[0];
}
uint32_t segmentOf(const Program &p, uint32_t stage, const std::string &name) {
  for (uint32_t i = 0; i < p.segments.size(); ++i)
    if (p.segments[i].stage == stage && p.segments[i].name == name)
      return i;
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(VerifyLanes, AcceptsPipelines) {
  EXPECT_EQ(after([](Program &) {}), "accepted");
  EXPECT_EQ(laneOf({Work::Transfer}), Lane::Transfer);
  EXPECT_EQ(laneOf({Work::Move}), Lane::Move);
  EXPECT_EQ(laneOf({Work::Forward, Work::Backward}), Lane::Compute);
}

/// What entries wait for is in the file; where none waits, nothing is.
TEST(VerifyLanes, FilesKeepWhatEntriesWaitFor) {
  Program program = turns().program();
  const std::vector<uint8_t> bytes = serializeProgram(program).value();
  const Result<Program> again = parseProgram(bytes, "p.dsx");
  ASSERT_TRUE(again) << again.error().message;
  for (uint32_t stage : {0u, 1u})
    for (size_t i = 0; i < program.stages[stage].schedule.size(); ++i)
      EXPECT_EQ(again->stages[stage].schedule[i].after, program.stages[stage].schedule[i].after) << i;
  const std::string hash = hashPlan(program);
  find(program, 0, "backward 0", 0).after[1] += 1;
  EXPECT_NE(hashPlan(program), hash);
  for (Stage &stage : program.stages)
    for (ScheduleEntry &entry : stage.schedule)
      entry.after = {};
  EXPECT_LT(serializeProgram(program)->size(), bytes.size());
}

/// The inputs of a micro-batch are filled before it is computed with, not before it is received.
TEST(VerifyLanes, ExecutionsKnowTheirLanes) {
  const std::vector<Execution> last = executionsOf(turns().program(), 1);
  EXPECT_TRUE(hasLanes(last));
  ASSERT_EQ(last[0].lane, Lane::Transfer);
  EXPECT_FALSE(last[0].fills);
  const auto first =
      std::ranges::find_if(last, [](const Execution &each) { return each.lane == Lane::Compute; });
  EXPECT_TRUE(first->fills);
  EXPECT_EQ(first->after[size_t(Lane::Transfer)], 1u);
  const LaneEvents events(last);
  EXPECT_EQ(events.of(Lane::Transfer, 0), 0u) << "the first that somebody waits for";
  EXPECT_EQ(events.of(Lane::Move, 0), std::nullopt);
}

TEST(VerifyLanes, WorkOfALaneIsAlone) {
  EXPECT_THAT(after([](Program &p) { p.segments[1].work.add(Work::Forward); }),
              HasSubstr("'send value 0' does forward, transfer, expected some work, and evaluation, transfer "
                        "and move alone"));
}

TEST(VerifyLanes, TransfersAreMessagesOnTheirStream) {
  EXPECT_THAT(after([](Program &p) {
                const uint32_t update = segmentOf(p, 0, "update");
                p.segments.push_back(p.segments[update]);
                p.segments.back().work = {Work::Transfer};
                p.segments[update].numCommands = 0;
              }),
              HasSubstr("of 'update', which is a transfer, is no message"));
  EXPECT_THAT(after([](Program &p) { p.segments[1].work = {Work::Move}; }),
              HasSubstr("commands[1] of 'send value 0', which is a move, is no collective"));
  EXPECT_THAT(
      after([](Program &p) { p.streams[1] = StreamKind::Exchange; }),
      HasSubstr("commands[1] of 'send value 0', which is a transfer, runs on stream 1 of kind exchange, "
                "expected one stream of kind transfer"));
}

TEST(VerifyLanes, AStreamBelongsToOneLane) {
  EXPECT_THAT(
      after([](Program &p) {
        const uint32_t received = segmentOf(p, 0, "receive gradient 0");
        p.segments[received].work = {Work::Forward};
        p.segments[received].chunk = 1;
        for (ScheduleEntry &entry : p.stages[0].schedule)
          entry.after = {};
      }),
      HasSubstr("stage 0: stream 1 runs 'send value 0' of the transfer lane and 'receive gradient 0' of the "
                "compute lane, expected one lane"));
  EXPECT_THAT(
      after([](Program &p) {
        p.streams.push_back(StreamKind::Transfer);
        const Segment &received = p.segments[segmentOf(p, 0, "receive gradient 0")];
        p.commands[received.firstCommand].stream = 2;
      }),
      HasSubstr("stage 0: 'receive gradient 0' of the transfer lane runs on stream 2, but 'send value 0' on "
                "stream 1"));
}

TEST(VerifyLanes, EntriesWaitForWhatStandsBeforeThem) {
  EXPECT_THAT(
      after([](Program &p) { find(p, 0, "backward 0", 0).after[1] = 4; }),
      HasSubstr("stage 0: schedule[5] 'backward 0' waits for 4 executions of the transfer lane, but 3 stand "
                "before it"));
  EXPECT_THAT(after([](Program &p) { find(p, 0, "backward 0", 0).after[2] = 1; }),
              HasSubstr("waits for 1 executions of the move lane, but 0 stand before it"));
  EXPECT_THAT(after([](Program &p) { find(p, 0, "backward 0", 0).after[0] = 1; }),
              HasSubstr("schedule[5] 'backward 0' waits for 1 executions of its own lane"));
}

TEST(VerifyLanes, ATransferIsDoneOnce) {
  EXPECT_THAT(after([](Program &p) { find(p, 0, "send value 0", 1).firstMicroBatch = 0; }),
              HasSubstr("stage 0: schedule[3] runs 'send value 0' for micro-batch 0 a second time"));
}

/// What is made is sent after that, what is received read after that, and slots wait for both.
TEST(VerifyLanes, WhatIsSharedIsWaitedFor) {
  EXPECT_THAT(
      after([](Program &p) { find(p, 0, "send value 0", 1).after = {}; }),
      HasSubstr("stage 0: 'send value 0' for micro-batch 1 may run beside 'forward 0' for micro-batch 1 of "
                "the compute lane, and both touch device byte "));
  EXPECT_THAT(
      after([](Program &p) { find(p, 1, "forward 1", 0).after = {}; }),
      HasSubstr("stage 1: 'forward 1' for micro-batch 0 may run beside 'receive value 0' for micro-batch 0 "
                "of the transfer lane"));
  EXPECT_THAT(after([](Program &p) { find(p, 0, "send value 0", 1).after[0] = 1; }),
              HasSubstr("may run beside 'forward 0' for micro-batch 1"));
}

/// Each wait that a table has is needed, or follows from others: without it the program is refused or as
/// safe.
TEST(VerifyLanes, NoWaitIsMissedUnnoticed) {
  int refused = 0, accepted = 0;
  for (PipelineKind kind : {PipelineKind::OneForwardOneBackward, PipelineKind::GPipe}) {
    const Layers layers({kind, 3, 1, 5});
    for (uint32_t stage = 0; stage < 3; ++stage)
      for (size_t i = 0; i < layers.program().stages[stage].schedule.size(); ++i)
        for (size_t lane = 0; lane < kNumLanes; ++lane) {
          if (layers.program().stages[stage].schedule[i].after[lane] == 0)
            continue;
          const std::string verdict = test::verdict(
              layers.program(), [&](Program &p) { p.stages[stage].schedule[i].after[lane] = 0; });
          verdict == "accepted" ? ++accepted : ++refused;
          if (verdict != "accepted")
            EXPECT_THAT(verdict, HasSubstr("may run beside"));
        }
  }
  EXPECT_GT(refused, 50);
  EXPECT_LT(accepted, refused);
}

TEST(VerifyLanes, ASlotServesOneMicroBatchAtATime) {
  const Pipeline pipeline{PipelineKind::OneForwardOneBackward, 2, 1, 4};
  const PipelineTable table = test::tableOf(pipeline);
  EXPECT_EQ(test::verdict(Layers(pipeline, table, 2).program(), [](Program &) {}), "accepted");
  EXPECT_THAT(test::verdict(Layers(pipeline, table, 1).program(), [](Program &) {}),
              HasSubstr("stage 0: 'backward 0' for micro-batch 0 uses slot 0 of buffers["));
}

/// The verdict on all forwards before all backwards of two stages, where `item` stands right before `next` on
/// `stage`, or last of all.
std::string moved(uint32_t stage, PipelineItem item, std::optional<PipelineItem> next) {
  const Pipeline pipeline{PipelineKind::GPipe, 2, 1, 2};
  PipelineTable table = test::tableOf(pipeline);
  std::erase(table[stage], item);
  table[stage].insert(next ? std::ranges::find(table[stage], *next) : table[stage].end(), item);
  return test::verdict(Layers(pipeline, table, 2).program(), [](Program &) {});
}

/// The host fills all inputs of a stage before the first chunk of it computes with a micro-batch, though the
/// last chunk alone may read one of them.
TEST(VerifyLanes, AnInputServesOneMicroBatchAtATime) {
  const Layers layers({PipelineKind::Interleaved, 2, 2, 4});
  const auto withOneSlot = [](Program &p) {
    const auto t = std::ranges::find_if(p.inputs, [](const Input &input) { return input.name == "t"; });
    EXPECT_GT(p.buffers[t->buffer].slots, 1u);
    p.buffers[t->buffer].slots = 1;
    p.buffers[t->buffer].slotStride = 0;
  };
  EXPECT_THAT(test::verdict(layers.program(), withOneSlot),
              HasSubstr("stage 1: 'forward 3' for micro-batch 0 uses slot 0 of buffers["));
}

TEST(VerifyLanes, WhatIsSentWasMadeAndWhatIsReceivedIsRead) {
  EXPECT_THAT(moved(0, {PipelineItem::SendValue, 0, 0}, PipelineItem{PipelineItem::Forward, 0, 0}),
              HasSubstr("stage 0: 'send value 0' for micro-batch 0 sends slot 0 of buffers["));
  EXPECT_THAT(moved(0, {PipelineItem::ReceiveGradient, 0, 1}, std::nullopt),
              HasSubstr("stage 0: 'receive gradient 0' for micro-batch 1 receives what nothing reads"));
}

/// Both ends of a message are of one micro-batch, though names and sizes agree.
TEST(VerifyLanes, EndsOfAMessageAreOfOneMicroBatch) {
  EXPECT_THAT(moved(0, {PipelineItem::SendValue, 0, 0}, PipelineItem{PipelineItem::ReceiveGradient, 0, 0}),
              HasSubstr("sends 'value 0' to rank 1 for micro-batch 1, but rank 1: commands["));
}

/// The play of all stages finds those that wait for each other for ever, lanes or not.
TEST(VerifyLanes, NobodyWaitsForEver) {
  EXPECT_THAT(moved(1, {PipelineItem::ReceiveValue, 0, 1}, std::nullopt), HasSubstr("reads"));
  EXPECT_THAT(moved(0, {PipelineItem::SendValue, 0, 1}, std::nullopt),
              HasSubstr("and never goes on, but rank"));
}

} // namespace
} // namespace ds::rt
