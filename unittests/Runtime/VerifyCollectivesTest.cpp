//===- VerifyCollectivesTest.cpp - One case per rule of programs of many ranks -===//
//
// A valid step on four ranks, with sharded states and each kind of collective; each case breaks one rule and
// expects the message that names it.
//
//===---------------------------------------------------------------------------===//
#include "Verdict.h"
#include "ds/Runtime/Program/ProgramFile.h"

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::HasSubstr;

// Buffers and commands of the sample, by number.
enum : uint32_t { kShard, kFull, kWindow, kGrad, kGradWindow, kLoss, kSend, kReceive };
enum : uint32_t { kGather, kScatter, kReduce, kCast, kExchange };

/// A bucket of 4 x 32 elements holds w (48 elements at 0) and bias (7 at 64).
ProgramBuilder sample() {
  ProgramBuilder b;
  b.ranks(4);
  b.keep({32});
  b.keep({128});
  b.rankWindow(kFull, {0});
  b.keep({4, 32});
  b.rankWindow(kGrad, {0});
  b.keep({});
  b.keep({128}, DType::BF16);
  b.keep({128}, DType::BF16);
  b.sharded("w", {6, 8}, kShard, 0);
  b.sharded("bias", {7}, kShard, 64);
  b.communicate(CollectiveKind::AllGather, Reduction::None, 32, {kShard, kFull}, 1);
  b.communicate(CollectiveKind::ReduceScatter, Reduction::Sum, 32, {kGrad, kGradWindow}, 2);
  b.communicate(CollectiveKind::AllReduce, Reduction::Max, 1, {kLoss, kLoss});
  b.communicate(CollectiveKind::Broadcast, Reduction::None, 32, {kShard}, 1, {3});
  b.communicate(CollectiveKind::AllToAll, Reduction::None, 32, {kSend, kReceive}, 1);
  b.segment();
  return b;
}

/// The verifier's message on the sample after `change`, or "accepted".
std::string after(const std::function<void(Program &)> &change) {
  return test::verdict(sample().program, change);
}

/// Makes operand `k` of a command of the sample name `buffer`.
void setOperand(Program &p, uint32_t command, uint32_t k, uint32_t buffer) {
  p.operands[p.commands[command].firstOperand + k] = buffer;
}

TEST(VerifyCollectives, AcceptsTheSample) {
  EXPECT_EQ(after([](Program &) {}), "accepted");
  EXPECT_EQ(after([](Program &p) { setOperand(p, kGather, 0, kWindow); }), "accepted") << "in place";
}

TEST(VerifyCollectives, WindowsOfEveryRank) {
  // Rank 3's window ends with the bucket; one element further it would not.
  EXPECT_THAT(after([](Program &p) { p.buffers[kWindow].axisStrides = {p.stages[0].arenas.device}; }),
              HasSubstr("buffers[2] ends at byte"));
  EXPECT_THAT(after([](Program &p) { p.buffers[kWindow].axisStrides = {UINT64_MAX - 3}; }),
              HasSubstr("stride of 18446744073709551612 along 'dp' overflows 64 bits on 4 ranks"));
  EXPECT_THAT(after([](Program &p) { p.buffers[kWindow].axisStrides = {130}; }),
              HasSubstr("axisStrides 130 is not a multiple of the 4 bytes of f32"));
  EXPECT_THAT(after([](Program &p) {
                setOperand(p, kCast, 0, kWindow);
                p.buffers[kWindow].axisStrides = {132};
              }),
              HasSubstr("buffers[2] (128 bytes at device offset 128), which no lifetime holds"));
  EXPECT_THAT(after([](Program &p) { p.buffers[kShard].axisStrides = {128}; }),
              HasSubstr("states[0] 'w' is not packed in row-major order, or lies elsewhere on every rank"));
  EXPECT_THAT(after([](Program &p) {
                p.inputs = {{"x", kWindow, 0, false, 0}};
              }),
              HasSubstr("inputs[0] 'x' names buffer 2 of"));
  EXPECT_THAT(after([](Program &p) {
                p.buffers.push_back(p.buffers[kLoss]);
                p.buffers.back().axisStrides = {4};
                p.outputs = {{"loss", uint32_t(p.buffers.size() - 1)}};
              }),
              HasSubstr("outputs[0] 'loss' names buffer"));
}

TEST(VerifyCollectives, AxisStrides) {
  EXPECT_THAT(after([](Program &p) {
                p.buffers[kWindow].axisStrides = {128, 0};
              }),
              HasSubstr("buffers[2] has strides along 2 axes, but the mesh has 1"));
  EXPECT_THAT(after([](Program &p) { p.buffers[kWindow].axisStrides = {0}; }),
              HasSubstr("buffers[2] has strides along 1 axes that are all 0, expected none"));
}

