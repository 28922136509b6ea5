//===- Cudnn.cpp - Opens cuDNN, and owns its descriptors ------------------------------===//
#include "Cudnn.h"

#include "Cuda/Binding/Library.h"

namespace ds::rt::cuda {
namespace {

constexpr const char *kHint = "install cuDNN 9.16 or later for CUDA 13, and put its directory into "
                              "LD_LIBRARY_PATH; DS_CUDNN=0 does without";

std::string spellVersion(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

} // namespace

Result<std::unique_ptr<Cudnn>> Cudnn::open() {
  const Result<void *> library = openLibrary({"DS_CUDNN",
                                              {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"},
                                              "fast attention needs cuDNN 9.16 or later:",
                                              kHint});
  if (!library)
    return library.error();
  std::unique_ptr<Cudnn> cudnn(new Cudnn);
  std::string missing;
#define DS_CUDNN_FIND(FUNCTION, MEMBER) find(*library, DS_SYMBOL(FUNCTION), cudnn->MEMBER, missing);
  DS_CUDNN_FUNCTIONS(DS_CUDNN_FIND)
#undef DS_CUDNN_FIND
  const size_t found = cudnn->getVersion ? cudnn->getVersion() : 0;
  if (!missing.empty() || found < kNeededCudnn)
    return Error{ExitCode::Device,
                 fmt::format("cuDNN has version {}{}, but {} is needed", spellVersion(found),
                             missing.empty() ? "" : " and no " + missing, spellVersion(kNeededCudnn)),
                 kHint};
  return cudnn;
}

std::string Cudnn::version() const { return spellVersion(getVersion()); }

Status Cudnn::check(cudnnStatus_t status, const char *what) const {
  if (status == CUDNN_STATUS_SUCCESS)
    return {};
  char message[512] = "";
  getLastErrorString(message, sizeof message);
  return Error{ExitCode::Device,
               fmt::format("cuDNN, {}: {}{}{}", what, getErrorString(status), *message ? ": " : "", message),
               ""};
}

Descriptor::Descriptor(const Cudnn &cudnn, cudnnBackendDescriptorType_t type) : cudnn(&cudnn) {
  error = cudnn.create(type, &raw);
}

Descriptor::~Descriptor() {
  if (raw)
    cudnn->destroy(raw);
}

Descriptor &Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                            const void *values) {
  if (error == CUDNN_STATUS_SUCCESS)
    error = cudnn->setAttribute(raw, name, type, count, values);
  return *this;
}

Status Descriptor::finalize(const char *what) {
  if (error == CUDNN_STATUS_SUCCESS)
    error = cudnn->finalize(raw);
  return cudnn->check(error, what);
}

int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                        void *values) const {
  int64_t found = 0;
  return cudnn->getAttribute(raw, name, type, count, &found, values) == CUDNN_STATUS_SUCCESS ? found : 0;
}

Result<Descriptor> deviceProperties(const Cudnn &cudnn, cudnnHandle_t handle) {
  Descriptor device(cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  Status status = device.finalize("describing the device");
  return status ? Result<Descriptor>(std::move(device)) : status.error();
}

Result<Descriptor> deviceProperties(const Cudnn &cudnn, const std::string &json) {
  Descriptor device(cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(json.size()),
             json.data());
  Status status = device.finalize("describing a device");
  return status ? Result<Descriptor>(std::move(device)) : status.error();
}

} // namespace ds::rt::cuda
