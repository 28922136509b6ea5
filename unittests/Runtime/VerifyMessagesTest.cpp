//===- VerifyMessagesTest.cpp - What stages send each other --------------------===//
//
// Two stages that pass activations forth and gradients back are accepted; each case breaks one rule and
// expects the message that names the first end that is wrong.
//
//===---------------------------------------------------------------------------===//
#include "Verdict.h"

#include "ds/Runtime/Program/Messages.h"

#include <random>

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::HasSubstr;

constexpr CollectiveKind kSend = CollectiveKind::Send, kRecv = CollectiveKind::Recv;
using Ends = std::vector<ProgramBuilder::End>;

/// Stage 0 sends h and g and receives dh, one after the other; stage 1 likewise. Commands 0 to 2, and 3 to 5.
struct Pair {
  ProgramBuilder b;
  uint32_t h[2], g[2], dh[2];

  Pair() {
    for (uint32_t stage = 0; stage < 2; ++stage) {
      if (stage > 0)
        b.addStage();
      h[stage] = b.keep({32});
      g[stage] = b.keep({8}, DType::I32);
      dh[stage] = b.keep({32});
      const auto exchange = stage == 0 ? &ProgramBuilder::send : &ProgramBuilder::receive;
      const auto back = stage == 0 ? &ProgramBuilder::receive : &ProgramBuilder::send;
      (b.*exchange)("h", h[stage], 1 - stage, 0);
      (b.*exchange)("g", g[stage], 1 - stage, 0);
      (b.*back)("dh", dh[stage], 1 - stage, 0);
      const uint32_t segment = b.segment();
      b.program.stages[stage].schedule = {{segment, 0, 1, Gradients::Set, true}};
    }
  }
  /// Makes a segment, and its stage's step, of other commands.
  void refill(uint32_t stage, const std::function<void()> &commands) {
    b.program.segments[stage].firstCommand = static_cast<uint32_t>(b.program.commands.size());
    commands();
    b.program.segments[stage].numCommands =
        static_cast<uint32_t>(b.program.commands.size()) - b.program.segments[stage].firstCommand;
  }
  std::string after(const std::function<void(Program &)> &change) const {
    return test::verdict(b.program, change);
  }
  std::string verdict() const {
    return after([](Program &) {});
  }
};

TEST(VerifyMessages, AcceptsWhatMeets) {
  EXPECT_EQ(Pair().verdict(), "accepted");
  const Pair pair;
  EXPECT_EQ(exchangeOf(pair.b.program, 1).first, 1u);
  EXPECT_EQ(exchangeOf(pair.b.program, 1).count, 1u);
}

TEST(VerifyMessages, PartnersAreOnOtherStages) {
  EXPECT_THAT(Pair().after([](Program &p) { p.params[0] = 2; }),
              HasSubstr("commands[0] names rank 2 of 2 for send 'h'"));
  EXPECT_THAT(Pair().after([](Program &p) { p.params[0] = -1; }),
              HasSubstr("commands[0] names rank -1 of 2 for send 'h'"));
  EXPECT_THAT(Pair().after([](Program &p) { p.params[0] = 0; }),
              HasSubstr("rank 0: commands[0] sends 'h' to rank 0, which is itself"));
  EXPECT_THAT(Pair().after([](Program &p) {
    p.mesh = {{"pp", 2}, {"dp", 2}};
    p.world = 4;
    p.collectives[0].axes = {0, 1};
  }),
              HasSubstr("collectives[0] 'h' is a send along pp, dp, but messages run along the stages' "
                        "axes: pp"));
}

TEST(VerifyMessages, BothEndsSayTheSame) {
  EXPECT_THAT(Pair().after([](Program &p) { p.collectives[3].name = "x"; }),
              HasSubstr("rank 0: commands[0] sends 'h' to rank 1, 32 of f32 along pp, but rank 1: "
                        "commands[3] receives 'x' from rank 0, 32 of f32 along pp"));
  EXPECT_THAT(
      Pair().after([](Program &p) {
        p.collectives[4].elements = 4;
        p.buffers[4].shape = {4};
      }),
      HasSubstr("commands[1] sends 'g' to rank 1, 8 of i32 along pp, but rank 1: commands[4] receives "
                "'g' from rank 0, 4 of i32 along pp"));
  EXPECT_THAT(
      Pair().after([](Program &p) {
        p.collectives[4].dtype = DType::F32;
        p.buffers[4].dtype = DType::F32;
      }),
      HasSubstr("commands[1] sends 'g' to rank 1, 8 of i32 along pp, but rank 1: commands[4] receives "
                "'g' from rank 0, 8 of f32 along pp"));
}