TEST(VerifyCollectives, Layouts) {
  EXPECT_THAT(after([](Program &p) { p.states[0].layout.shardElements = 33; }),
              HasSubstr("states[0] 'w' has shards of 33 elements, but its buffer is [32]"));
  EXPECT_THAT(after([](Program &p) { p.states[1].layout.offset = 122; }),
              HasSubstr("states[1] 'bias' has 7 elements at element 122 of a bucket of 128"));
  EXPECT_THAT(after([](Program &p) { p.states[1].layout.offset = UINT64_MAX; }),
              HasSubstr("at element 18446744073709551615 of a bucket of 128"));
  EXPECT_EQ(after([](Program &p) { p.states[1].layout.offset = 121; }), "accepted");
  EXPECT_EQ(after([](Program &p) { p.states[1].layout.offset = 48; }), "accepted");
  EXPECT_THAT(after([](Program &p) { p.states[1].layout.offset = 47; }),
              HasSubstr("states 'w' and 'bias' share device byte 0"));
  EXPECT_THAT(after([](Program &p) { p.states[1].layout = {}; }),
              HasSubstr("states[1] 'bias' has 7 elements on each rank, but its buffer holds 32"));
  EXPECT_THAT(after([](Program &p) {
                p.buffers.push_back(p.buffers[kShard]);
                p.states[1].buffer = uint32_t(p.buffers.size() - 1);
                p.buffers.back().shape = {16};
                p.states[1].layout = {{}, {0}, 0, 16};
              }),
              HasSubstr("states 'w' and 'bias' share device byte 0"));
}

TEST(VerifyCollectives, LayoutsThatDoNotFit) {
  EXPECT_THAT(after([](Program &p) { p.states[0].layout.bucket = {1}; }),
              HasSubstr("states[0] 'w' has axes 0x2, but the mesh has 1"));
  EXPECT_THAT(after([](Program &p) { p.states[1].layout.cuts = {{0}}; }),
              HasSubstr("states[1] 'bias' is cut twice along dp"));
  EXPECT_THAT(after([](Program &p) {
                p.states[1].layout = {{{0}}, {}, 0, 0};
              }),
              HasSubstr("states[1] 'bias' has size 7 in dimension 0, which dp cannot cut into 4 parts"));
  EXPECT_THAT(after([](Program &p) {
                p.states[0].layout = {{AxisSet(), {0}}, {}, 0, 0};
              }),
              HasSubstr("states[0] 'w' has 12 elements on each rank, but its buffer holds 32"));
}

TEST(VerifyCollectives, Table) {
  EXPECT_THAT(after([](Program &p) { p.collectives[0].kind = CollectiveKind(int(kLastCollective) + 1); }),
              HasSubstr("has kind 7"));
  EXPECT_THAT(after([](Program &p) { p.collectives[0].reduction = Reduction(4); }), HasSubstr("reduction 4"));
  EXPECT_THAT(after([](Program &p) { p.collectives[0].dtype = DType(9); }), HasSubstr("dtype 9"));
  EXPECT_THAT(after([](Program &p) { p.collectives[0].name = ""; }), HasSubstr("a name of 0 bytes"));
  EXPECT_THAT(
      after([](Program &p) { p.collectives[0].kind = CollectiveKind::Send; }),
      HasSubstr("'all_gather_0' is a send along dp, but messages run along the stages' axes: no axis"));
  EXPECT_THAT(after([](Program &p) { p.collectives[0].reduction = Reduction::Sum; }),
              HasSubstr("is a all_gather with reduction sum"));
  EXPECT_THAT(after([](Program &p) { p.collectives[1].reduction = Reduction::None; }),
              HasSubstr("is a reduce_scatter with reduction none"));
  EXPECT_THAT(after([](Program &p) { p.collectives[1].dtype = DType::Bool; }),
              HasSubstr("reduces elements of i1"));
  EXPECT_THAT(after([](Program &p) { p.collectives[0].axes = {}; }),
              HasSubstr("runs along axes 0x0, expected some of the 1 of the mesh"));
  EXPECT_THAT(after([](Program &p) {
                p.collectives[0].axes = {0, 1};
              }),
              HasSubstr("runs along axes 0x3, expected some of the 1 of the mesh"));
  EXPECT_THAT(after([](Program &p) { p.collectives[0].elements = 0; }), HasSubstr("moves 0 elements"));
  EXPECT_THAT(after([](Program &p) { p.collectives[0].elements = UINT64_MAX; }),
              HasSubstr("moves 18446744073709551615 elements of each of 4 ranks"));
}

