//===- CudaStreams.h - Streams and events of a program ------------------------------===//
//
// A stream for each of the program's, an event for each of the program's and for each execution that a lane
// waits for, and one more by stream for where it stands when streams fork or join.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDASTREAMS_H
#define DS_LIB_RUNTIME_CUDA_CUDASTREAMS_H

#include "CudaContext.h"

namespace ds::rt::cuda {

class CudaStreams final : public DeviceStreams {
public:
  /// `context` outlives the streams.
  explicit CudaStreams(const CudaContext &context) : context(context) {}

  Status make(const Program &program);
  /// Once nothing runs on them any more.
  void destroy();

  CUstream operator[](uint32_t stream) const { return streams[stream]; }
  uint32_t size() const { return static_cast<uint32_t>(streams.size()); }
  CUstream compute() const { return streams[computeStream]; }

  Status record(uint32_t event, uint32_t stream) override;
  Status wait(uint32_t event, uint32_t stream) override;
  Status callHost(uint32_t stream, void (*body)(void *), void *argument) override;
  Status fork(std::span<const uint32_t> others) override;
  Status join(std::span<const uint32_t> others) override;
  Status copy(std::byte *to, const std::byte *from, uint64_t bytes) override;
  Status fill(std::byte *at, uint8_t byte, uint64_t bytes) override;

  /// Returns when all work is done, or with the first error of any of it.
  Status synchronize();

private:
  const CudaContext &context;
  uint32_t computeStream = 0;
  std::vector<CUstream> streams;
  std::vector<CUevent> events;   ///< the program's, and those of lanes
  std::vector<CUevent> meetings; ///< by stream
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDASTREAMS_H