TEST(VerifyMessages, NothingIsLeftOver) {
  Pair unreceived;
  unreceived.refill(1, [&] {
    unreceived.b.receive("h", unreceived.h[1], 0);
    unreceived.b.receive("g", unreceived.g[1], 0);
  });
  EXPECT_THAT(unreceived.verdict(),
              HasSubstr("rank 0: commands[2] receives 'dh' from rank 1, which never sends it"));
  Pair unsent;
  unsent.refill(0, [&] { unsent.b.send("h", unsent.h[0], 1); });
  EXPECT_THAT(unsent.verdict(),
              HasSubstr("rank 1: commands[4] receives 'g' from rank 0, which never sends it"));
  Pair more;
  more.refill(0, [&] {
    more.b.send("h", more.h[0], 1);
    more.b.send("g", more.g[0], 1);
    more.b.receive("dh", more.dh[0], 1);
    more.b.send("h", more.h[0], 1);
  });
  EXPECT_THAT(more.verdict(), HasSubstr("rank 0: commands[9] sends 'h' to rank 1, which never receives it"));
}

TEST(VerifyMessages, EachPairHasOneOrder) {
  Pair pair;
  pair.refill(1, [&] {
    pair.b.receive("g", pair.g[1], 0);
    pair.b.receive("h", pair.h[1], 0);
    pair.b.send("dh", pair.dh[1], 0);
  });
  EXPECT_THAT(pair.verdict(), HasSubstr("rank 0: commands[0] sends 'h' to rank 1, 32 of f32 along pp, but "
                                        "rank 1: commands[6] receives 'g' from rank 0, 8 of i32 along pp"));
}

TEST(VerifyMessages, EachStreamHasItsOwnMessages) {
  const auto moved = [](uint32_t command) {
    return Pair().after([=](Program &p) {
      p.streams = {StreamKind::Compute, StreamKind::Gather};
      p.commands[command].stream = 1;
    });
  };
  EXPECT_THAT(moved(3), HasSubstr("rank 0: commands[0] sends 'h' to rank 1 and never goes on, but rank "
                                  "1: commands[3] receives 'h' from rank 0 before that"));
  EXPECT_THAT(moved(4),
              HasSubstr("commands[1] sends 'g' to rank 1 and never goes on, but rank 1: commands[4]"));
  EXPECT_EQ(Pair().after([](Program &p) {
    p.streams = {StreamKind::Compute, StreamKind::Gather};
    p.commands[1].stream = p.commands[4].stream = 1;
  }),
            "accepted");
  EXPECT_THAT(Pair().after([](Program &p) {
    p.streams = {StreamKind::Compute, StreamKind::ToHost};
    p.commands[0].stream = 1;
  }),
              HasSubstr("stream 1, which is not for communication"));
}

/// Both stages begin with what they send, in exchanges of their own or in one.
Pair crossing(bool together) {
  Pair pair;
  for (uint32_t stage : {0u, 1u})
    pair.refill(stage, [&] {
      const Ends ends = {{kSend, "s" + std::to_string(stage), pair.h[stage], 1 - stage},
                         {kRecv, "s" + std::to_string(1 - stage), pair.dh[stage], 1 - stage}};
      if (together)
        pair.b.exchange(ends);
      else
        for (const auto &end : ends)
          pair.b.exchange({end});
    });
  return pair;
}

TEST(VerifyMessages, NobodyWaitsForEver) {
  EXPECT_THAT(crossing(false).verdict(),
              HasSubstr("rank 0: commands[6] sends 's0' to rank 1 and never goes on, but rank 1: "
                        "commands[8] sends 's1' to rank 0 before that"));
  EXPECT_EQ(crossing(true).verdict(), "accepted");
  EXPECT_EQ(exchangeOf(crossing(true).b.program, 9).first, 8u);
  EXPECT_EQ(exchangeOf(crossing(true).b.program, 8).count, 2u);
}

/// A schedule of 1F1B whose messages stand at the ends of segments: the second forward of stage 0 waits for
/// stage 1, which waits in its first backward for stage 0.
TEST(VerifyMessages, SchedulesAreFollowed) {
  const auto schedule = [](bool isInterleaved) {
    Pair pair;
    Program &p = pair.b.program;
    p.accumulation = 2;
    for (uint32_t stage : {0u, 1u}) {
      p.segments[stage].work = {Work::Forward};
      p.segments[stage].numCommands = 1;
      p.segments.push_back({"backward", stage, 0, {Work::Backward}, 3 * stage + 2, 1});
    }
    for (uint32_t stage : {0u, 1u})
      p.segments.push_back({"update", stage, 0, {Work::Update}, 6, 0});
    p.stages[0].schedule = {{0, 0, 2}, {2, 0, 2}, {4}};
    p.stages[1].schedule = {{1, 0, 2}, {3, 0, 2}, {5}};
    if (isInterleaved)
      p.stages[1].schedule = {{1, 0}, {3, 0}, {1, 1}, {3, 1}, {5}};
    return pair.verdict();
  };
  EXPECT_EQ(schedule(false), "accepted");
  EXPECT_THAT(schedule(true), HasSubstr("rank 0: commands[0] sends 'h' to rank 1 and never goes "
                                        "on, but rank 1: commands[5] sends 'dh' to rank 0 before that"));
}

