//===- Plugin.cpp - The one symbol of libds-cuda.so ----------------------------------===//
#include "CudaDevice.h"

namespace ds::rt::cuda {
namespace {

Device *open(const CudaOptions &options, Error &error) {
  Result<std::unique_ptr<CudaDevice>> device = CudaDevice::open(options);
  if (device)
    return device->release();
  error = device.error();
  return nullptr;
}

constexpr CudaApi kApi{kCudaAbi, open};

} // namespace
} // namespace ds::rt::cuda

/// The plugin's one symbol.
extern "C" __attribute__((visibility("default"))) const ds::rt::CudaApi *dsCuda() {
  return &ds::rt::cuda::kApi;
}
