//===- Cudnn.h - cuDNN's graph API, opened when attention asks ---------------------===//
//
// Only the C functions of the graph API are used. cuDNN describes everything by descriptors: made, given
// attributes, finalised, and only then of use to others. An engine for a graph is found and compiled either
// for a device that is here or for the properties of one, so that graphs can be tried without a GPU.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_CUDNN_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_CUDNN_H

#include "ds/Support/Error.h"

#include <cudnn_graph.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace ds::rt::cuda {

/// The first version that is asked: 9.16. Before 9.15.1 gradients are wrong where the number of keys is no
/// multiple of 128, and 9.11 is the first that takes a device's properties.
inline constexpr size_t kNeededCudnn = 91600;

#define DS_CUDNN_FUNCTIONS(X)                                                                                \
  X(cudnnGetVersion, getVersion)                                                                             \
  X(cudnnGetErrorString, getErrorString)                                                                     \
  X(cudnnGetLastErrorString, getLastErrorString)                                                             \
  X(cudnnCreate, createHandle)                                                                               \
  X(cudnnDestroy, destroyHandle)                                                                             \
  X(cudnnSetStream, setStream)                                                                               \
  X(cudnnBackendCreateDescriptor, create)                                                                    \
  X(cudnnBackendDestroyDescriptor, destroy)                                                                  \
  X(cudnnBackendFinalize, finalize)                                                                          \
  X(cudnnBackendSetAttribute, setAttribute)                                                                  \
  X(cudnnBackendGetAttribute, getAttribute)                                                                  \
  X(cudnnBackendExecute, execute)

/// The open library; it stays open.
class Cudnn {
public:
#define DS_CUDNN_DECLARE(FUNCTION, MEMBER) decltype(&::FUNCTION) MEMBER = nullptr;
  DS_CUDNN_FUNCTIONS(DS_CUDNN_DECLARE)
#undef DS_CUDNN_DECLARE

  /// Fails with ExitCode::Device: missing, or too old (found and needed version). Needs no device.
  static Result<std::unique_ptr<Cudnn>> open();

  /// Success, or what the library says of its last failure.
  Status check(cudnnStatus_t status, const char *what) const;
  /// "9.19.0".
  std::string version() const;

private:
  Cudnn() = default;
};

/// One of the library's descriptors, owned. An attribute that the library refuses makes the first error,
/// which `finalize` tells.
class Descriptor {
public:
  Descriptor() = default;
  Descriptor(const Cudnn &cudnn, cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor &&other) noexcept { *this = std::move(other); }
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(cudnn, other.cudnn);
    std::swap(raw, other.raw);
    std::swap(error, other.error);
    return *this;
  }
  ~Descriptor();

  Descriptor &set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void *values);
  Descriptor &set(cudnnBackendAttributeName_t name, int64_t value) {
    return set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  Descriptor &set(cudnnBackendAttributeName_t name, bool value) {
    return set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  Descriptor &set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  Descriptor &set(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
  }
  Status finalize(const char *what);

  /// Up to `count` values of an attribute; returns how many there are, 0 on failure.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
              void *values) const;
  cudnnBackendDescriptor_t get() const { return raw; }

private:
  const Cudnn *cudnn = nullptr;
  cudnnBackendDescriptor_t raw = nullptr;
  cudnnStatus_t error = CUDNN_STATUS_SUCCESS; ///< the first
};

/// The device that engines are chosen and compiled for: that of `handle`, or one that `json` describes as the
/// library itself writes it.
Result<Descriptor> deviceProperties(const Cudnn &cudnn, cudnnHandle_t handle);
Result<Descriptor> deviceProperties(const Cudnn &cudnn, const std::string &json);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNN_H
