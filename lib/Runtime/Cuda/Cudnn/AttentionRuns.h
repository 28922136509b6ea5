//===- AttentionRuns.h - What an attention command issues, in order ----------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_ATTENTIONRUNS_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_ATTENTIONRUNS_H

#include "Cuda/Binding/Binding.h"
#include "Cuda/Binding/Driver.h"

#include <memory>
#include <vector>

namespace ds::rt::cuda {

/// Runs one after another.
class Runs final : public CudaTask {
public:
  void add(std::unique_ptr<CudaTask> task) { tasks.push_back(std::move(task)); }
  Status issue(CUstream stream) override {
    for (const std::unique_ptr<CudaTask> &task : tasks)
      if (Status status = task->issue(stream); !status)
        return status;
    return {};
  }

private:
  std::vector<std::unique_ptr<CudaTask>> tasks;
};

/// Clears memory.
class ClearTask final : public CudaTask {
public:
  ClearTask(const Driver &driver, std::byte *memory, uint64_t bytes)
      : driver(driver), memory(reinterpret_cast<CUdeviceptr>(memory)), bytes(bytes) {}
  Status issue(CUstream stream) override {
    const CUresult result = driver.memsetD8Async(memory, 0, bytes, stream);
    return result == CUDA_SUCCESS ? Status() : asError(driver, result, "clearing sums of attention");
  }

private:
  const Driver &driver;
  CUdeviceptr memory;
  uint64_t bytes;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_ATTENTIONRUNS_H
