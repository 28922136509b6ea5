//===- VerifyProgramTest.cpp - One case per rule of the program verifier -------===//
//
// Each case takes a valid program, breaks one rule and expects the message that names it.
//
//===---------------------------------------------------------------------------===//
#include "Verdict.h"

namespace ds::rt {
namespace {

using test::bits;
using test::ProgramBuilder;
using testing::HasSubstr;

/// y = x * w + bias with a temporary, then a copy of y: small, but with one of each kind of thing.
ProgramBuilder sample() {
  ProgramBuilder b;
  const uint32_t x = b.input("x", {4, 8}), w = b.state("w", {8, 6}), bias = b.state("bias", {6});
  const uint32_t y = b.place({4, 6}), z = b.place({4, 6});
  b.output("loss");
  b.live(y, 0, 0, 2);
  b.live(z, 0, 1, 2);
  b.library(LibraryFn::Matmul, {x, w, y, bias}, {0, 0, 0, 1});
  b.library(LibraryFn::Copy, {y, z});
  b.segment();
  return b;
}

/// The verifier's message on the sample after `change`, or "accepted".
std::string after(const std::function<void(Program &)> &change) {
  return test::verdict(sample().program, change);
}

TEST(VerifyProgram, AcceptsTheSample) {
  EXPECT_EQ(after([](Program &) {}), "accepted");
}

TEST(VerifyProgram, Head) {
  EXPECT_THAT(after([](Program &p) { p.target = "cuda"; }),
              HasSubstr("target is 'cuda', the known targets are cpu, cuda:sm_80 and cuda:sm_90"));
  EXPECT_THAT(after([](Program &p) { p.threads = 0; }), HasSubstr("threads is 0"));
  EXPECT_THAT(after([](Program &p) { p.world = 0; }), HasSubstr("world is 0, allowed are 1 to 65536"));
  EXPECT_THAT(after([](Program &p) { p.world = 1 << 17; }), HasSubstr("world is 131072"));
  EXPECT_THAT(after([](Program &p) { p.world = 2; }),
              HasSubstr("mesh []: its axes have 1 ranks, but the program is for 2"));
  EXPECT_THAT(after([](Program &p) {
                p.mesh = {{"pp", 0}};
              }),
              HasSubstr("mesh [pp = 0]: axis 'pp' has size 0"));
  EXPECT_THAT(after([](Program &p) {
                p.mesh = {{"dp", 2}, {"tp", 3}};
                p.world = 5;
              }),
              HasSubstr("mesh [dp = 2, tp = 3]: its axes have at least 6 ranks, but the program is for 5"));
  EXPECT_THAT(after([](Program &p) { p.dataAxes = {1}; }),
              HasSubstr("data differ along axes 0x2, but the mesh has 0"));
  EXPECT_THAT(after([](Program &p) { p.stageAxes = {2}; }),
              HasSubstr("stages differ along axes 0x4, but the mesh has 0"));
  EXPECT_THAT(after([](Program &p) {
                p.mesh = {{"pp", 1}, {"dp", 1}};
                p.stageAxes = {0};
                p.dataAxes = {0, 1};
              }),
              HasSubstr("data differ along pp, but the ranks along it have the same micro-batches"));
  EXPECT_THAT(after([](Program &p) { p.microBatch = 0; }), HasSubstr("micro-batch 0"));
  EXPECT_THAT(after([](Program &p) { p.accumulation = 2; }),
              HasSubstr("runs nothing of chunk 0 for micro-batch 1"));
  EXPECT_THAT(after([](Program &p) { p.accumulation = (1u << 20) + 1; }),
              HasSubstr("accumulation 1048577 must both be at least 1, accumulation at most 1048576"));
  EXPECT_THAT(after([](Program &p) { p.weightsFile = "../w"; }), HasSubstr("not a plain file name"));
  EXPECT_EQ(after([](Program &p) { p.modelConfig = "{}"; }), "accepted");
  EXPECT_THAT(after([](Program &p) { p.modelConfig = "[1]"; }),
              HasSubstr("modelConfig, 3 bytes, is not one JSON object of at most 16777216 bytes"));
  EXPECT_THAT(after([](Program &p) { p.streams.push_back(StreamKind::Compute); }),
              HasSubstr("one compute stream"));
  EXPECT_THAT(after([](Program &p) { p.streams = {}; }), HasSubstr("0 streams"));
  EXPECT_THAT(after([](Program &p) { p.numEvents = 1u << 31; }),
              HasSubstr("2147483648 events, but only 2 commands"));
  EXPECT_THAT(after([](Program &p) { p.stages[0].arenas.device = UINT64_MAX; }),
              HasSubstr("the device arena has"));
}

TEST(VerifyProgram, Buffers) {
  EXPECT_THAT(after([](Program &p) { p.buffers[1].offset = p.stages[0].arenas.device - 4; }),
              HasSubstr("buffers[1] ends at"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].offset += 2; }),
              HasSubstr("not a multiple of the 4 bytes of f32"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].shape[0] = -1; }), HasSubstr("neither may be negative"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].strides[0] = -6; }), HasSubstr("neither may be negative"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].shape[0] = INT64_MAX; }), HasSubstr("overflows 64 bits"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].strides[0] = INT64_MAX; }), HasSubstr("overflows 64 bits"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].offset = UINT64_MAX - 3; }),
              HasSubstr("overflows 64 bits"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].strides.pop_back(); }), HasSubstr("rank 2 and 1 strides"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].dtype = DType(9); }), HasSubstr("dtype 9"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].space = Space(3); }), HasSubstr("space 3"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].space = Space::Host; }),
              HasSubstr("but the host arena has 0"));
}

