//===- CudaContext.h - One GPU and its context --------------------------------------===//
//
// The primary context, so that libraries share it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDACONTEXT_H
#define DS_LIB_RUNTIME_CUDA_CUDACONTEXT_H

#include "Cuda/Binding/Binding.h"
#include "Cuda/Binding/Driver.h"
#include "CudaPlugin.h"

#include <optional>

namespace ds::rt::cuda {

class CudaContext {
public:
  /// The device that `options` name, with its context current on this thread.
  static Result<std::unique_ptr<CudaContext>> open(const CudaOptions &options);

  const Hardware &hardware() const { return found; }
  const std::string &busId() const { return bus; }
  /// "NVIDIA H200 (sm_90, 132 multiprocessors), driver for CUDA 13.0"
  std::string describe() const;

  /// Makes the context current on this thread.
  void enter() const { driver.ctxSetCurrent(context); }
  /// Gives it up, the last of all that was made in it.
  void release() { driver.devicePrimaryCtxRelease(handle); }

  /// The error of a call of the driver's that did `what`.
  Status check(CUresult result, const char *what) const;
  Result<CUevent> makeEvent(unsigned flags) const;
  /// Of memory for `what`, when so much was free; says who holds the rest.
  Error outOfMemory(uint64_t bytes, const char *what, uint64_t free, uint64_t total) const;
  /// What is held here now, `arenas` of it by the program.
  DeviceMemory memory(uint64_t arenas) const;

  const Driver &driver;

private:
  explicit CudaContext(const Driver &driver) : driver(driver) {}
  Status find(const CudaOptions &options);
  void describeHardware();
  Status start();
  int attribute(CUdevice_attribute which) const;

  CUdevice handle = 0;
  CUcontext context = nullptr;
  std::string bus; ///< its PCI address
  Hardware found;
  uint64_t freeAtStart = 0;            ///< bytes, the context made
  std::optional<uint64_t> usedAtStart; ///< bytes, by all processes, before there was a context
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDACONTEXT_H