TEST(VerifyMessages, EvaluationsMeetToo) {
  const auto evaluation = [](bool receives) {
    Pair pair;
    Program &p = pair.b.program;
    for (uint32_t stage : {0u, 1u}) {
      const uint32_t commands = stage == 0 || receives;
      p.segments.push_back(
          {"evaluation", stage, 0, {Work::Evaluation}, uint32_t(p.commands.size()), commands});
      p.stages[stage].evaluation = static_cast<int32_t>(p.segments.size() - 1);
      if (stage == 0)
        pair.b.send("e", pair.h[0], 1);
      else if (receives)
        pair.b.receive("e", pair.h[1], 0);
    }
    return pair.verdict();
  };
  EXPECT_EQ(evaluation(true), "accepted");
  EXPECT_THAT(evaluation(false), HasSubstr("rank 0: commands[6] sends 'e' to rank 1, which "
                                           "never receives it"));
}

/// Both stages run a broadcast of h, which stage 0 sends g before; stage 1 receives it before or after.
Pair broadcasting(bool receivesFirst = true) {
  Pair pair;
  const auto broadcast = [&pair](uint32_t stage) {
    pair.b.communicateAlong({0}, CollectiveKind::Broadcast, Reduction::None, 32, {pair.h[stage]}, 0, {0});
  };
  pair.refill(0, [&] {
    pair.b.send("g", pair.g[0], 1);
    broadcast(0);
  });
  pair.refill(1, [&] {
    if (!receivesFirst)
      broadcast(1);
    pair.b.receive("g", pair.g[1], 0);
    if (receivesFirst)
      broadcast(1);
  });
  return pair;
}

TEST(VerifyMessages, CollectivesOfStagesMeet) {
  EXPECT_EQ(broadcasting().verdict(), "accepted");
  EXPECT_THAT(broadcasting().after([](Program &p) { p.params[p.commands[9].firstParam] = 1; }),
              HasSubstr("rank 0: commands[7] runs broadcast 'broadcast_7', 32 of f32 along pp, but "
                        "rank 1: commands[9] runs broadcast 'broadcast_9', 32 of f32 along pp"));
  EXPECT_THAT(broadcasting().after([](Program &p) { --p.segments[1].numCommands; }),
              HasSubstr("rank 0: commands[7] runs broadcast 'broadcast_7', in which rank 1 never "
                        "takes part"));
  EXPECT_THAT(
      broadcasting(false).verdict(),
      HasSubstr("rank 0: commands[6] sends 'g' to rank 1 and never goes on, but rank 1: commands[8] runs "
                "broadcast 'broadcast_8' before that"));
}

TEST(VerifyMessages, ExchangesAreWhole) {
  EXPECT_EQ(crossing(true).after([](Program &p) { p.params[p.commands[6].firstParam + 1] = 0; }), "accepted")
      << "that the messages of one stage are apart does not matter to the other";
  const auto behind = [](int64_t count) {
    return crossing(true).after([=](Program &p) { p.params[p.commands[6].firstParam + 1] = count; });
  };
  EXPECT_THAT(behind(2), HasSubstr("commands[6] has 2 messages of its exchange after it, but commands[7] is "
                                   "none along pp on stream 0 with 1"));
  EXPECT_THAT(behind(64),
              HasSubstr("commands[6] has 64 messages of its exchange after it, allowed are 0 to 63"));
  EXPECT_THAT(behind(-1), HasSubstr("commands[6] has -1 messages"));
  EXPECT_THAT(crossing(true).after([](Program &p) {
    p.streams = {StreamKind::Compute, StreamKind::Gather};
    p.commands[7].stream = 1;
  }),
              HasSubstr("commands[6] has 1 messages of its exchange after it, but commands[7] is none"));
  EXPECT_THAT(crossing(true).after([](Program &p) { p.params[p.commands[9].firstParam + 1] = 1; }),
              HasSubstr("commands[8] has 1 messages of its exchange after it, but commands[9] is none"));
  EXPECT_THAT(crossing(true).after([](Program &p) { p.segments[0].numCommands = 1; }),
              HasSubstr("commands[6] belongs to an exchange that is not wholly in segment 'step'"));
  EXPECT_THAT(
      crossing(true).after([](Program &p) { p.segments[0].firstCommand = 7, p.segments[0].numCommands = 1; }),
      HasSubstr("commands[7] belongs to an exchange that is not wholly in segment 'step'"));
}