// y, which the product writes and the copy reads, gets slots that lie behind everything else.
TEST(VerifyProgram, Slots) {
  auto slotted = [](const std::function<void(Program &, Buffer &)> &change) {
    return after([&](Program &p) {
      ArenaBytes &arenas = p.stages[0].arenas;
      Buffer &y = p.buffers[3];
      y.offset = arenas.device, y.slots = 3, y.slotStride = 128;
      arenas.device += 3 * 128;
      p.lifetimes[4] = {Space::Device, y.offset, 3 * 128};
      change(p, y);
    });
  };
  EXPECT_EQ(slotted([](Program &, Buffer &) {}), "accepted");
  EXPECT_THAT(slotted([](Program &, Buffer &y) { y.slots = 0; }),
              HasSubstr("buffers[3] has 0 slots, allowed are 1"));
  EXPECT_THAT(slotted([](Program &, Buffer &y) { y.slots = 1025; }),
              HasSubstr("has 1025 slots, allowed are 1 to 1024"));
  EXPECT_THAT(slotted([](Program &, Buffer &y) { y.slots = 1; }),
              HasSubstr("a slot stride of 128, but one slot"));
  EXPECT_THAT(slotted([](Program &, Buffer &y) { y.slotStride = 126; }),
              HasSubstr("buffers[3].slotStride 126 is not a multiple of the 4 bytes of f32"));
  EXPECT_THAT(slotted([](Program &, Buffer &y) { y.slotStride = 92; }),
              HasSubstr("buffers[3] spans 96 bytes, but its 3 slots are 92 apart"));
  EXPECT_THAT(slotted([](Program &, Buffer &y) { y.slotStride = UINT64_MAX - 3; }),
              HasSubstr("slot stride of 18446744073709551612 overflows 64 bits in 3 slots"));
  EXPECT_THAT(slotted([](Program &, Buffer &y) { y.slots = 4; }), HasSubstr("buffers[3] ends at byte"));
  EXPECT_THAT(slotted([](Program &p, Buffer &) { p.lifetimes[4].bytes = 2 * 128; }),
              HasSubstr("uses buffers[3] (96 bytes at device offset 704), which no lifetime holds then"));
  // One lifetime for all slots, not one for each.
  EXPECT_THAT(slotted([](Program &p, Buffer &y) {
                p.lifetimes[4].bytes = 128;
                for (uint64_t slot : {1, 2})
                  p.lifetimes.push_back({Space::Device, y.offset + slot * 128, 128});
              }),
              HasSubstr("which no lifetime holds then"));
  EXPECT_THAT(slotted([](Program &p, Buffer &y) {
                p.buffers[4].slots = 509, p.buffers[4].slotStride = y.slotStride;
                p.stages[0].arenas.device += 509 * 128;
              }),
              HasSubstr("slots return together after 1527 micro-batches, the limit is 1024"));
}

