//===- HostNeedsTest.cpp - What a program on an accelerator takes of its host -------===//
#include "ds/Runtime/Program/HostNeeds.h"

#include <gtest/gtest.h>

namespace ds::rt {
namespace {

/// A program of four ranks without anything.
Program emptyProgram() {
  Program program;
  program.world = 4;
  program.mesh = {{"dp", 4}};
  program.accumulation = 3;
  program.streams = {StreamKind::Compute, StreamKind::Gather};
  return program;
}

uint32_t addBuffer(Program &program, DType dtype, int64_t elements) {
  Buffer buffer;
  buffer.dtype = dtype;
  buffer.shape = {elements};
  buffer.strides = {1};
  program.buffers.push_back(buffer);
  return static_cast<uint32_t>(program.buffers.size() - 1);
}

TEST(HostNeeds, EachMicroStepHasAPlaceForItsInputs) {
  Program program = emptyProgram();
  EXPECT_EQ(inputStagingBytes(program), 0u);
  program.inputs.resize(2);
  program.inputs[0].buffer = addBuffer(program, DType::I64, 33); // 264 bytes take 512
  program.inputs[1].buffer = addBuffer(program, DType::F32, 64); // 256 take 256
  EXPECT_EQ(stagedInputOffsets(program), (std::vector<uint64_t>{0, 512, 768}));
  EXPECT_EQ(inputStagingBytes(program), 3u * 768);
  EXPECT_EQ(markBytes(program), 2u * 4);
}

TEST(HostNeeds, TheLargestPartIsThatOfAnyRank) {
  Program program = emptyProgram();
  auto largestOf = [&](int64_t elements, Layout layout) {
    State state;
    state.logicalShape = {elements};
    state.layout = layout;
    state.buffer = addBuffer(program, DType::F32, layout.isBucketed() ? 10 : elements);
    program.states = {state};
    return largestPartBytes(program) / 4;
  };
  EXPECT_EQ(largestOf(7, {}), 7u);
  EXPECT_EQ(largestOf(4, {{}, {0}, 5, 10}), 4u);   // within rank 0
  EXPECT_EQ(largestOf(5, {{}, {0}, 8, 10}), 3u);   // 2 of rank 0, 3 of rank 1
  EXPECT_EQ(largestOf(5, {{}, {0}, 27, 10}), 3u);  // 3 of rank 2, 2 of rank 3
  EXPECT_EQ(largestOf(30, {{}, {0}, 9, 10}), 10u); // rank 1 has a whole shard
  EXPECT_EQ(largestOf(3, {{}, {0}, 37, 10}), 3u);  // the last rank
}

} // namespace
} // namespace ds::rt
