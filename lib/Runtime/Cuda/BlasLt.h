//===- BlasLt.h - Matrix products by cuBLASLt ----------------------------------------===//
//
// An algorithm is chosen when the program is loaded (Choices.h): the library's candidates within the planned
// workspace are timed once for each shape, and the winner is kept on disk, so that every later run of the
// same program takes the same one and gives the same bits. Where nothing can be kept, the library's first
// candidate is taken and nothing is timed, for the same reason.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_BLASLT_H
#define DS_LIB_RUNTIME_CUDA_BLASLT_H

#include "Cuda/Binding/AlgorithmCache.h"
#include "Cuda/Binding/Binding.h"

#include <cublasLt.h>

#include <string>

namespace ds::rt::cuda {

/// The first version that is known to work: CUDA 13.0's.
inline constexpr size_t kNeededBlasLt = 130000;

#define DS_BLASLT_FUNCTIONS(X)                                                                               \
  X(cublasLtCreate, create)                                                                                  \
  X(cublasLtDestroy, destroy)                                                                                \
  X(cublasLtGetVersion, getVersion)                                                                          \
  X(cublasLtGetStatusString, getStatusString)                                                                \
  X(cublasLtMatmul, matmul)                                                                                  \
  X(cublasLtMatmulAlgoGetHeuristic, getHeuristic)                                                            \
  X(cublasLtMatmulAlgoCheck, algoCheck)                                                                      \
  X(cublasLtMatmulDescCreate, descCreate)                                                                    \
  X(cublasLtMatmulDescDestroy, descDestroy)                                                                  \
  X(cublasLtMatmulDescSetAttribute, descSet)                                                                 \
  X(cublasLtMatmulPreferenceCreate, preferenceCreate)                                                        \
  X(cublasLtMatmulPreferenceDestroy, preferenceDestroy)                                                      \
  X(cublasLtMatmulPreferenceSetAttribute, preferenceSet)                                                     \
  X(cublasLtMatrixLayoutCreate, layoutCreate)                                                                \
  X(cublasLtMatrixLayoutDestroy, layoutDestroy)                                                              \
  X(cublasLtMatrixLayoutSetAttribute, layoutSet)

/// The open library with its handle.
class BlasLt {
public:
#define DS_BLASLT_DECLARE(FUNCTION, MEMBER) decltype(&::FUNCTION) MEMBER = nullptr;
  DS_BLASLT_FUNCTIONS(DS_BLASLT_DECLARE)
#undef DS_BLASLT_DECLARE

  /// Fails with ExitCode::Device: missing, too old (found and needed version), or refused by the device.
  static Result<std::unique_ptr<BlasLt>> open(const Hardware &hardware);
  ~BlasLt();

  Status check(cublasStatus_t status, const char *what) const;
  /// "GELU within 24 of 24 products; gradients of biases within 36 of 36 products; gradients of biases with
  /// GELU's within 12 of 12 products; 3 of 3 products of odd sizes in two calls", for the head of a run;
  /// empty without such products.
  std::string describe() const;

  cublasLtHandle_t handle = nullptr;
  std::string prefix; ///< of keys of choices: device, driver and version
  /// Products that could do more than multiply, by who does it: the product, or kernels.
  struct Shares {
    unsigned within = 0, apart = 0;
  };
  Shares gelu;              ///< GELU or its gradient
  Shares biasGradients;     ///< sums of a factor
  Shares geluBiasGradients; ///< sums of the result, with GELU's gradient
  Shares cut;               ///< odd sizes: in two calls, and in one
  /// Why the first product that was asked for sums cannot give them; empty where all can, or none was asked.
  std::string noBiasGradients;
  std::vector<uint32_t> madeWithGelu; ///< commands whose sums products with GELU's gradient make

private:
  BlasLt() = default;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_BLASLT_H