// The host asks for these between steps, when no micro-batch is worked on.
TEST(VerifyProgram, StatesAndOutputsHaveOneSlot) {
  EXPECT_THAT(after([](Program &p) { p.buffers[1].slots = 2, p.buffers[1].slotStride = 192; }),
              HasSubstr("states[0] 'w' is not packed in row-major order, or lies elsewhere"));
  EXPECT_THAT(after([](Program &p) { p.buffers[5].slots = 2, p.buffers[5].slotStride = 4; }),
              HasSubstr("has not one element or lies elsewhere on every rank or for every micro-batch"));
}

// Slots of other numbers meet sooner or later, those that move alike do not.
TEST(VerifyProgram, OverlapKnowsSlots) {
  ProgramBuilder b;
  const uint32_t pair = b.slotted({32}, 3);
  const uint32_t head = b.view(pair, 0, {16}, {1}), tail = b.view(pair, 16, {16}, {1});
  const uint32_t fixed = b.view(pair, 48, {16}, {1});
  b.program.buffers[fixed].slots = 1, b.program.buffers[fixed].slotStride = 0;
  b.library(LibraryFn::Copy, {head, tail});
  b.segment();
  EXPECT_EQ(test::verdict(b.program, [](Program &) {}), "accepted");
  EXPECT_THAT(test::verdict(b.program, [&](Program &p) { p.operands[1] = fixed; }),
              HasSubstr("shares bytes with operand 0"));
}

