//===- CudaPlugin.h - CUDA's side of the runtime, opened on demand ---------------===//
//
// libds-cuda.so is the only file that knows CUDA, and it links none of it: the driver and NVIDIA's libraries
// are opened when they are first needed. Plugin and tool come from one build and share a compiler and a C++
// library, so the border is a C++ interface (Device.h) behind one C entry point, `dsCuda`.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDAPLUGIN_H
#define DS_LIB_RUNTIME_CUDA_CUDAPLUGIN_H

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Engine/Device.h"

namespace ds::rt {

inline constexpr uint32_t kCudaAbi = 8;

struct CudaOptions {
  uint32_t ordinal = 0; ///< which of this machine's devices
  RankGroup *ranks = nullptr;
  std::chrono::milliseconds timeout = kDefaultTimeout;
};

struct CudaApi {
  uint32_t abi;
  /// A device with a context of its own; null (and `error`) on failure.
  Device *(*open)(const CudaOptions &options, Error &error);
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CUDA_CUDAPLUGIN_H
