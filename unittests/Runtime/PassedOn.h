//===- PassedOn.h - A program whose forward leaves something for its backward ----===//
#ifndef DS_UNITTESTS_RUNTIME_PASSEDON_H
#define DS_UNITTESTS_RUNTIME_PASSEDON_H

#include "ProgramBuilder.h"

namespace ds::rt::test {

/// A forward computes a = x - bias, a backward copies it to `seen`, of which every micro-batch has its own;
/// three micro-batches as F0 F1 B0 F2 B1 B2: two are under way at any time.
struct PassedOn {
  static constexpr int64_t kElements = 64;
  ProgramBuilder b;
  uint32_t x, bias, a, seen;

  explicit PassedOn(uint32_t slots = 2) {
    x = b.input("x", {kElements});
    bias = b.state("bias", {kElements}, {Init::Kind::Constant, 0, 0});
    a = slots > 1 ? b.slotted({kElements}, slots) : b.keep({kElements});
    seen = b.slotted({kElements}, 3);
    b.launch("ds_subtract", kElements, {x, bias, a});
    b.segment({Work::Forward}, "forward");
    b.library(LibraryFn::Copy, {a, seen});
    b.segment({Work::Backward}, "backward");
    b.segment({Work::Update}, "update");
    b.program.accumulation = 3;
    b.program.stages[0].schedule = {{0, 0, 2}, {1, 0, 1}, {0, 2, 1}, {1, 1, 2}, {2}};
    b.program.image = readBytes(DS_TEST_KERNELS);
  }
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_PASSEDON_H
