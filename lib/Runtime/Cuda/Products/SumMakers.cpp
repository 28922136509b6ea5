//===- SumMakers.cpp - The kernels that make what a product could make -----------------===//
#include "SumMakers.h"

#include "Program/Execution.h"

#include "ds/Runtime/Program/ProgramFile.h"

#include <algorithm>
#include <optional>

namespace ds::rt::cuda {
namespace {

/// Whether both are all elements of one piece of memory, whatever their dimensions.
bool isSameMemory(const Buffer &x, const Buffer &y) {
  const auto isPacked = [](const Buffer &buffer) {
    return extentBytes(buffer) == static_cast<uint64_t>(numElements(buffer)) * byteSize(buffer.dtype);
  };
  return x.space == y.space && x.offset == y.offset && x.dtype == y.dtype && x.slots == y.slots &&
         x.axisStrides == y.axisStrides && numElements(x) == numElements(y) && isPacked(x) && isPacked(y);
}

/// Whether the command has `buffer` among its operands.
bool touches(const Program &p, uint32_t index, uint32_t buffer) {
  const Command &command = p.commands[index];
  const uint32_t *ids = p.operands.data() + command.firstOperand;
  return std::find(ids, ids + command.numOperands, buffer) != ids + command.numOperands;
}

/// The kernel among commands [begin, end) that alone touches `buffer`, as the last of its operands: it reads
/// the first and stores sums, before them the sums of parts where it makes them in two stages.
std::optional<uint32_t> findMaker(const Program &p, uint32_t begin, uint32_t end, uint32_t buffer) {
  for (uint32_t index = end; index-- > begin;) {
    const Command &command = p.commands[index];
    const uint32_t *ids = p.operands.data() + command.firstOperand;
    if (!touches(p, index, buffer))
      continue;
    const bool isMaker = command.kind == CommandKind::Kernel &&
                         (command.numOperands == 2 || command.numOperands == 3) &&
                         std::find(ids, ids + command.numOperands, buffer) == ids + command.numOperands - 1 &&
                         command.predicate == UINT32_MAX;
    return isMaker ? std::optional(index) : std::nullopt;
  }
  return std::nullopt;
}

} // namespace

std::vector<uint32_t> findSumMakers(const Program &p, uint32_t index, Summed summed) {
  const Command &command = p.commands[index];
  const uint32_t *ids = p.operands.data() + command.firstOperand;
  const auto segment = std::find_if(p.segments.begin(), p.segments.end(), [&](const Segment &each) {
    return each.firstCommand <= index && index - each.firstCommand < each.numCommands;
  });
  if (segment == p.segments.end() || numBindings(p, index) != 1)
    return {};
  const Buffer &added = p.buffers[ids[static_cast<uint32_t>(summed) - 1]];
  uint32_t made = ids[command.numOperands - 1], begin = segment->firstCommand, end = index;
  if (summed == Summed::Result) {
    begin = end = index + 1;
    const uint32_t all = segment->firstCommand + segment->numCommands;
    while (end < all && !touches(p, end++, made)) {
    }
  }
  std::vector<uint32_t> makers;
  while (makers.size() < 2) {
    const std::optional<uint32_t> maker = findMaker(p, begin, end, made);
    if (!maker)
      return {};
    makers.insert(makers.begin(), *maker);
    made = p.operands[p.commands[*maker].firstOperand];
    end = *maker;
    if (isSameMemory(p.buffers[made], added))
      return makers;
  }
  return {};
}

} // namespace ds::rt::cuda
