//===- Product.h - One way of a product by cuBLASLt -----------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_PRODUCTS_PRODUCT_H
#define DS_LIB_RUNTIME_CUDA_PRODUCTS_PRODUCT_H

#include "Cuda/BlasLt.h"

#include "ds/Runtime/Onednn/OnednnPlugin.h"
#include "ds/Runtime/Program/Library.h"

#include <span>
#include <vector>

namespace ds::rt::cuda {

/// What the library does beside a product.
/// GELU or its gradient is of the f32 sums. Its headers do not say which form its GELU has; PyTorch (pull
/// request 104061), XLA's rewriter of products and llm.c take it for the tanh form.
struct Epilogue {
  Activation activation = Activation::None; ///< that, Gelu or GeluGradient
  void *input = nullptr;                    ///< what GELU is taken of: written or read, or null
  Summed summed = Summed::None;             ///< what it adds up: the result with GELU's gradient only
  void *sums = nullptr;                     ///< into these, of type sumsType
  DType sumsType = DType::F32;
};

/// One matrix of a product as the library sees it, by columns.
struct Matrix {
  int64_t rows, columns, leading;
  bool transposed; ///< the operand is the transpose of this
};

/// A description of a product, and the algorithm that is to run it.
/// Its fields are the descriptors that one call takes, which are made and freed together.
class Product {
public:
  using Algorithm = cublasLtMatmulHeuristicResult_t;

  Product(BlasLt &blas, bool tf32) : blas(blas), tf32(tf32) {}
  Product(const Product &) = delete;
  ~Product();

  /// Fails where the library cannot be asked for the product in this way.
  Status describe(const MatmulDesc &desc, const MatmulMemory &memory, const Epilogue &beside = {});
  /// What the library proposes within so much workspace, best first; at least one.
  Result<std::vector<Algorithm>> candidates(uint64_t workspaceBytes);
  void take(const Algorithm &chosen) {
    algorithm = chosen.algo;
    workspaceUsed = chosen.workspaceSize;
  }
  /// Takes the algorithm that these words name, if it is still one for this product.
  bool recall(std::span<const uint64_t> kept, uint64_t workspaceBytes);

  /// The words of what was taken.
  std::span<const uint64_t> words() const { return algorithm.data; }

  Status issue(CUstream stream);
  /// The first of its calls, which all are alike.
  Status issueOne(CUstream stream) { return run(calls[0], stream); }
  /// Of the cache: all that a choice depends on but the workspace.
  const std::string &key() const { return keyText; }

private:
  struct Call {
    const std::byte *first, *second;
    std::byte *result;
  };

  Status makeLayout(int index, const Matrix &matrix, cudaDataType_t type, int64_t batch, int64_t stride);
  Status setEpilogue(const MatmulDesc &desc, const void *bias, const Epilogue &beside, bool flips);
  Status setGeluInput(const Epilogue &beside, const Matrix &written, cudaDataType_t type, bool isOneCall);
  Status setSums(const Epilogue &beside, cudaDataType_t type);
  template <class T>
  Status set(cublasLtMatmulDescAttributes_t which, const T &value) {
    return blas.check(blas.descSet(operation, which, &value, sizeof value), "describing a product");
  }
  Status run(const Call &call, CUstream stream);
  void preferAligned(cublasLtMatmulPreference_t preference) const;

  BlasLt &blas;
  bool tf32; ///< whether it may be used
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t layouts[3] = {};
  cublasLtMatmulAlgo_t algorithm{};
  std::vector<Call> calls;
  uint32_t alignments[3] = {256, 256, 256}; ///< of the factors and the result in all calls, in bytes
  void *workspace = nullptr;
  size_t workspaceUsed = 0;
  float beta = 0;
  bool mayReduce = true; ///< whether parts of a sum may be added up after the product
  std::string keyText;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_PRODUCTS_PRODUCT_H
