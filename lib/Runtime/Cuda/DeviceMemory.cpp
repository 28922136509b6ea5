//===- DeviceMemory.cpp - A GPU's memory: taken once, and accounted for --------------===//
#include "CudaDevice.h"

#include "Nvml.h"

#include <fmt/format.h>

namespace ds::rt::cuda {

Error CudaDevice::outOfMemory(uint64_t bytes, const char *what, uint64_t free, uint64_t total) const {
  const std::string holders = describeHolders(busId);
  const std::string wish = bytes == 0 ? "more memory" : fmt::format("{} bytes", bytes);
  return Error{ExitCode::DoesNotFit,
               fmt::format("the {} takes {}, but {} of {} bytes are free on {} ({}){}{}", what, wish, free,
                           total, hardware.name, busId, holders.empty() ? "" : ": ", holders),
               "end what else runs on the device, or compile with --memory set to what is free"};
}

Result<std::byte *> CudaDevice::allocate(Space space, uint64_t bytes, const char *what) {
  if (space == Space::Host) {
    void *memory = nullptr;
    if (Status status =
            check(driver.memHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
                  fmt::format("pinning {} bytes of host memory for the {}", bytes, what).c_str());
        !status)
      return Error{ExitCode::DoesNotFit, status.error().message,
                   "raise the limit of locked memory (ulimit -l)"};
    hostMemory.push_back(memory);
    std::fill_n(static_cast<std::byte *>(memory), bytes, std::byte{0});
    return static_cast<std::byte *>(memory);
  }
  size_t free = 0, total = 0;
  if (Status status = check(driver.memGetInfo(&free, &total), "asking for free memory"); !status)
    return status.error();
  CUdeviceptr memory = 0;
  const CUresult result = bytes > free ? CUDA_ERROR_OUT_OF_MEMORY : driver.memAlloc(&memory, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return outOfMemory(bytes, what, free, total);
  if (Status status = check(result, "allocating device memory"); !status)
    return status.error();
  deviceMemory.push_back(memory);
  deviceBytes.push_back(bytes);
  arenas += bytes;
  if (Status status =
          check(driver.memsetD8Async(memory, 0, bytes, streams[computeStream]), "clearing memory");
      !status)
    return status.error();
  return reinterpret_cast<std::byte *>(memory);
}

/// What was in use before there was a context is not this process's. Without NVML the context itself is not
/// counted: it cannot be measured from inside.
DeviceMemory CudaDevice::memory() const {
  DeviceMemory memory{arenas, 0, 0, 0};
  size_t free = 0, total = 0;
  if (driver.memGetInfo(&free, &total) != CUDA_SUCCESS)
    return memory;
  memory.free = free;
  memory.total = total;
  const uint64_t before = usedAtStart.value_or(total - freeAtStart);
  const uint64_t now = usedAtStart ? usedMemory(busId).value_or(total - free) : total - free;
  memory.overhead = now > before + arenas ? now - before - arenas : 0;
  return memory;
}

} // namespace ds::rt::cuda
