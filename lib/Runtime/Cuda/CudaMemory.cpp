//===- CudaMemory.cpp - A GPU's memory, and pinned memory beside it ------------------===//
#include "CudaMemory.h"

#include "ds/Runtime/Program/RunSettings.h"
#include "ds/Support/Align.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt::cuda {

/// The first page that begins at `memory` or behind it.
static void *toPage(void *memory) {
  return reinterpret_cast<void *>(alignTo(reinterpret_cast<uintptr_t>(memory), kStorageUnit));
}

Result<void *> CudaMemory::takeHost(uint64_t bytes, const char *what) {
  void *memory = nullptr;
  if (Status status = context.check(
          context.driver.memHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
          fmt::format("pinning {} bytes of host memory for the {}", bytes, what).c_str());
      !status)
    return Error{ExitCode::DoesNotFit, status.error().message,
                 "raise the limit of locked memory (ulimit -l)"};
  return memory;
}

Result<std::byte *> CudaMemory::pin(uint64_t bytes, const char *what) {
  Result<void *> memory = takeHost(bytes, what);
  if (memory && toPage(*memory) != *memory) { // the driver lets small memory share a page
    context.driver.memFreeHost(*memory);
    memory = takeHost(bytes + kStorageUnit - 1, what);
  }
  if (!memory)
    return memory.error();
  std::byte *const begin = static_cast<std::byte *>(toPage(*memory));
  host.emplace_back(begin, *memory);
  std::fill_n(begin, bytes, std::byte{0});
  return begin;
}

Result<std::byte *> CudaMemory::allocate(Space space, uint64_t bytes, const char *what, CUstream stream) {
  if (space == Space::Host)
    return pin(bytes, what);
  size_t free = 0, total = 0;
  if (Status status = context.check(context.driver.memGetInfo(&free, &total), "asking for free memory");
      !status)
    return status.error();
  CUdeviceptr memory = 0;
  const CUresult result = bytes > free ? CUDA_ERROR_OUT_OF_MEMORY : context.driver.memAlloc(&memory, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return context.outOfMemory(bytes, what, free, total);
  if (Status status = context.check(result, "allocating device memory"); !status)
    return status.error();
  device.push_back({memory, bytes});
  if (Status status =
          context.check(context.driver.memsetD8Async(memory, 0, bytes, stream), "clearing memory");
      !status)
    return status.error();
  return reinterpret_cast<std::byte *>(memory);
}

void CudaMemory::release(std::byte *memory) {
  const auto found =
      std::find_if(host.begin(), host.end(), [&](const auto &pinned) { return pinned.first == memory; });
  if (found == host.end())
    return;
  context.driver.memFreeHost(found->second);
  host.erase(found);
}

Status CudaMemory::lock(std::byte *memory, uint64_t bytes, std::shared_ptr<void> owner) {
  Status status =
      context.check(context.driver.memHostRegister(
                        memory, bytes, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE),
                    "locking pages of the host");
  if (status)
    locked.emplace_back(memory, std::move(owner));
  return status;
}

DeviceMemory CudaMemory::use() const {
  uint64_t arenas = 0;
  for (const Block &block : device)
    arenas += block.bytes;
  return context.memory(arenas);
}

void CudaMemory::free() {
  for (const Block &block : device)
    context.driver.memFree(block.base);
  for (const auto &[begin, taken] : host)
    context.driver.memFreeHost(taken);
  for (auto &[memory, owner] : locked)
    context.driver.memHostUnregister(memory);
  locked.clear();
}

} // namespace ds::rt::cuda