TEST(VerifyProgram, Signature) {
  EXPECT_THAT(after([](Program &p) { p.states[1].name = "w"; }),
              HasSubstr("the name 'w' of an earlier entry"));
  EXPECT_THAT(after([](Program &p) { p.states[0].aliases = {"bias"}; }), HasSubstr("the name 'bias'"));
  EXPECT_THAT(after([](Program &p) { p.states[0].readNames = {"bias"}; }), HasSubstr("the name 'bias'"));
  EXPECT_THAT(after([](Program &p) { p.states[0].name = ""; }), HasSubstr("a name of 0 bytes"));
  EXPECT_THAT(after([](Program &p) { p.states[0].buffer = 99; }), HasSubstr("names buffer 99 of"));
  EXPECT_THAT(after([](Program &p) {
                p.states[0].logicalShape = {7, 8};
              }),
              HasSubstr("has 56 elements on each rank, but its buffer holds 48"));
  EXPECT_THAT(after([](Program &p) { p.states[0].role = Role(6); }), HasSubstr("role 6"));
  EXPECT_THAT(after([](Program &p) { p.states[0].init.kind = Init::Kind(6); }),
              HasSubstr("initialisation 6, the last known are 5 and 5"));
  EXPECT_EQ(after([](Program &p) { p.states[0].init = {Init::Kind::Sinusoid, 10000, 0}; }), "accepted");
  EXPECT_THAT(after([](Program &p) {
                p.states[0].init = {Init::Kind::Sinusoid, 0, 0};
              }),
              HasSubstr("states[0] 'w' of [8x6] cannot start from sinusoids with 0"));
  EXPECT_THAT(after([](Program &p) {
                p.states[1].init = {Init::Kind::Sinusoid, 10000, 0};
              }),
              HasSubstr("states[1] 'bias' of [6] cannot start from sinusoids with 10000"));
  EXPECT_THAT(
      after([](Program &p) { p.states[1].buffer = p.states[0].buffer, p.states[1].logicalShape = {48}; }),
      HasSubstr("states 'w' and 'bias' share"));
  EXPECT_THAT(after([](Program &p) { p.states[1].role = Role::Master, p.states[1].owner = "v"; }),
              HasSubstr("states[1] 'bias' is the master of 'v', which is no parameter"));
  EXPECT_THAT(after([](Program &p) { p.states[1].role = Role::Master, p.states[1].owner = "bias"; }),
              HasSubstr("is the master of 'bias', which is no parameter"));
  EXPECT_THAT(after([](Program &p) { p.states[1].role = Role::Master, p.states[1].owner = "w"; }),
              HasSubstr("states[1] 'bias' has 6 elements, but is the master of 'w' with 48"));
  EXPECT_THAT(after([](Program &p) { p.states[1].role = Role::Moment, p.states[1].owner = "w"; }),
              HasSubstr("states[1] 'bias' is a moment without a slot"));
  EXPECT_THAT(after([](Program &p) { p.states[0].slot = "exp_avg"; }),
              HasSubstr("states[0] 'w' is a parameter with a slot"));
  EXPECT_THAT(after([](Program &p) {
                for (State &state : p.states)
                  state.role = Role::Moment, state.owner = "w", state.slot = "exp_avg";
              }),
              HasSubstr("states[1] 'bias' has the slot 'exp_avg' of 'w', which states[0] has"));
  EXPECT_THAT(after([](Program &p) { p.inputs[0].buffer = 99; }), HasSubstr("names buffer 99 of"));
  EXPECT_THAT(after([](Program &p) { p.inputs[0].indexLimit = 5; }),
              HasSubstr("index limit 5 with dtype f32"));
  const std::vector<std::pair<std::vector<IndexRange>, std::string>> wrong = {
      {{{0, 1}, {1, 1}}, "has 1 targets from element 1 on, where elements 2 to"},
      {{{0, 0}}, "has 0 targets from element 0 on"},
      {{{0, 1000}}, "has 1000 targets from element 0 on"},
      {{{1000, 1}}, "has 1 targets from element 1000 on"},
      {{{0, UINT64_MAX}}, "has 18446744073709551615 targets from element 0 on"}};
  for (const auto &[targets, complaint] : wrong)
    EXPECT_THAT(after([&, &targets = targets](Program &p) { p.inputs[0].targets = targets; }),
                HasSubstr(complaint));
  EXPECT_THAT(after([](Program &p) { p.outputs[0].buffer = 0; }), HasSubstr("has not one element"));
  EXPECT_THAT(after([](Program &p) { p.outputs[0].buffer = 99; }), HasSubstr("names buffer 99 of"));
}

TEST(VerifyProgram, CopiesAreOnTheStreamOfTheirWay) {
  ProgramBuilder b;
  b.program.streams = {StreamKind::Compute, StreamKind::ToHost, StreamKind::ToDevice};
  const uint32_t there = b.keep({16}), here = b.keep({16});
  b.program.buffers[here].space = b.program.lifetimes.back().space = Space::Host;
  b.arenas().host = b.arenas().device;
  b.command(CommandKind::Copy, 0, {there, here}, {}, 1);
  b.command(CommandKind::Copy, 0, {here, there}, {}, 2);
  b.segment();
  auto after = [&](const std::function<void(Program &)> &change) {
    Program program = b.program;
    change(program);
    const Status status = verifyProgram(program);
    return status ? "accepted" : status.error().message;
  };
  EXPECT_EQ(after([](Program &) {}), "accepted");
  EXPECT_THAT(after([](Program &p) { p.commands[0].stream = 2; }),
              HasSubstr("copies from device to host on a stream of kind to_device, expected to_host"));
  EXPECT_THAT(after([](Program &p) { p.commands[1].stream = 1; }),
              HasSubstr("copies from host to device on a stream of kind to_host, expected to_device"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].stream = 0; }), HasSubstr("of kind compute, expected"));
  EXPECT_THAT(after([](Program &p) { p.operands[1] = p.operands[0]; }),
              HasSubstr("copies within the device's memory"));
}

