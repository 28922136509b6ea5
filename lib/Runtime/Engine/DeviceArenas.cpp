//===- DeviceArenas.cpp - A program's memory on an accelerator and beside it --------===//
#include "DeviceArenas.h"

#include "PinnedMemory.h"

#include "ds/Runtime/Program/HostNeeds.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <cstring>

namespace ds::rt {

DeviceArenas::DeviceArenas(Device &device, const Program &program, uint32_t rank, Storage *storage)
    : device(device), program(program), rank(rank), storage(storage),
      stagedOffsets(stagedInputOffsets(program)) {}

Status DeviceArenas::allocate() {
  struct Wish {
    std::byte *&at;
    Space space;
    uint64_t bytes;
    const char *what;
  };
  const ArenaBytes &arenas = program.stages.front().arenas;
  for (const Wish &wish : {Wish{deviceBase, Space::Device, arenas.device, "device arena"},
                           Wish{hostBase, Space::Host, arenas.host, "host arena"},
                           Wish{staging, Space::Host, inputStagingBytes(program), "input staging"}}) {
    if (wish.bytes == 0)
      continue;
    Result<std::byte *> memory = wish.space == Space::Host
                                     ? takePinned(device, wish.bytes, wish.what)
                                     : device.allocate(wish.space, wish.bytes, wish.what);
    if (!memory)
      return memory.error();
    wish.at = *memory;
  }
  return {};
}

std::byte *DeviceArenas::base(Space space) const {
  if (space == Space::Nvme)
    return storage->addresses().base();
  return space == Space::Device ? deviceBase : hostBase;
}

std::byte *DeviceArenas::address(uint32_t buffer, uint32_t microBatch) const {
  const Buffer &b = program.buffers[buffer];
  return base(b.space) + windowOffset(b, program.mesh, rank, microBatch);
}

bool DeviceArenas::isRemote(const std::byte *address) const {
  return address >= deviceBase && address < deviceBase + program.stages.front().arenas.device;
}

std::byte *DeviceArenas::staged(size_t input, uint32_t microBatch) const {
  return staging + microBatch * stagedOffsets.back() + stagedOffsets[input];
}

std::vector<void *> DeviceArenas::inputs(uint32_t microBatch) const {
  std::vector<void *> addresses;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    addresses.push_back(staged(i, microBatch));
  return addresses;
}

Status DeviceArenas::stageInputs(uint32_t microBatch) const {
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const uint32_t buffer = program.inputs[i].buffer;
    if (Status status = device.streams().copy(address(buffer, microBatch), staged(i, microBatch),
                                              extentBytes(program.buffers[buffer]));
        !status)
      return status;
  }
  return {};
}

Status DeviceArenas::fill(const Lifetime &lifetime, uint8_t byte) const {
  if (lifetime.space == Space::Nvme)
    return {}; // as on the CPU
  std::byte *at = base(lifetime.space) + lifetime.offset;
  if (lifetime.space == Space::Host) {
    std::memset(at, byte, lifetime.bytes);
    return {};
  }
  if (Status status = device.streams().fill(at, byte, lifetime.bytes); !status)
    return status;
  return device.synchronize();
}

} // namespace ds::rt
