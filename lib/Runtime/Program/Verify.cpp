//===- Verify.cpp - The program verifier's entry and geometry ------------------===//
//
// The order matters: each part relies on what the parts before it have established.
//
//===---------------------------------------------------------------------------===//
#include "Verify.h"
#include "Shape.h"

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

uint64_t axisStride(const Buffer &buffer, unsigned axis) {
  return buffer.axisStrides.empty() ? 0 : buffer.axisStrides[axis];
}

uint64_t reachBytes(const Buffer &buffer, const Mesh &mesh) {
  uint64_t bytes = extentBytes(buffer);
  if (bytes == 0)
    return 0;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    bytes += (mesh.axes()[axis].size - 1) * axisStride(buffer, axis);
  return bytes + (buffer.slots - 1) * buffer.slotStride;
}

uint64_t windowOffset(const Buffer &buffer, const Mesh &mesh, uint32_t rank, uint32_t microBatch) {
  uint64_t offset = buffer.offset + microBatch % buffer.slots * buffer.slotStride;
  for (unsigned axis = 0; axis < buffer.axisStrides.size(); ++axis)
    offset += mesh.coordinate(rank, axis) * buffer.axisStrides[axis];
  return offset;
}

uint64_t offsetBits(const Buffer &buffer) {
  uint64_t bits = buffer.offset | buffer.slotStride;
  for (uint64_t stride : buffer.axisStrides)
    bits |= stride;
  return bits;
}

bool haveSameSlots(const Buffer &a, const Buffer &b) {
  return a.slots == b.slots && a.slotStride == b.slotStride;
}

int64_t numElements(const Buffer &buffer) { return static_cast<int64_t>(elementsOf(buffer.shape)); }

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

bool hasDistinctElements(const Buffer &buffer) {
  std::vector<std::pair<int64_t, int64_t>> dims; // (stride, size)
  for (size_t d = 0; d < buffer.shape.size(); ++d)
    if (buffer.shape[d] > 1)
      dims.emplace_back(buffer.strides[d], buffer.shape[d]);
  std::sort(dims.begin(), dims.end());
  int64_t last = 0; // of the elements that the dimensions so far reach
  for (const auto &[stride, size] : dims) {
    if (stride <= last)
      return false;
    last += (size - 1) * stride;
  }
  return true;
}

bool mayOverlap(const Buffer &a, const Buffer &b, const Mesh &mesh) {
  // Windows that move together keep their distance; others are compared by all that they reach.
  const bool together = a.axisStrides == b.axisStrides && haveSameSlots(a, b);
  const uint64_t bytesA = together ? extentBytes(a) : reachBytes(a, mesh),
                 bytesB = together ? extentBytes(b) : reachBytes(b, mesh);
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
  for (auto check : {verifyTables, verifySegments, verifySchedules, verifyLifetimes, verifyEvents,
                     verifyLanes, verifyMeetings})
    if (Status status = check(program); !status)
      return status;
  return {};
}

} // namespace ds::rt