TEST(VerifyProgram, Commands) {
  EXPECT_THAT(after([](Program &p) { p.commands[0].kind = CommandKind(7); }), HasSubstr("kind 7"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].stream = 1; }), HasSubstr("stream 1 of 1"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].firstOperand = UINT32_MAX; }),
              HasSubstr("uses operands 4294967295"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].numParams = 99; }), HasSubstr("uses params 0 to 99 of 4"));
  EXPECT_THAT(after([](Program &p) { p.operands[0] = 99; }), HasSubstr("operand 0 names buffer 99"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].workspace = 99; }), HasSubstr("workspace 99"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].location = 5; }), HasSubstr("location 5 of 1"));
  EXPECT_THAT(after([](Program &p) { p.strings.clear(); }), HasSubstr("commands[0] has location 0 of 0"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].callee = 14; }), HasSubstr("library function 14 of 14"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].callee = 1 << 16; }),
              HasSubstr("library function 65536 of 14"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].kind = CommandKind::Kernel; }),
              HasSubstr("launches kernel 0 of 0"));
  EXPECT_THAT(after([](Program &p) {
                p.streams.push_back(StreamKind::ToHost);
                p.commands[0].stream = 1;
              }),
              HasSubstr("computes on stream 1"));
  auto onHost = [](Program &p) {
    p.streams.push_back(StreamKind::Host);
    p.hostThreads = 1;
    p.commands[0].stream = 1;
  };
  EXPECT_THAT(after(onHost), HasSubstr("not all that it touches is in the host's memory"));
  EXPECT_THAT(after([&](Program &p) {
                onHost(p);
                p.stages[0].arenas.host = p.stages[0].arenas.device;
                for (Buffer &buffer : p.buffers)
                  buffer.space = Space::Host;
              }),
              HasSubstr("is on the host's stream, which has no such function"));
  EXPECT_THAT(after([&](Program &p) {
                onHost(p);
                p.hostThreads = 0;
              }),
              HasSubstr("the host stream has 0 threads"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].predicate = 99; }), HasSubstr("predicate 99 of"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].predicate = 0; }),
              HasSubstr("has a predicate, but computes nothing on the host's stream"));
  EXPECT_THAT(after([&](Program &p) {
                onHost(p);
                p.commands[0].predicate = 0;
              }),
              HasSubstr("has buffers[0] as predicate, which is no truth value in the host's memory"));
  EXPECT_THAT(after([](Program &p) {
                p.kernels = {{"f", 1, 1}};
              }),
              HasSubstr("1 kernels with an image of 0 bytes"));
  EXPECT_THAT(after([](Program &p) { p.kernels = {{"f", 1, 0}}; }), HasSubstr("grain 0"));
  EXPECT_THAT(after([](Program &p) {
                p.kernels = {{"f g", 1, 1}};
              }),
              HasSubstr("'f g' is not a symbol name"));
}