TEST(VerifyCollectives, Commands) {
  EXPECT_THAT(after([](Program &p) { p.commands[kGather].callee = 5; }), HasSubstr("collective 5 of 5"));
  EXPECT_THAT(after([](Program &p) { p.streams[1] = StreamKind::ToHost; }),
              HasSubstr("stream 1, which is not for communication"));
  EXPECT_THAT(after([](Program &p) { p.commands[kGather].numOperands = 1; }),
              HasSubstr("has 1 operands and 0 params"));
  EXPECT_THAT(after([](Program &p) { p.commands[kCast].numParams = 0; }),
              HasSubstr("has 1 operands and 0 params"));
  EXPECT_THAT(after([](Program &p) { p.params[p.commands[kCast].firstParam] = 4; }),
              HasSubstr("names rank 4 of 4 for broadcast 'broadcast_3'"));
  EXPECT_THAT(after([](Program &p) { p.params[p.commands[kCast].firstParam] = -1; }),
              HasSubstr("names rank -1 of 4 for broadcast 'broadcast_3'"));
}

TEST(VerifyCollectives, Operands) {
  EXPECT_THAT(after([](Program &p) { p.collectives[kGather].elements = 33; }),
              HasSubstr("operand 0 is f32 [32], expected 33 packed elements of f32 for all_gather"));
  EXPECT_THAT(after([](Program &p) { setOperand(p, kGather, 1, kShard); }),
              HasSubstr("operand 1 is f32 [32], expected 128 packed elements"));
  EXPECT_THAT(after([](Program &p) { setOperand(p, kGather, 1, kSend); }),
              HasSubstr("operand 1 is bf16 [128], expected 128 packed elements of f32"));
  EXPECT_THAT(after([](Program &p) { setOperand(p, kScatter, 0, kShard); }),
              HasSubstr("operand 0 is f32 [32], expected 128 packed elements"));
  EXPECT_THAT(after([](Program &p) { setOperand(p, kExchange, 1, kFull); }), HasSubstr("operand 1 is f32"));
  EXPECT_THAT(after([](Program &p) {
                p.buffers[kGrad].shape = {32, 4};
                p.buffers[kGrad].strides = {1, 32};
              }),
              HasSubstr("operand 0 is f32 [32x4], expected 128 packed elements"));
}

TEST(VerifyCollectives, SharedBytes) {
  EXPECT_THAT(after([](Program &p) { p.buffers[kGradWindow].axisStrides = {}; }),
              HasSubstr("share bytes in a way that reduce_scatter does not allow"));
  EXPECT_THAT(after([](Program &p) {
                setOperand(p, kGather, 0, kWindow);
                p.buffers[kWindow].axisStrides = {124};
              }),
              HasSubstr("share bytes in a way that all_gather does not allow"));
  EXPECT_THAT(after([](Program &p) { setOperand(p, kExchange, 1, kSend); }),
              HasSubstr("share bytes in a way that all_to_all does not allow"));
  EXPECT_THAT(after([](Program &p) {
                p.collectives[kReduce].elements = 32;
                setOperand(p, kReduce, 0, kWindow);
                setOperand(p, kReduce, 1, kFull);
                p.buffers[kFull].shape = {32};
                p.operands[p.commands[kGather].firstOperand + 1] = kGrad;
              }),
              HasSubstr("share bytes in a way that all_reduce does not allow"));
}

/// A gather along each axis of a 2 x 2 mesh, and along both, in place; the windows' strides say which.
struct Grid {
  ProgramBuilder b;
  uint32_t ofRow, ofColumn, all, windowOfRow, windowOfColumn, windowOfAll;

  Grid() {
    b.ranks(Mesh{{"dp", 2}, {"tp", 2}});
    ofRow = b.keep({16}), ofColumn = b.keep({16}), all = b.keep({32});
    windowOfRow = b.rankWindow(ofRow, {1}), windowOfColumn = b.rankWindow(ofColumn, {0});
    windowOfAll = b.rankWindow(all, {0, 1});
    using enum CollectiveKind;
    b.communicateAlong({1}, AllGather, Reduction::None, 8, {windowOfRow, ofRow});
    b.communicateAlong({0}, ReduceScatter, Reduction::Sum, 8, {ofColumn, windowOfColumn});
    b.communicateAlong({0, 1}, AllGather, Reduction::None, 8, {windowOfAll, all});
    b.communicateAlong({1}, Broadcast, Reduction::None, 8, {windowOfColumn}, 0, {1});
    b.segment();
  }
  std::string after(const std::function<void(Grid &, Program &)> &change) {
    return test::verdict(b.program, [&](Program &p) { change(*this, p); });
  }
};

