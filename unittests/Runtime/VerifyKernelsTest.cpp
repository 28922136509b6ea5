//===- VerifyKernelsTest.cpp - What launches of kernels must obey --------------===//
#include "Verdict.h"

#include "ds/Runtime/Program/KernelInterface.h"

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
  b.segment();
  b.program.target = "cuda:sm_90";
  b.program.kernels[0] = {"norm", 16, 1, 256, 0, 8, true, {16, 4, 4}, 0, {{256}, {32}, {4}}};
  b.program.image = {'/', 0};
  return test::verdict(b.program, change);
}

TEST(VerifyKernels, Geometry) {
  EXPECT_EQ(after([](Program &) {}), "accepted");
  EXPECT_THAT(after([](Program &p) { p.kernels[0].blockThreads = 1025; }),
              HasSubstr("kernels[0] 'norm' has blocks of 1025 threads, allowed are 1 to 1024"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].sharedBytes = 1 << 20; }),
              HasSubstr("1048576 bytes of shared memory"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].unitsPerBlock = 0; }), HasSubstr("0 units per block"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].alignments[0] = 12; }), HasSubstr("alignment of 12"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].alignments[0] = 512; }), HasSubstr("alignment of 512"));
}

/// The same of a launch on the host's stream, of a kernel of the CPU on the host's memory.
std::string afterOnHost(const std::function<void(Program &)> &change) {
  ProgramBuilder b;
  const uint32_t x = b.keepUnits(Space::Host, {64}), loss = b.output("loss");
  b.launch("norm", 16, {loss});
  b.launch("step", 16, {x});
  b.segment();
  b.program.target = "cuda:sm_90";
  b.program.streams.push_back(StreamKind::Host);
  b.program.hostThreads = 1;
  b.program.kernels[0] = {"norm", 16, 1, 256, 0, 8, true, {4}, 0, {{4}}};
  b.program.kernels[1] = {"step", 16, 1, 0, 0, 1, false, {}, 0, {{256}}};
  b.program.commands[1].stream = static_cast<uint8_t>(b.program.streams.size() - 1);
  b.program.image = {'/', 0};
  b.program.hostImage = {0x7f, 'E', 'L', 'F'};
  return test::verdict(b.program, change);
}

TEST(VerifyKernels, TheHostsOwnRunOnItsStream) {
  EXPECT_EQ(afterOnHost([](Program &) {}), "accepted");
  EXPECT_THAT(afterOnHost([](Program &p) { p.hostImage.clear(); }),
              HasSubstr("1 kernels of the host with an image of 0 bytes"));
  EXPECT_THAT(afterOnHost([](Program &p) { p.image.clear(); }),
              HasSubstr("1 kernels with an image of 0 bytes"));
  EXPECT_THAT(afterOnHost([](Program &p) { p.kernels[0].blockThreads = 0; }),
              HasSubstr("0 kernels with an image of 2 bytes"));
  EXPECT_THAT(
      afterOnHost([](Program &p) { p.kernels[1] = {"step", 16, 1, 64, 0, 8, true, {4}, 0, {{256}}}; }),
      HasSubstr("0 kernels of the host with an image of 4 bytes"));
  EXPECT_THAT(afterOnHost([](Program &p) {
                std::swap(p.kernels[0], p.kernels[1]);
                p.kernels[0].operands[0].bytes = 4;
                p.kernels[1].operands[0].bytes = 4;
              }),
              HasSubstr("launches kernel 'step', which is code for the host, on stream 0"));
  EXPECT_THAT(afterOnHost([](Program &p) { p.commands[1].callee = 0; }),
              HasSubstr("launches kernel 'norm', which is code for the device, on stream"));
  EXPECT_THAT(afterOnHost([](Program &p) { p.operands[1] = p.operands[0]; }),
              HasSubstr("is on the host's stream, but not all that it touches is in the host's memory"));
}

TEST(VerifyKernels, ImageIsText) {
  EXPECT_THAT(after([](Program &p) { p.image = {'/', '/'}; }), HasSubstr("does not end in a 0"));
  EXPECT_THAT(after([](Program &p) { p.image.clear(); }), HasSubstr("1 kernels with an image of 0 bytes"));
}

TEST(VerifyKernels, OperandsAreAligned) {
  EXPECT_THAT(after([](Program &p) { p.kernels[0].alignments[1] = 8; }),
              HasSubstr("kernel 'norm' operand 1 at offset 4, but its code relies on multiples of 8"));
  EXPECT_THAT(after([](Program &p) { p.kernels[0].alignments.pop_back(); }),
              HasSubstr("'norm' has 3 operands and 2 alignments"));
}

TEST(VerifyKernels, OperandsHoldWhatIsTouched) {
  for (const char *target : {"cpu", "cuda:sm_90"}) {
    auto on = [&](const std::function<void(Program &)> &change) {
      return after([&](Program &p) { p.target = target, change(p); });
    };
    EXPECT_EQ(on([](Program &) {}), "accepted");
    EXPECT_THAT(on([](Program &p) { p.commands[0].numOperands = 2; }),
                HasSubstr("gives kernel 'norm' 2 operands, but it has 3"));
    EXPECT_THAT(on([](Program &p) { p.operands[0] = p.operands[1]; }),
                HasSubstr("gives kernel 'norm' operand 0 of 32 bytes, but its code touches 256"));
    EXPECT_THAT(on([](Program &p) { p.kernels[0].operands[2].bytes = 5; }),
                HasSubstr("operand 2 of 4 bytes, but its code touches 5"));
    EXPECT_THAT(on([](Program &p) { p.kernels[0].params = 1; }),
                HasSubstr("gives kernel 'norm' 0 params, but it has 1"));
    EXPECT_THAT(on([](Program &p) { p.kernels[0].operands[1].perUnit = true; }),
                HasSubstr("'norm' has 32 bytes per unit of operand 1, but an extent of its own: 16"));
  }
}

