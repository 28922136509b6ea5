//===- DeviceArenas.h - A program's memory on an accelerator and beside it ----------===//
//
// Inputs go through staging memory that the host fills: a place for each micro-batch, because a whole step is
// started at once.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_DEVICEARENAS_H
#define DS_LIB_RUNTIME_ENGINE_DEVICEARENAS_H

#include "ds/Runtime/Engine/Device.h"
#include "ds/Runtime/Storage/Storage.h"

namespace ds::rt {

class DeviceArenas {
public:
  /// All outlive the arenas; `storage` may be null.
  DeviceArenas(Device &device, const Program &program, uint32_t rank, Storage *storage);

  /// Takes the memory from the device, which has been loaded.
  Status allocate();

  std::byte *base(Space space) const;
  std::byte *address(uint32_t buffer, uint32_t microBatch) const;
  /// Whether the host cannot read this memory itself.
  bool isRemote(const std::byte *address) const;
  /// Where the host writes the inputs of a micro-batch, in the program's order.
  std::vector<void *> inputs(uint32_t microBatch) const;
  /// Copies them from there to their buffers, in order with the compute stream's work.
  Status stageInputs(uint32_t microBatch) const;
  /// Sets every byte of an arena's part, at once: the next command may be on any stream.
  Status fill(const Lifetime &lifetime, uint8_t byte) const;

private:
  std::byte *staged(size_t input, uint32_t microBatch) const;

  Device &device;
  const Program &program;
  const uint32_t rank;
  Storage *storage;
  std::byte *deviceBase = nullptr, *hostBase = nullptr, *staging = nullptr;
  std::vector<uint64_t> stagedOffsets; ///< by input; bytes within a micro-batch's part, its size behind them
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_DEVICEARENAS_H
