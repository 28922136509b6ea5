//===- CudaDevice.h - One GPU as a Device -----------------------------------------===//
//
// The parts of a device, each with what changes together, and the order in which they begin and end: first
// what uses, then what is used.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDADEVICE_H
#define DS_LIB_RUNTIME_CUDA_CUDADEVICE_H

#include "CudaCommands.h"

namespace ds::rt::cuda {

class CudaDevice final : public Device {
public:
  static Result<std::unique_ptr<CudaDevice>> open(const CudaOptions &options);
  ~CudaDevice() override;

  std::string describe() const override { return context->describe() + bound.describe(); }
  Status load(const Program &program, uint32_t rank, std::vector<GroupUse> groups) override;
  Result<std::byte *> allocate(Space space, uint64_t bytes, const char *what) override;
  void release(std::byte *memory) override { taken.release(memory); }
  Status lock(std::byte *memory, uint64_t bytes, std::shared_ptr<void> owner) override {
    return taken.lock(memory, bytes, std::move(owner));
  }
  DeviceMemory memory() const override { return taken.use(); }
  Status bind(uint32_t command, const Address &address) override { return bound.bind(command, address); }
  Status choose() override;
  Status draw(std::byte *at, DType dtype, const RandomCall &call) override {
    return bound.draw(at, dtype, call);
  }
  Status issue(uint32_t command, uint32_t microBatch) override { return bound.issue(command, microBatch); }
  Status synchronize() override { return ranks.synchronize(); }
  DeviceStreams &streams() override { return queues; }
  DeviceGraphs &graphs() override { return recorded; }
  DeviceTelemetry &telemetry() override { return observed; }

private:
  CudaDevice(std::unique_ptr<CudaContext> context, const CudaOptions &options);

  const std::unique_ptr<CudaContext> context;
  CudaMemory taken;
  CudaStreams queues;
  CudaTelemetry observed;
  CudaGraphs recorded;
  CudaRanks ranks;
  CudaCommands bound;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDADEVICE_H