/// The same on a launch of two items of 4 and 6 elements that share a scalar.
std::string afterItems(const std::function<void(Program &)> &change) {
  ProgramBuilder b;
  const uint32_t x = b.keep({4}), s = b.keep({}), y = b.keep({6}), other = b.keep({});
  b.launch("scale", 0, {x, s, y, s}, {4, 6});
  b.launch("scale", 0, {x, other}, {4});
  b.segment();
  b.program.target = "cuda:sm_90";
  b.program.kernels[0] = {"scale", 0, 1, 256, 0, 1024, true, {16, 4}, 2, {{4, true}, {4}}, 1};
  b.program.image = {'/', 0};
  return test::verdict(b.program, change);
}

TEST(VerifyKernels, Items) {
  EXPECT_EQ(afterItems([](Program &) {}), "accepted");
  EXPECT_EQ(afterItems([](Program &p) {
              p.target = "cpu";
              p.kernels[0] = {"scale", 0, 1, 0, 0, 1, false, {}, 2, {{4, true}, {4}}, 1};
            }),
            "accepted");
  EXPECT_THAT(afterItems([](Program &p) { p.kernels[0].items = 1; }),
              HasSubstr("launches kernel 'scale' of extent 0 with 2 items and 4 operands, allowed are 1"));
  EXPECT_THAT(afterItems([](Program &p) {
                p.kernels[0].extent = 4;
                p.kernels[0].operands[0].perUnit = false;
              }),
              HasSubstr("of extent 4 with 2 items"));
  EXPECT_THAT(afterItems([](Program &p) { p.kernels[0].params = 2; }),
              HasSubstr("'scale' has items of 2 params each, expected 1"));
  EXPECT_THAT(afterItems([](Program &p) { p.params[1] = 7; }),
              HasSubstr("operand 2 of 24 bytes, but its code touches 28"));
  EXPECT_THAT(afterItems([](Program &p) { p.params[0] = INT64_MAX; }),
              HasSubstr("operand 0 of 16 bytes, but its code touches 18446744073709551615"));
  EXPECT_THAT(afterItems([](Program &p) { p.commands[0].numOperands = 3; }), HasSubstr("and 3 operands"));
  EXPECT_THAT(afterItems([](Program &p) { p.operands[3] = p.operands[5]; }),
              HasSubstr("gives a item of kernel 'scale' a scalar of its own: operand 3"));
  EXPECT_THAT(afterItems([](Program &p) { p.params[1] = -1; }),
              HasSubstr("of variable extent with extent -1"));
  EXPECT_THAT(afterItems([](Program &p) {
                p.kernels[0].operands.pop_back();
                p.kernels[0].alignments.pop_back();
              }),
              HasSubstr("gives kernel 'scale' 2 operands, but it has 1"));
  EXPECT_THAT(afterItems([](Program &p) { p.kernels[0].alignments[0] = 256; }),
              HasSubstr("operand 2 at offset"));
  EXPECT_THAT(afterItems([](Program &p) { p.kernels[0].items = 171; }),
              HasSubstr("made for 171 items, but at most 170 can be passed"));
}

TEST(VerifyKernels, CpuProgramsHaveNoGeometry) {
  EXPECT_EQ(after([](Program &p) {
              p.target = "cpu";
              p.kernels[0] = {"norm", 16, 1, 0, 0, 0, false, {}, 0, {{256}, {32}, {4}}};
            }),
            "accepted");
}

/// What the image says of itself is what the table says, for each field that decides what is touched.
TEST(VerifyKernels, InterfacesOfPtx) {
  auto said = [](const std::function<void(Program &)> &change) {
    return after([&](Program &p) {
      const std::string text = kInterfaceComment + spellInterface(p.kernels[0]) + "\n.version 7.8\n";
      p.image.assign(text.c_str(), text.c_str() + text.size() + 1);
      change(p);
    });
  };
  EXPECT_EQ(said([](Program &) {}), "accepted");
  EXPECT_THAT(said([](Program &p) { p.kernels[0].extent = 17; }),
              HasSubstr("kernels[0] is described as 'norm: extent 17, params 0, items 0, operands 256 32 4, "
                        "threads 256, shared bytes 0, units per block 8, persistent, alignments 16 4 4', but "
                        "its code is 'norm: extent 16,"));
  for (auto change : std::initializer_list<void (*)(Kernel &)>{
           [](Kernel &k) { k.operands[0].bytes = 4; }, [](Kernel &k) { k.blockThreads = 128; },
           [](Kernel &k) { k.sharedBytes = 16; }, [](Kernel &k) { k.unitsPerBlock = 4; },
           [](Kernel &k) { k.persistent = false; }, [](Kernel &k) { k.alignments[0] = 4; },
           [](Kernel &k) { k.name = "other"; }})
    EXPECT_THAT(said([&](Program &p) { change(p.kernels[0]); }), HasSubstr("kernels[0] is described as '"));
  EXPECT_THAT(said([](Program &p) { p.kernels.push_back(p.kernels[0]); }),
              HasSubstr("kernels[1] is described as"));
  EXPECT_THAT(said([](Program &p) {
                const std::string more = "//ds other: extent 1\n";
                p.image.insert(p.image.begin() +
                                   (std::find(p.image.begin(), p.image.end(), '\n') - p.image.begin() + 1),
                               more.begin(), more.end());
              }),
              HasSubstr("1 kernels, but the image also has 'other: extent 1'"));
}

} // namespace
} // namespace ds::rt
