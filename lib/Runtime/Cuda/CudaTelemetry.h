//===- CudaTelemetry.h - How far a GPU has come, and when ------------------------------===//
//
// Marks are words of pinned memory that streams write: they can still be read when an error has made the
// context unusable. Times are those of events, or where CUPTI serves this process, of the work itself
// (Activity.h).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDATELEMETRY_H
#define DS_LIB_RUNTIME_CUDA_CUDATELEMETRY_H

#include "CudaStreams.h"

namespace ds::rt::cuda {

class CudaTelemetry final : public DeviceTelemetry {
public:
  /// Both outlive the telemetry.
  CudaTelemetry(const CudaContext &context, const CudaStreams &streams)
      : context(context), streams(streams) {}

  Status make(const Program &program);
  /// Once nothing runs any more.
  void destroy();

  Status mark(uint32_t stream, uint32_t command) override;
  uint32_t reached(uint32_t stream) const override { return marks[stream]; }
  void resetMarks(uint32_t command) override;
  Status stamp(uint32_t index, uint32_t stream) override;
  Result<double> secondsBetween(uint32_t from, uint32_t to) override;
  bool startObserving() override;
  void observe(uint32_t index) override;
  std::vector<Observed> takeObserved() override;
  void beginRange(const char *name) override;
  void endRange() override;

private:
  const CudaContext &context;
  const CudaStreams &streams;
  volatile uint32_t *marks = nullptr; ///< by stream; pinned
  CUdeviceptr marksOnDevice = 0;
  std::vector<CUevent> stamps; ///< with times; made when first used
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDATELEMETRY_H
