//===- CudaMemory.h - A GPU's memory, and pinned memory beside it --------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDAMEMORY_H
#define DS_LIB_RUNTIME_CUDA_CUDAMEMORY_H

#include "CudaContext.h"

#include <memory>
#include <utility>
#include <vector>

namespace ds::rt::cuda {

class CudaMemory {
public:
  struct Block {
    CUdeviceptr base;
    uint64_t bytes;
  };

  /// `context` outlives the memory.
  explicit CudaMemory(const CudaContext &context) : context(context) {}

  /// What Device::allocate says; `stream` clears memory of the device.
  Result<std::byte *> allocate(Space space, uint64_t bytes, const char *what, CUstream stream);

  /// What Device has of these names.
  void release(std::byte *memory);
  Status lock(std::byte *memory, uint64_t bytes, std::shared_ptr<void> owner);

  /// What was taken of the device.
  const std::vector<Block> &onDevice() const { return device; }
  DeviceMemory use() const;

  /// Gives everything back, once nothing uses it any more.
  void free();

private:
  /// Zeroed pinned memory from the begin of a page on.
  Result<std::byte *> pin(uint64_t bytes, const char *what);
  Result<void *> takeHost(uint64_t bytes, const char *what);

  const CudaContext &context;
  std::vector<Block> device;
  std::vector<std::pair<std::byte *, void *>> host; ///< from its page on, and as the driver gave it
  /// Memory that others have taken, and is locked here, with what keeps it.
  std::vector<std::pair<void *, std::shared_ptr<void>>> locked;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDAMEMORY_H
