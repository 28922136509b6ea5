//===- Verify.cpp - The program verifier's entry and geometry ------------------===//
//
// The order matters: each part relies on what the parts before it have established.
//
//===---------------------------------------------------------------------------===//
#include "Verify.h"

#include <algorithm>

namespace ds::rt {

uint64_t extentBytes(const Buffer &buffer) {
  uint64_t last = 0;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    if (buffer.shape[d] == 0)
      return 0;
    last += static_cast<uint64_t>(buffer.shape[d] - 1) * static_cast<uint64_t>(buffer.strides[d]);
  }
  return (last + 1) * byteSize(buffer.dtype);
}

uint64_t reachBytes(const Buffer &buffer, uint32_t world) {
  const uint64_t bytes = extentBytes(buffer);
  return bytes == 0 ? 0 : bytes + (world - 1) * buffer.rankStride + (buffer.slots - 1) * buffer.slotStride;
}

uint64_t windowOffset(const Buffer &buffer, uint32_t rank, uint32_t microBatch) {
  return buffer.offset + rank * buffer.rankStride + microBatch % buffer.slots * buffer.slotStride;
}

bool haveSameSlots(const Buffer &a, const Buffer &b) {
  return a.slots == b.slots && a.slotStride == b.slotStride;
}

int64_t numElements(const Buffer &buffer) {
  int64_t count = 1;
  for (int64_t size : buffer.shape)
    count *= size;
  return count;
}

bool isContiguous(const Buffer &buffer) {
  int64_t expected = 1;
  for (size_t d = buffer.shape.size(); d-- > 0;) {
    if (buffer.shape[d] == 0)
      return true;
    if (buffer.shape[d] != 1 && buffer.strides[d] != expected)
      return false;
    expected *= buffer.shape[d];
  }
  return true;
}

std::string describeCommand(const Program &program, uint64_t command) {
  const uint32_t location = program.commands[command].location;
  if (location >= program.strings.size() || program.strings[location].empty())
    return fmt::format("commands[{}]", command);
  return fmt::format("commands[{}] ({})", command, program.strings[location]);
}

uint64_t bytesOf(const ArenaBytes &arenas, Space space) {
  switch (space) {
  case Space::Device:
    return arenas.device;
  case Space::Host:
    return arenas.host;
  case Space::Nvme:
    return arenas.nvme;
  }
  return 0;
}

std::string describeStage(const Program &program, size_t stage) {
  return program.stages.size() == 1 ? "" : fmt::format("stage {}: ", stage);
}

namespace {

/// Bytes that the dimensions of stride below `stride` (in bytes) span, or 0 when a longer stride is no
/// multiple of it: the buffer is then not a sequence of windows at that distance.
uint64_t windowBytes(const Buffer &buffer, uint64_t stride) {
  const uint64_t size = byteSize(buffer.dtype);
  uint64_t span = size;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    const uint64_t step = static_cast<uint64_t>(buffer.strides[d]) * size;
    if (buffer.shape[d] <= 1)
      continue;
    if (step >= stride && step % stride != 0)
      return 0;
    if (step < stride)
      span += static_cast<uint64_t>(buffer.shape[d] - 1) * step;
  }
  return span;
}

/// Whether `a` and `b` repeat at the distance `stride` and occupy disjoint windows within it.
bool interleaved(const Buffer &a, const Buffer &b, uint64_t stride) {
  const uint64_t spanA = windowBytes(a, stride), spanB = windowBytes(b, stride);
  const uint64_t base = std::min(a.offset, b.offset);
  const uint64_t atA = (a.offset - base) % stride, atB = (b.offset - base) % stride;
  if (spanA == 0 || spanB == 0 || atA + spanA > stride || atB + spanB > stride)
    return false;
  return atA + spanA <= atB || atB + spanB <= atA;
}

} // namespace

bool mayOverlap(const Buffer &a, const Buffer &b, uint32_t world) {
  // Windows that move together keep their distance; others are compared by all that they reach.
  const bool together = a.rankStride == b.rankStride && haveSameSlots(a, b);
  const uint64_t bytesA = together ? extentBytes(a) : reachBytes(a, world),
                 bytesB = together ? extentBytes(b) : reachBytes(b, world);
  if (a.space != b.space || bytesA == 0 || bytesB == 0)
    return false;
  if (a.offset + bytesA <= b.offset || b.offset + bytesB <= a.offset)
    return false;
  for (size_t d = 0; together && d < a.shape.size(); ++d)
    if (a.shape[d] > 1 && a.strides[d] > 0 &&
        interleaved(a, b, static_cast<uint64_t>(a.strides[d]) * byteSize(a.dtype)))
      return false;
  return true;
}

Status verifyProgram(const Program &program) {
  for (auto check : {verifyTables, verifySegments, verifySchedules, verifyLifetimes, verifyEvents})
    if (Status status = check(program); !status)
      return status;
  return {};
}

} // namespace ds::rt
