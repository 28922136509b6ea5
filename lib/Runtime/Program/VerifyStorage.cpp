//===- VerifyStorage.cpp - Commands that move storage --------------------------===//
//
// Disks read and write whole units: what begins at one, in both places, and has room for the last one may be
// moved. No other command may name bytes of storage.
//
//===---------------------------------------------------------------------------===//
#include "Verify.h"

#include "ds/Support/Align.h"

namespace ds::rt {

Status verifyStorageSettings(const Program &p) {
  constexpr uint64_t kMostBlock = uint64_t(1) << 30, kMostDepth = 1 << 16;
  const StorageSettings &s = p.storage;
  if (s.blockBytes < 1 || s.blockBytes > kMostBlock)
    return refuse("storage has blocks of {} bytes, allowed are 1 to {}", s.blockBytes, kMostBlock);
  for (const uint32_t number : {s.queueDepth, s.parallelism})
    if (number < 1 || number > kMostDepth)
      return refuse("storage has {} requests under way, or {} threads, allowed are 1 to {}", s.queueDepth,
                    s.parallelism, kMostDepth);
  for (const std::string *path : {&s.path, &s.parameterPath})
    if (path->find('\0') != std::string::npos)
      return refuse("the directory of storage has a zero byte");
  return {};
}

Status verifyStorageCommand(const Program &p, uint64_t i) {
  const Command &c = p.commands[i];
  if (c.numOperands != 2 || c.numParams != 0 || c.workspace != UINT32_MAX)
    return refuse("{} has {} operands and {} params, or a workspace; a storage command has 2, 0 and none",
                  describeCommand(p, i), c.numOperands, c.numParams);
  if (p.streams[c.stream] != StreamKind::Storage)
    return refuse("{} moves storage on stream {}, which is not for storage", describeCommand(p, i), c.stream);
  const Buffer &from = p.buffers[p.operands[c.firstOperand]], &to = p.buffers[p.operands[c.firstOperand + 1]];
  const bool reads = from.space == Space::Nvme && to.space == Space::Host;
  const bool writes = from.space == Space::Host && to.space == Space::Nvme;
  if (!reads && !writes)
    return refuse("{} moves from {} to {}, but storage is moved from and to the host", describeCommand(p, i),
                  spell(from.space), spell(to.space));
  if (from.shape != to.shape || from.dtype != to.dtype || !isContiguous(from) || !isContiguous(to))
    return refuse("{} moves {} [{}] to {} [{}], or what is not packed", describeCommand(p, i),
                  spell(from.dtype), fmt::join(from.shape, "x"), spell(to.dtype), fmt::join(to.shape, "x"));
  for (const Buffer *each : {&from, &to})
    if (offsetBits(*each) % kStorageUnit != 0)
      return refuse("{} moves bytes at {} offset {}, which is no multiple of {}", describeCommand(p, i),
                    spell(each->space), each->offset, kStorageUnit);
  return {};
}

Status verifyNoStorage(const Program &p, uint64_t i) {
  const Command &c = p.commands[i];
  for (uint32_t k = 0; k < c.numOperands; ++k)
    if (p.buffers[p.operands[c.firstOperand + k]].space == Space::Nvme)
      return refuse("{} operand {} lies in storage, which only storage commands reach", describeCommand(p, i),
                    k);
  if (c.workspace != UINT32_MAX && p.buffers[c.workspace].space == Space::Nvme)
    return refuse("{} has its workspace in storage", describeCommand(p, i));
  return {};
}

uint64_t paddingBytes(const Command &command, uint64_t extent) {
  if (command.kind != CommandKind::Storage)
    return 0;
  return alignTo(extent, kStorageUnit) - extent;
}

} // namespace ds::rt