TEST(VerifyMessages, ReceivedBytesAreTheReceiversAlone) {
  EXPECT_THAT(crossing(true).after([](Program &p) {
    p.operands[p.commands[7].firstOperand] = p.operands[p.commands[6].firstOperand];
  }),
              HasSubstr("commands[7] receives bytes that commands[6] of the same exchange has too"));
}

/// What is sent first must stay until the last message of the exchange has passed.
TEST(VerifyMessages, BuffersLiveAsLongAsTheExchange) {
  const auto shortLived = [](uint32_t begin, uint32_t end) {
    return crossing(true).after([=](Program &p) {
      Lifetime &sent = p.lifetimes[0]; // of h on stage 0
      sent.segment = 0;
      sent.begin = begin;
      sent.end = end;
    });
  };
  EXPECT_EQ(shortLived(0, 2), "accepted");
  EXPECT_THAT(shortLived(0, 1), HasSubstr("commands[7] uses buffers[0]"));
  EXPECT_THAT(shortLived(1, 2), HasSubstr("commands[6] uses buffers[0]"));
}

TEST(VerifyMessages, SlotsOfAnExchangeReturnTogether) {
  const auto slots = [](uint32_t ofSent, uint32_t ofReceived) {
    return crossing(true).after([=](Program &p) {
      for (Buffer &buffer : p.buffers)
        buffer.shape = {1};
      for (Collective &collective : p.collectives)
        collective.elements = 1;
      for (auto [command, count] : {std::pair(6, ofSent), {7, ofReceived}}) {
        Buffer &buffer = p.buffers[p.operands[p.commands[command].firstOperand]];
        buffer.slots = count;
        buffer.slotStride = 4;
      }
    });
  };
  EXPECT_EQ(slots(32, 31), "accepted"); // after 992 micro-batches
  EXPECT_THAT(slots(33, 32), HasSubstr("commands[6] begins an exchange of which the slots return together "
                                       "after 1056 micro-batches, the limit is 1024"));
}

TEST(VerifyMessages, ALongStepIsRefusedBeforeItIsPlayed) {
  EXPECT_THAT(Pair().after([](Program &p) {
    p.accumulation = 1 << 20;
    for (uint32_t stage : {0u, 1u}) {
      p.segments[stage].work = {Work::Forward};
      p.segments.push_back({"update", stage, 0, {Work::Update}, 6, 0});
      p.stages[stage].schedule = {{stage, 0, 1 << 20}, {stage + 2}};
    }
  }),
              HasSubstr("rank 1: commands[4] is the end of 5242880 meetings of stages in one go, the limit "
                        "is 4194304"));
}

/// One number of the program is another: it is refused or accepted, as the same program from a file is.
TEST(VerifyMessages, AnyNumberMayBeWrong) {
  std::mt19937 random(5);
  int accepted = 0, refused = 0;
  const auto value = [&]() -> uint32_t {
    const uint32_t some[] = {0, 1, 2, 3, 7, 63, 64, 255, 65536, UINT32_MAX};
    return some[random() % std::size(some)];
  };
  for (int round = 0; round < 3000; ++round) {
    Program p = round % 2 == 0 ? crossing(true).b.program : broadcasting().b.program;
    Command &command = p.commands[random() % p.commands.size()];
    Segment &segment = p.segments[random() % 2];
    ScheduleEntry &entry = p.stages[random() % 2].schedule[0];
    Collective &collective = p.collectives[random() % p.collectives.size()];
    uint32_t *numbers[] = {&command.callee,
                           &command.firstOperand,
                           &command.numOperands,
                           &command.firstParam,
                           &command.numParams,
                           &segment.stage,
                           &segment.firstCommand,
                           &segment.numCommands,
                           &entry.segment,
                           &entry.count,
                           &entry.firstMicroBatch,
                           &p.buffers[random() % 6].slots,
                           &p.operands[random() % p.operands.size()],
                           &p.lifetimes[0].stage};
    const uint32_t changed = value(), which = random() % (std::size(numbers) + 4);
    if (which < std::size(numbers))
      *numbers[which] = changed;
    else if (which == std::size(numbers))
      p.params[random() % p.params.size()] = static_cast<int32_t>(changed);
    else if (which == std::size(numbers) + 1)
      collective.axes = AxisSet::fromBits(changed);
    else if (which == std::size(numbers) + 2)
      collective.elements = changed;
    else
      collective.kind = static_cast<CollectiveKind>(changed % 8);
    const bool isValid = bool(verifyProgram(p));
    ++(isValid ? accepted : refused);
    const Result<std::vector<uint8_t>> bytes = serializeProgram(p);
    ASSERT_TRUE(bytes) << round;
    EXPECT_EQ(bool(parseProgram(*bytes, "p.dsx")), isValid) << round;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

} // namespace
} // namespace ds::rt
