//===- VerifyStorageTest.cpp - Programs that move storage as no disk can --------------===//

#include "ProgramBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::HasSubstr;

/// A state of 5000 bytes in storage, which a step reads and writes through the host: buffers 0 (storage) and
/// 1 (host).
Program sample() {
  ProgramBuilder b;
  const uint32_t stored = b.keepUnits(Space::Nvme, {1250}), staging = b.keepUnits(Space::Host, {1250});
  b.program.states.push_back({"w", {}, Role::Parameter, "", {1250}, stored, {}, true, {}, {}, 0});
  b.program.streams = {StreamKind::Compute, StreamKind::Storage, StreamKind::ToHost};
  b.command(CommandKind::Storage, 0, {stored, staging}, {}, 1);
  b.command(CommandKind::Storage, 0, {staging, stored}, {}, 1);
  b.segment();
  return b.program;
}

std::string after(const std::function<void(Program &)> &change) {
  Program program = sample();
  change(program);
  const Status status = verifyProgram(program);
  return status ? "accepted" : status.error().message;
}

TEST(VerifyStorage, ReadsAndWritesAreAccepted) {
  EXPECT_EQ(after([](Program &) {}), "accepted");
  const Program program = sample();
  EXPECT_EQ(program.stages[0].arenas.nvme, 8192u); // 5000 bytes in units of 4096
}

TEST(VerifyStorage, Commands) {
  EXPECT_THAT(after([](Program &p) { p.commands[0].numOperands = 1; }), HasSubstr("has 1 operands"));
  EXPECT_THAT(after([](Program &p) { p.params = {1}, p.commands[0].numParams = 1; }),
              HasSubstr("and 1 params"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].workspace = 1; }), HasSubstr("or a workspace"));
  EXPECT_THAT(after([](Program &p) { p.commands[0].stream = 2; }),
              HasSubstr("on stream 2, which is not for storage"));
  EXPECT_THAT(after([](Program &p) { p.operands[0] = 1; }), HasSubstr("moves from host to host"));
  EXPECT_THAT(after([](Program &p) { p.operands[1] = 0; }), HasSubstr("moves from nvme to nvme"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].dtype = DType::I32; }),
              HasSubstr("moves f32 [1250] to i32"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].shape = {1000}; }), HasSubstr("to f32 [1000]"));
  EXPECT_THAT(after([](Program &p) {
                for (Buffer &buffer : p.buffers)
                  buffer.shape = {2, 500}, buffer.strides = {625, 1};
                p.states.clear();
              }),
              HasSubstr("what is not packed"));
}

TEST(VerifyStorage, WholeUnits) {
  EXPECT_THAT(after([](Program &p) { p.buffers[0].offset = 64, p.states.clear(); }),
              HasSubstr("moves bytes at nvme offset 64"));
  EXPECT_THAT(after([](Program &p) { p.buffers[1].offset = 512; }),
              HasSubstr("moves bytes at host offset 512"));
  // The last unit belongs to somebody else, in either place.
  for (const size_t lifetime : {0, 1})
    EXPECT_THAT(after([&](Program &p) { p.lifetimes[lifetime].bytes = 5000; }), HasSubstr("(8192 bytes at"));
}

TEST(VerifyStorage, OnlyStorageCommandsReachStorage) {
  EXPECT_THAT(after([](Program &p) {
                p.commands[0].kind = CommandKind::Copy;
                p.commands[0].stream = 2;
              }),
              HasSubstr("operand 0 lies in storage"));
  EXPECT_THAT(after([](Program &p) {
                p.commands[0].kind = CommandKind::Kernel;
                p.commands[0].stream = 0;
                p.operands[0] = 1, p.commands[0].workspace = 0;
              }),
              HasSubstr("has its workspace in storage"));
  EXPECT_THAT(after([](Program &p) {
                p.inputs.push_back({"x", 0, 0, false, 0, 0});
              }),
              HasSubstr("inputs[0] 'x' lies in storage"));
}

TEST(VerifyStorage, Settings) {
  EXPECT_THAT(after([](Program &p) { p.storage.blockBytes = 0; }), HasSubstr("blocks of 0 bytes"));
  EXPECT_THAT(after([](Program &p) { p.storage.blockBytes = UINT64_MAX; }), HasSubstr("allowed are 1 to"));
  EXPECT_THAT(after([](Program &p) { p.storage.queueDepth = 0; }), HasSubstr("0 requests under way"));
  EXPECT_THAT(after([](Program &p) { p.storage.parallelism = 1 << 17; }), HasSubstr("131072 threads"));
  EXPECT_THAT(after([](Program &p) { p.storage.path = std::string("a\0b", 3); }), HasSubstr("zero byte"));
  EXPECT_THAT(after([](Program &p) { p.storage.parameterPath = std::string("a\0b", 3); }),
              HasSubstr("zero byte"));
}

} // namespace
} // namespace ds::rt
