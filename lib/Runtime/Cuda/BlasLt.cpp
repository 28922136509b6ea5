//===- BlasLt.cpp - Opens cuBLASLt ----------------------------------------------------===//
#include "BlasLt.h"

#include "Cuda/Binding/Library.h"

namespace ds::rt::cuda {

static constexpr const char *kHint =
    "install cuBLAS of CUDA 13.0 or later, and put its directory into LD_LIBRARY_PATH";

Result<std::unique_ptr<BlasLt>> BlasLt::open(const Hardware &hardware) {
  const Result<void *> library =
      openLibrary({"DS_CUBLASLT",
                   {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13"},
                   "matrix products need cuBLASLt 13.0 or later:",
                   kHint});
  if (!library)
    return library.error();
  std::unique_ptr<BlasLt> blas(new BlasLt);
  std::string missing;
#define DS_BLASLT_FIND(FUNCTION, MEMBER) find(*library, DS_SYMBOL(FUNCTION), blas->MEMBER, missing);
  DS_BLASLT_FUNCTIONS(DS_BLASLT_FIND)
#undef DS_BLASLT_FIND
  const size_t version = blas->getVersion ? blas->getVersion() : 0;
  if (!missing.empty() || version < kNeededBlasLt)
    return Error{ExitCode::Device,
                 fmt::format("cuBLASLt has version {}{}, but {} is needed", version,
                             missing.empty() ? "" : " and no " + missing, kNeededBlasLt),
                 kHint};
  if (Status status = blas->check(blas->create(&blas->handle), "making a handle"); !status)
    return status.error();
  blas->prefix = keyPrefix(hardware, "cublaslt", version);
  return blas;
}

BlasLt::~BlasLt() {
  if (handle)
    destroy(handle);
}

Status BlasLt::check(cublasStatus_t status, const char *what) const {
  if (status == CUBLAS_STATUS_SUCCESS)
    return {};
  return Error{ExitCode::Device, fmt::format("cuBLASLt, {}: {}", what, getStatusString(status)), ""};
}

std::string BlasLt::describe() const {
  std::string text;
  for (const auto &[what, shares] : {std::pair("GELU", gelu),
                                     {"gradients of biases", biasGradients},
                                     {"gradients of biases with GELU's", geluBiasGradients}})
    if (const unsigned all = shares.within + shares.apart)
      text +=
          fmt::format("{}{} within {} of {} products", text.empty() ? "" : "; ", what, shares.within, all);
  if (!noBiasGradients.empty())
    text += fmt::format(" ({})", noBiasGradients);
  if (const unsigned all = cut.within + cut.apart)
    text += fmt::format("{}{} of {} products of odd sizes in two calls", text.empty() ? "" : "; ", cut.within,
                        all);
  return text;
}

} // namespace ds::rt::cuda
