//===- VerifyScheduleTest.cpp - Which schedules make a step --------------------===//
//
// Segments have no commands: what they do is said by their work alone.
//
//===---------------------------------------------------------------------------===//
#include "Verdict.h"

namespace ds::rt {
namespace {

using enum Gradients;
using enum Work;
using test::ProgramBuilder;
using testing::HasSubstr;

/// Segments that do `works`, a name each: "s0", "s1", ...
Program withSegments(const std::vector<WorkSet> &works, uint32_t accumulation) {
  ProgramBuilder b;
  b.program.accumulation = accumulation;
  for (WorkSet work : works)
    b.segment(work, "s" + std::to_string(b.program.segments.size()));
  return b.program;
}

std::string verdictOn(Program program, std::vector<ScheduleEntry> schedule) {
  return test::verdict(std::move(program), [&](Program &p) { p.stages[0].schedule = std::move(schedule); });
}

// A step of three micro-batches as it is compiled: the first one, all others but the last, and that with the
// update.
enum : uint32_t { kFirst, kMiddle, kLast, kEvaluate };
Program microSteps(uint32_t accumulation = 3) {
  return withSegments({{Forward, Backward}, {Forward, Backward}, {Forward, Backward, Update}, {Evaluation}},
                      accumulation);
}
const std::vector<ScheduleEntry> kMicroSteps = {
    {kFirst, 0, 1, Set}, {kMiddle, 1, 1, Add}, {kLast, 2, 1, Add, true}};

/// kMicroSteps after `change`.
std::string after(const std::function<void(std::vector<ScheduleEntry> &)> &change) {
  std::vector<ScheduleEntry> schedule = kMicroSteps;
  change(schedule);
  return verdictOn(microSteps(), schedule);
}

// Two chunks with a forward, both parts of a backward, and an update of both.
enum : uint32_t { kF0, kB0, kW0, kF1, kB1, kUpdate };
Program chunks() {
  Program p = withSegments({{Forward}, {InputGradient}, {WeightGradient}, {Forward}, {Backward}, {Update}},
                           /*accumulation=*/2);
  p.segments[kF1].chunk = p.segments[kB1].chunk = 1;
  return p;
}

TEST(VerifySchedule, AcceptsMicroSteps) {
  EXPECT_EQ(after([](auto &) {}), "accepted");
  EXPECT_EQ(verdictOn(withSegments({{Forward, Backward, Update}}, 1), {{0, 0, 1, Set, true}}), "accepted");
}

TEST(VerifySchedule, AcceptsWorkInParts) {
  Program p = withSegments({{Forward}, {InputGradient}, {WeightGradient}, {WeightGradient}, {Update}}, 2);
  // The gradients of weights wait until both inputs' have gone.
  EXPECT_EQ(verdictOn(p, {{0, 0, 2}, {1, 0, 2}, {2, 0, 1, Set}, {3, 1, 1, Add, true}, {4}}), "accepted");
  // The update reduces them; micro-batches in any order.
  EXPECT_EQ(
      verdictOn(p, {{0, 1, 1}, {0, 0, 1}, {1, 0, 2}, {2, 1, 1, Set}, {3, 0, 1, Add}, {4, 0, 1, None, true}}),
      "accepted");
  // What needs no gradient of its input, as the first layers, has only the other part, or none at all.
  EXPECT_EQ(verdictOn(p, {{0, 0, 2}, {2, 0, 1, Set}, {3, 1, 1, Add, true}, {4}}), "accepted");
  EXPECT_EQ(verdictOn(p, {{0, 0, 2}, {4}}), "accepted");
}

TEST(VerifySchedule, AcceptsChunksThatTakeTurns) {
  Program p =
      withSegments({{Forward}, {Backward}, {Backward}, {Forward}, {Backward}, {Backward}, {Update}}, 2);
  for (uint32_t segment : {3, 4, 5})
    p.segments[segment].chunk = 1;
  EXPECT_EQ(verdictOn(p, {{0, 0, 2},
                          {3, 0, 1},
                          {4, 0, 1, Set},
                          {3, 1, 1},
                          {1, 0, 1, Set},
                          {5, 1, 1, Add, true},
                          {2, 1, 1, Add, true},
                          {6, 1}}),
            "accepted");
}

TEST(VerifySchedule, Segments) {
  auto with = [](const std::function<void(Segment &)> &change) {
    Program p = microSteps();
    change(p.segments[kMiddle]);
    return verdictOn(p, kMicroSteps);
  };
  EXPECT_THAT(
      with([](Segment &s) { s.work = WorkSet::fromBits(0x103); }),
      HasSubstr(
          "segments[1] 's1' does work 0x100 beside forward, backward, but this ds-run knows no more "
          "than forward, backward, input gradient, weight gradient, update, evaluation, transfer, move"));
  EXPECT_THAT(with([](Segment &s) { s.work = {}; }), HasSubstr("'s1' does nothing, expected some work"));
  EXPECT_THAT(with([](Segment &s) { s.work.add(Evaluation); }),
              HasSubstr("'s1' does forward, backward, evaluation, expected some work, and evaluation, "
                        "transfer and move alone"));
  EXPECT_THAT(with([](Segment &s) { s.stage = 1; }), HasSubstr("'s1' belongs to stage 1 of 1"));
  EXPECT_THAT(with([](Segment &s) { s.chunk = 256; }),
              HasSubstr("'s1' belongs to chunk 256, the limit is 256"));
  EXPECT_THAT(with([](Segment &s) { s.numCommands = 3; }), HasSubstr("'s1' has commands 0 to 3 of 0"));
  ProgramBuilder b;
  for (uint32_t buffer : {b.keep({4}), b.keep({4})})
    b.library(LibraryFn::Fill, {buffer}, {0});
  b.segment();
  b.program.segments.push_back({"b", 0, 0, {Evaluation}, 1, 1});
  EXPECT_THAT(test::verdict(b.program, [](Program &) {}), HasSubstr("two segments share command 1"));
}

TEST(VerifySchedule, Entries) {
  EXPECT_THAT(after([](auto &s) { s[1].segment = 4; }), HasSubstr("schedule[1] runs segment 4 of 4"));
  EXPECT_THAT(after([](auto &s) { s[1].segment = kEvaluate; }),
              HasSubstr("schedule[1] runs 's3', which is for evaluation"));
  EXPECT_THAT(after([](auto &s) { s[1].count = 0; }), HasSubstr("schedule[1] runs 's1' 0 times"));
  EXPECT_THAT(after([](auto &s) { s[1].count = 3; }),
              HasSubstr("schedule[1] runs 's1' 3 times from micro-batch 1 on, but there are 3"));
  EXPECT_THAT(after([](auto &s) { s[1].firstMicroBatch = UINT32_MAX; }),
              HasSubstr("1 times from micro-batch 4294967295 on"));
  EXPECT_THAT(after([](auto &s) { s[1].count = UINT32_MAX; }),
              HasSubstr("has 4294967297 executions, the limit is 16777216"));
}

TEST(VerifySchedule, TheEntryForLogits) {
  ProgramBuilder b;
  b.program.microBatch = 2;
  for (WorkSet work : {WorkSet{Forward, Backward, Update}, WorkSet{Evaluation}, WorkSet{Evaluation}})
    b.segment(work, "s" + std::to_string(b.program.segments.size()));
  b.program.stages[0].schedule = {{0, 0, 1, Set, true}};
  b.program.stages[0].evaluation = 1;
  LogitsEntry &entry = b.program.stages[0].logits;
  entry = {2, b.keep({2}, DType::I64), b.keep({2, 5})};
  const uint32_t brief = b.place({2, 5}), narrow = b.keep({2, 5}, DType::BF16), one = b.keep({1, 5});
  const auto with = [&](const std::function<void(LogitsEntry &)> &change) {
    return test::verdict(b.program, [&](Program &p) { change(p.stages[0].logits); });
  };
  EXPECT_EQ(with([](LogitsEntry &) {}), "accepted");
  const Result<Program> again = parseProgram(serializeProgram(b.program).value(), "p.dsx");
  ASSERT_TRUE(again) << again.error().message;
  const LogitsEntry &kept = again->stages[0].logits;
  EXPECT_EQ(std::tie(kept.segment, kept.rows, kept.logits),
            std::tie(entry.segment, entry.rows, entry.logits));
  for (const int32_t segment : {-2, 0, 1, 3})
    EXPECT_THAT(with([&](LogitsEntry &e) { e.segment = segment; }),
                HasSubstr("of 3 for logits does not exist, does other work or is the evaluation"));
  EXPECT_THAT(with([](LogitsEntry &e) { e.rows = 99; }),
              HasSubstr("the rows of the entry for logits are buffer 99 of"));
  EXPECT_THAT(with([](LogitsEntry &e) { e.rows = e.logits; }),
              HasSubstr("the rows of the entry for logits are buffers[1], expected packed i64 of rank 1"));
  for (const uint32_t buffer : {narrow, one})
    EXPECT_THAT(with([&](LogitsEntry &e) { e.logits = buffer; }),
                HasSubstr("expected packed f32 of rank 2 on the device, one row for each of 2 samples"));
  EXPECT_THAT(with([&](LogitsEntry &e) { e.logits = brief; }),
              HasSubstr("the buffers of the entry for logits[1] 'logits' at device offset"));
}

TEST(VerifySchedule, Works) {
  EXPECT_THAT(
      after([](auto &s) { s[1].firstMicroBatch = 0; }),
      HasSubstr("schedule[1] runs the forward of chunk 0 for micro-batch 0, but forward, backward are done"));
  EXPECT_THAT(
      after([](auto &s) { s.erase(s.begin() + 1); }),
      HasSubstr("runs nothing of chunk 0 for micro-batch 1, but forward, backward for micro-batch 0, of 3"));
  auto parts = [](std::vector<ScheduleEntry> schedule) {
    return verdictOn(withSegments({{Forward}, {Backward}, {InputGradient}, {WeightGradient}, {Update}}, 2),
                     std::move(schedule));
  };
  EXPECT_EQ(parts({{0, 0, 2}, {2, 0, 2}, {3, 0, 2}, {4}}), "accepted");
  EXPECT_THAT(parts({{0, 0, 1}, {1, 1, 1}, {0, 1, 1}, {4}}),
              HasSubstr("runs the backward of chunk 0 for micro-batch 1 before its forward"));
  EXPECT_THAT(parts({{2, 0, 1}, {0, 0, 2}, {4}}),
              HasSubstr("runs the input gradient of chunk 0 for micro-batch 0 before its forward"));
  for (uint32_t second : {1, 2})
    EXPECT_THAT(parts({{0, 0, 2}, {3, 0, 2}, {second, 0, 2}, {4}}),
                HasSubstr("for micro-batch 0, but forward, weight gradient are done"))
        << "a part of a backward behind its end";
  for (uint32_t second : {1, 2, 3})
    EXPECT_THAT(parts({{0, 0, 2}, {1, 0, 2}, {second, 0, 2}, {4}}),
                HasSubstr("for micro-batch 0, but forward, backward are done"));
  EXPECT_THAT(
      parts({{0, 0, 2}, {1, 1, 1}, {4}}),
      HasSubstr("runs forward, backward of chunk 0 for micro-batch 1, but forward for micro-batch 0"));
  Program chunked = chunks();
  EXPECT_THAT(verdictOn(chunked, {{kF0, 0, 2}, {kF1, 0, 1}, {kUpdate}}),
              HasSubstr("runs nothing of chunk 1 for micro-batch 1"));
}

TEST(VerifySchedule, Updates) {
  EXPECT_THAT(after([](auto &s) { s.pop_back(); }), HasSubstr("the schedule of 2 entries has no update"));
  EXPECT_THAT(after([](auto &s) { s.clear(); }), HasSubstr("the schedule of 0 entries has no update"));
  EXPECT_THAT(after([](auto &s) { std::swap(s[1], s[2]); }),
              HasSubstr("schedule[2] runs 's1' after the update"));
  EXPECT_THAT(verdictOn(withSegments({{Update}}, 1), {{0}}), HasSubstr("forwards no micro-batch"));
  EXPECT_THAT(verdictOn(withSegments({{Forward}, {Update}}, 2), {{0, 0, 2}, {1, 0, 2}}),
              HasSubstr("schedule[1] runs the update 's1' 2 times, expected once"));
}

// Two micro-batches, whose updates run beside the first of the next step, or on their own.
enum : uint32_t { kStart, kEnd, kRotated, kFlush };
std::string late(const std::function<void(Program &)> &change) {
  Program p = withSegments(
      {{Forward, Backward}, {Forward, Backward, Update}, {Forward, Backward, Update}, {Update}, {Evaluation}},
      2);
  p.stages[0].schedule = {{kStart, 0, 1, Set}, {kEnd, 1, 1, Add, true}};
  return test::verdict(std::move(p), change);
}

TEST(VerifySchedule, LateUpdates) {
  EXPECT_EQ(late([](Program &) {}), "accepted");
  EXPECT_THAT(late([](Program &p) { p.segments[kFlush].work = {Forward}; }),
              HasSubstr("1 segments that update among else are not scheduled, and 0 that do nothing else, "
                        "expected one of each where 's2' is there"));
  EXPECT_THAT(late([](Program &p) { p.segments[kRotated].work = {Evaluation}; }),
              HasSubstr("0 segments that update among else are not scheduled, and 1 that do"));
  EXPECT_THAT(late([](Program &p) {
                p.segments[kRotated].work = {Forward, Update};
              }),
              HasSubstr("'s2', which is not scheduled, does forward, update in the place of 1 runs of 's0', "
                        "which does forward, backward"));
  EXPECT_THAT(late([](Program &p) { p.segments[kRotated].chunk = 1; }),
              HasSubstr("'s2', which is not scheduled, does"));
  EXPECT_THAT(late([](Program &p) {
                p.accumulation = 3;
                p.stages[0].schedule = {{kStart, 0, 2}, {kEnd, 2, 1}};
                p.segments[kStart].work = {Forward};
                p.segments[kEnd].work = {Forward, Update};
                p.segments[kRotated].work = {Forward, Update};
              }),
              HasSubstr("in the place of 2 runs of 's0'"));
}

TEST(VerifySchedule, GradientsOfAStep) {
  EXPECT_THAT(after([](auto &s) { s[1].gradients = Gradients(3); }),
              HasSubstr("schedule[1] does 3 with gradients, the last known is 2"));
  EXPECT_THAT(after([](auto &s) { s[0].gradients = Add; }),
              HasSubstr("schedule[0] adds to the gradients of chunk 0 before they are set"));
  EXPECT_THAT(after([](auto &s) { s[1].gradients = Set; }),
              HasSubstr("schedule[1] sets the gradients of chunk 0 a second time, for micro-batch 1"));
  EXPECT_THAT(after([](auto &s) { s[1].gradients = None; }),
              HasSubstr("schedule[1]: the gradients of chunk 0 have those of some micro-batches only"));
  EXPECT_THAT(after([](auto &s) { s[1].reduces = true; }),
              HasSubstr("schedule[2] makes gradients of chunk 0 after they are reduced"));
  EXPECT_THAT(after([](auto &s) { s[2].reduces = false; }),
              HasSubstr("schedule[2] updates before the gradients of chunk 0 are reduced"));
  Program many = withSegments({{Forward, Backward}, {Update}}, 2);
  EXPECT_THAT(verdictOn(many, {{0, 0, 2, Set}, {1}}),
              HasSubstr("schedule[0] sets the gradients of chunk 0 a second"));
  EXPECT_THAT(verdictOn(many, {{0, 0, 1, Set}, {0, 1, 1, Add, true}, {1}}),
              HasSubstr("schedule[0] and schedule[1] run 's0', but do not do the same with gradients"));
}

TEST(VerifySchedule, GradientsOfSegmentsThatMakeNone) {
  Program p = withSegments({{Forward}, {InputGradient}, {Update}}, 1);
  EXPECT_EQ(verdictOn(p, {{0}, {1}, {2}}), "accepted");
  EXPECT_THAT(verdictOn(p, {{0, 0, 1, Set}, {1}, {2}}),
              HasSubstr("schedule[0] has gradients 'set', but 's0' makes none"));
  EXPECT_THAT(verdictOn(p, {{0}, {1, 0, 1, Set}, {2}}),
              HasSubstr("schedule[1] has gradients 'set', but 's1' makes"));
  EXPECT_THAT(verdictOn(p, {{0}, {1}, {2, 0, 1, Set}}),
              HasSubstr("schedule[2] has gradients 'set', but 's2' makes"));
  EXPECT_THAT(verdictOn(p, {{0}, {1, 0, 1, None, true}, {2}}),
              HasSubstr("schedule[1] reduces gradients, but 's1' neither makes any nor updates"));
}

TEST(VerifySchedule, Evaluation) {
  auto with = [](int32_t segment) {
    Program p = microSteps();
    p.stages[0].evaluation = segment;
    return verdictOn(p, kMicroSteps);
  };
  EXPECT_EQ(with(kEvaluate), "accepted");
  EXPECT_THAT(with(kFirst), HasSubstr("evaluation segment 0 of 4 does not exist, does other work"));
  EXPECT_THAT(with(4), HasSubstr("evaluation segment 4 of 4"));
  EXPECT_THAT(with(-2), HasSubstr("evaluation segment -2 of 4"));
}

} // namespace
} // namespace ds::rt
