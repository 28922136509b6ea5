//===- VerifyKernelsTest.cpp - What launches of CUDA kernels must obey ---------===//
#include "Verdict.h"

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::HasSubstr;

/// The verifier's message on a program of one CUDA launch after `change`, or "accepted".
std::string after(const std::function<void(Program &)> &change) {
  ProgramBuilder b;
  const uint32_t x = b.keep({64}), loss = b.output("loss");
  const uint32_t odd = b.view(x, 1, {8}, {1});
  b.launch("norm", 16, {x, odd, loss});
  b.segment(SegmentKind::Last);
  b.program.target = "cuda:sm_90";
  b.program.kernels[0] = {"norm", 16, 1, 256, 0, 8, true, {16, 4, 4}};
  b.program.image = {'/', 0};
  return test::verdict(b.program, change);
}

TEST(VerifyKernels, Geometry) {
  EXPECT_EQ(after([](Program &) {}), "accepted");
  EXPECT_THAT(after([](Program &p) { p.kernels[0].blockThreads = 0; }),
              HasSubstr("kernels[0] 'norm' has blocks of 0 threads, allowed are 1 to 1024"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].blockThreads = 1025; }), HasSubstr("of 1025 threads"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].sharedBytes = 1 << 20; }),
              HasSubstr("1048576 bytes of shared memory"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].unitsPerBlock = 0; }), HasSubstr("0 units per block"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].alignments[0] = 12; }), HasSubstr("alignment of 12"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].alignments[0] = 512; }), HasSubstr("alignment of 512"));
}

TEST(VerifyKernels, ImageIsText) {
  EXPECT_THAT(after([](Program &p) { p.image = {'/', '/'}; }), HasSubstr("does not end in a 0"));
  EXPECT_THAT(after([](Program &p) { p.image.clear(); }), HasSubstr("1 kernels with an image of 0 bytes"));
}

TEST(VerifyKernels, OperandsAreAligned) {
  EXPECT_THAT(after([](Program &p) { p.kernels[0].alignments[1] = 8; }),
              HasSubstr("kernel 'norm' operand 1 at offset 4, but its code relies on multiples of 8"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].alignments.pop_back(); }),
              HasSubstr("gives kernel 'norm' 3 operands, but it has 2"));
}

/// The same on a launch of two members of 4 and 6 elements that share a scalar.
std::string afterMembers(const std::function<void(Program &)> &change) {
  ProgramBuilder b;
  const uint32_t x = b.keep({4}), s = b.keep({}), y = b.keep({6}), other = b.keep({});
  b.launch("scale", 0, {x, s, y, s}, {4, 6});
  b.launch("scale", 0, {x, other}, {4});
  b.segment(SegmentKind::Last);
  b.program.target = "cuda:sm_90";
  b.program.kernels[0] = {"scale", 0, 1, 256, 0, 1024, true, {16, 4}, 2};
  b.program.image = {'/', 0};
  return test::verdict(b.program, change);
}

TEST(VerifyKernels, Members) {
  EXPECT_EQ(afterMembers([](Program &) {}), "accepted");
  EXPECT_EQ(afterMembers([](Program &p) {
              p.target = "cpu";
              p.kernels[0] = {"scale", 0, 1, 0, 0, 1, false, {}, 2};
            }),
            "accepted");
  EXPECT_THAT(afterMembers([](Program &p) { p.kernels[0].members = 1; }),
              HasSubstr("launches kernel 'scale' of extent 0 with 2 members and 4 operands, allowed are 1"));
  EXPECT_THAT(afterMembers([](Program &p) { p.kernels[0].extent = 4; }),
              HasSubstr("of extent 4 with 2 members"));
  EXPECT_THAT(afterMembers([](Program &p) { p.commands[0].numOperands = 3; }), HasSubstr("and 3 operands"));
  EXPECT_THAT(afterMembers([](Program &p) { p.operands[3] = p.operands[5]; }),
              HasSubstr("gives a member of kernel 'scale' a scalar of its own: operand 3"));
  EXPECT_THAT(afterMembers([](Program &p) { p.params[1] = -1; }),
              HasSubstr("of variable extent with extent -1"));
  EXPECT_THAT(afterMembers([](Program &p) { p.kernels[0].alignments.pop_back(); }),
              HasSubstr("gives kernel 'scale' 2 operands, but it has 1"));
  EXPECT_THAT(afterMembers([](Program &p) { p.kernels[0].alignments[0] = 256; }),
              HasSubstr("operand 2 at offset"));
  EXPECT_THAT(afterMembers([](Program &p) { p.kernels[0].members = 171; }),
              HasSubstr("made for 171 members, but at most 170 can be passed"));
}

TEST(VerifyKernels, CpuProgramsHaveNoGeometry) {
  EXPECT_EQ(after([](Program &p) {
              p.target = "cpu";
              p.kernels[0] = {"norm", 16, 1};
            }),
            "accepted");
}

} // namespace
} // namespace ds::rt