TEST(VerifyGrids, CountTheRanksOfAGroup) {
  EXPECT_EQ(Grid().after([](Grid &, Program &) {}), "accepted");
  EXPECT_THAT(Grid().after([](Grid &, Program &p) {
    p.collectives[0].axes = {0, 1};
  }),
              HasSubstr("operand 1 is f32 [16], expected 32 packed elements of f32 for all_gather"));
  EXPECT_THAT(Grid().after([](Grid &, Program &p) { p.params[0] = 2; }),
              HasSubstr("names rank 2 of 2 for broadcast"));
  EXPECT_THAT(Grid().after([](Grid &, Program &p) { p.commands[1].workspace = UINT32_MAX; }),
              HasSubstr("reduce_scatter 'reduce_scatter_1' on 2 ranks needs 64"));
}

TEST(VerifyGrids, WindowsFollowTheAxesOfTheirCollective) {
  EXPECT_THAT(Grid().after([](Grid &, Program &p) { p.collectives[0].axes = {0}; }),
              HasSubstr("share bytes in a way that all_gather does not allow"));
  EXPECT_THAT(Grid().after([](Grid &, Program &p) { p.collectives[1].axes = {1}; }),
              HasSubstr("share bytes in a way that reduce_scatter does not allow"));
  EXPECT_THAT(Grid().after([](Grid &g, Program &p) {
    p.buffers[g.windowOfAll].axisStrides = {32, 64}; // as if dp were the faster axis
  }),
              HasSubstr("share bytes in a way that all_gather does not allow"));
}

TEST(VerifyGrids, WholeBuffersMayMoveAlongOtherAxes) {
  // Each row of ranks has 16 elements of its own in one buffer of 32.
  const auto moved = [](uint64_t along) {
    return Grid().after([&](Grid &g, Program &p) {
      p.buffers[g.windowOfRow].offset = p.buffers[g.all].offset;
      p.buffers[g.windowOfRow].axisStrides = {along, 32};
      p.buffers[g.ofRow].offset = p.buffers[g.all].offset;
      p.buffers[g.ofRow].axisStrides = {64, 0};
    });
  };
  EXPECT_EQ(moved(64), "accepted");
  EXPECT_THAT(moved(32), HasSubstr("share bytes in a way that all_gather does not allow"));
}

TEST(VerifyGrids, AllShiftsTogetherStayInsideTheArena) {
  const auto shifted = [](uint64_t dp, uint64_t tp) {
    ProgramBuilder b;
    b.ranks(Mesh{{"dp", 2}, {"tp", 3}});
    b.view(b.keep({64}), 0, {8}, {1}); // of 256 bytes, all of the arena
    b.segment();
    return test::verdict(b.program, [&](Program &p) { p.buffers[1].axisStrides = {dp, tp}; });
  };
  EXPECT_EQ(shifted(128, 48), "accepted"); // 128 + 2 * 48 + 32 = 256
  EXPECT_THAT(shifted(132, 48), HasSubstr("buffers[1] ends at byte 260"));
  EXPECT_THAT(shifted(128, 52), HasSubstr("buffers[1] ends at byte 264"));
  EXPECT_THAT(shifted(0, uint64_t(1) << 63), HasSubstr("stride of 9223372036854775808 along 'tp' overflows"));
  EXPECT_THAT(shifted(UINT64_MAX - 3, 4), HasSubstr("along 'tp' overflows 64 bits on 3 ranks"));
}

TEST(VerifyCollectives, Staging) {
  EXPECT_THAT(
      after([](Program &p) { p.commands[kScatter].workspace = UINT32_MAX; }),
      HasSubstr("has a workspace of 0 bytes, but reduce_scatter 'reduce_scatter_1' on 4 ranks needs 512"));
  EXPECT_THAT(after([](Program &p) { p.buffers[p.commands[kScatter].workspace].shape = {511}; }),
              HasSubstr("has a workspace of 511 bytes"));
  EXPECT_THAT(after([](Program &p) { p.commands[kScatter].workspace = kGrad; }),
              HasSubstr("has a workspace that shares bytes with operand 0"));
}

TEST(VerifyCollectives, StagingIsABlockOfEveryRank) {
  Collective c{CollectiveKind::ReduceScatter, Reduction::Sum, DType::BF16, 1000, {}, "c"};
  EXPECT_EQ(collectiveStagingBytes(c, 1), 0u);
  EXPECT_EQ(collectiveStagingBytes(c, 3), 3u * 1000 * 2);
  c.elements = 1 << 20; // a block is 2^20 bytes: 2^19 elements of two bytes
  EXPECT_EQ(collectiveStagingBytes(c, 3), 3u << 20);
  EXPECT_EQ(reduceBlockElements(c, 3), 1u << 19);
  c.kind = CollectiveKind::AllReduce;
  c.elements = 10; // parts of ceil(10 / 3) = 4
  EXPECT_EQ(collectiveStagingBytes(c, 3), 3u * 4 * 2);
  c.kind = CollectiveKind::AllGather, c.reduction = Reduction::None;
  EXPECT_EQ(collectiveStagingBytes(c, 3), 0u);
}

} // namespace
} // namespace ds::rt
