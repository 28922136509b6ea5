//===- TwoStages.h - A program of two stages that need nothing of each other -----===//
#ifndef DS_UNITTESTS_RUNTIME_TWOSTAGES_H
#define DS_UNITTESTS_RUNTIME_TWOSTAGES_H

#include "ProgramBuilder.h"

namespace ds::rt::test {

/// Stage s keeps its input in "own<s>", where an evaluation then writes 10 + s; "tied" is a parameter of
/// both. The arenas start at 0 on either: what lies at one place on both is not the same.
struct TwoStages {
  ProgramBuilder b;
  uint32_t own[2], tied[2];
  uint32_t large; ///< lies behind all that stage 1 has

  TwoStages() {
    for (uint32_t stage = 0; stage < 2; ++stage) {
      if (stage > 0)
        b.addStage();
      const uint32_t x = b.input("x", {8});
      tied[stage] = b.state("tied", {8}, {Init::Kind::Normal, 0, 1});
      own[stage] = b.state("own" + std::to_string(stage), {8});
      b.output("loss");
      addSegments(x, own[stage], stage);
      if (stage == 0)
        large = b.keep({8});
    }
  }

private:
  void addSegments(uint32_t x, uint32_t to, uint32_t stage) {
    const uint32_t passed = b.place({8});
    const auto step = static_cast<uint32_t>(b.program.segments.size());
    b.live(passed, step, 0, 2);
    b.library(LibraryFn::Copy, {x, passed});
    b.library(LibraryFn::Copy, {passed, to});
    b.segment();
    b.program.stages[stage].schedule = {{step, 0, 1, Gradients::Set, true}};
    b.library(LibraryFn::Fill, {to}, {bits(10 + stage)});
    b.program.stages[stage].evaluation = static_cast<int32_t>(b.segment({Work::Evaluation}, "evaluation"));
  }
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_TWOSTAGES_H
