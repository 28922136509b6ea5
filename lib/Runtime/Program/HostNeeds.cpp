//===- HostNeeds.cpp - What a program on an accelerator takes of its host ---------===//
#include "ds/Runtime/Program/HostNeeds.h"

#include "ds/Runtime/Program/ProgramFile.h"
#include "ds/Support/Align.h"

#include <algorithm>

namespace ds::rt {

/// Of which each staged input's place is a multiple, in bytes.
static constexpr uint64_t kStagingAlignment = 256;

std::vector<uint64_t> stagedInputOffsets(const Program &program) {
  std::vector<uint64_t> offsets = {0};
  for (const Input &input : program.inputs) {
    const uint64_t bytes = extentBytes(program.buffers[input.buffer]);
    offsets.push_back(offsets.back() + alignTo(bytes, kStagingAlignment));
  }
  return offsets;
}

uint64_t inputStagingBytes(const Program &program) {
  return stagedInputOffsets(program).back() * program.accumulation;
}

uint64_t markBytes(const Program &program) { return program.streams.size() * sizeof(uint32_t); }

uint64_t largestPartBytes(const Program &program) {
  uint64_t most = 0;
  for (const State &state : program.states)
    most = std::max(most, mostHeldElements(program.mesh, state.layout, state.logicalShape) *
                              byteSize(program.buffers[state.buffer].dtype));
  return most;
}

} // namespace ds::rt