TEST(VerifyProgram, Lifetimes) {
  EXPECT_THAT(after([](Program &p) { p.lifetimes[0].bytes = 1 << 20; }), HasSubstr("lifetimes[0] holds"));
  EXPECT_THAT(after([](Program &p) { p.lifetimes[0].offset = UINT64_MAX; }), HasSubstr("lifetimes[0] holds"));
  EXPECT_THAT(after([](Program &p) { p.stages[0].arenas.device = uint64_t(1) << 31; }),
              HasSubstr("the device arena has 2147483648 bytes, but all that lives in it ends at byte"));
  EXPECT_THAT(after([](Program &p) { p.stages[0].arenas.nvme = uint64_t(1) << 32; }),
              HasSubstr("the nvme arena has 4294967296 bytes, but all that lives in it ends at byte 0"));
  EXPECT_THAT(after([](Program &p) { p.lifetimes[4].segment = 3; }), HasSubstr("names segment 3 of 1"));
  EXPECT_THAT(after([](Program &p) { p.lifetimes[4].end = 3; }),
              HasSubstr("spans commands 0 to 3 of a segment of 2"));
  EXPECT_THAT(after([](Program &p) { p.lifetimes[4].end = 1; }), HasSubstr("which no lifetime holds then"));
  EXPECT_THAT(after([](Program &p) { p.lifetimes[5].offset = p.lifetimes[4].offset; }),
              HasSubstr("lifetimes[5] and lifetimes[4] hold the same bytes"));
  EXPECT_THAT(after([](Program &p) { p.lifetimes[4].offset = p.lifetimes[1].offset; }),
              HasSubstr("lifetimes[4] and lifetimes[1] hold the same bytes"));
  EXPECT_THAT(after([](Program &p) { p.lifetimes.erase(p.lifetimes.begin() + 1); }),
              HasSubstr("states[0] 'w' at device offset 128 lies in no lifetime"));
}

TEST(VerifyProgram, LifetimesMayFollowOneAnother) {
  ProgramBuilder b;
  const uint32_t a = b.place({16});
  b.live(a, 0, 0, 1);
  b.live(a, 0, 1, 2);
  b.library(LibraryFn::Fill, {a}, {bits(1)});
  b.library(LibraryFn::Fill, {a}, {bits(2)});
  b.segment();
  EXPECT_TRUE(verifyProgram(b.program));
}

TEST(VerifyProgram, Events) {
  auto program = [](std::vector<std::pair<CommandKind, uint16_t>> commands) {
    ProgramBuilder b;
    b.program.numEvents = 2;
    for (auto [kind, event] : commands)
      b.command(kind, event, {});
    b.segment();
    Status status = verifyProgram(b.program);
    return status ? std::string("accepted") : status.error().message;
  };
  using enum CommandKind;
  EXPECT_EQ(program({{RecordEvent, 1}, {WaitEvent, 1}, {WaitEvent, 1}}), "accepted");
  EXPECT_THAT(program({{WaitEvent, 1}, {RecordEvent, 1}}),
              HasSubstr("no earlier command of the segment records"));
  EXPECT_THAT(program({{RecordEvent, 1}, {RecordEvent, 1}}), HasSubstr("a second time"));
  EXPECT_THAT(program({{RecordEvent, 0}, {RecordEvent, 2}}), HasSubstr("names event 2 of 2"));
}

TEST(VerifyProgram, OverlapKnowsInterleavedViews) {
  ProgramBuilder b;
  const uint32_t qkv = b.keep({2, 8, 48});
  const uint32_t q = b.view(qkv, 0, {2, 8, 16}, {384, 48, 1}), k = b.view(qkv, 16, {2, 8, 16}, {384, 48, 1});
  const uint32_t wide = b.view(qkv, 8, {2, 8, 16}, {384, 48, 1}), row = b.view(qkv, 48, {16}, {1});
  b.library(LibraryFn::Copy, {q, k});
  b.segment();
  auto copies = [&](uint32_t from, uint32_t to) {
    b.program.operands = {from, to};
    return static_cast<bool>(verifyProgram(b.program));
  };
  EXPECT_TRUE(copies(q, k));
  EXPECT_TRUE(copies(k, q));
  EXPECT_FALSE(copies(q, q));
  EXPECT_FALSE(copies(q, wide));
  const uint32_t first = b.view(qkv, 0, {16}, {1});
  EXPECT_TRUE(copies(first, row));
}

} // namespace
} // namespace ds::rt
