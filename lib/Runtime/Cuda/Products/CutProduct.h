//===- CutProduct.h - A product of an odd size, in two calls ---------------------------===//
//
// cuBLASLt's fast kernels take sizes of whole 16 bytes only, however rows lie. On an H200, 8192 x 50257 x 768
// in bf16 with rows 50304 elements apart runs at 97 TFLOP/s, as slow as with rows of 50257, and 8192 x 50304
// x 768 at 826. So a size that is no multiple is cut into one that is and a rest:
//
//      columns        0 ................. 50256 50257
//      the main part  |-------------------|
//      the rest                           |-----|
//
// Where it is the result's rows or columns that are cut, no number depends on it. Of summands the rest comes
// first, and the main part adds it to what it has summed up in f32: the sum of the rest alone is rounded once
// more, to the result's type.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_PRODUCTS_CUTPRODUCT_H
#define DS_LIB_RUNTIME_CUDA_PRODUCTS_CUTPRODUCT_H

#include "Product.h"

#include "Cuda/Binding/Driver.h"

#include <memory>

namespace ds::rt::cuda {

class CutProduct {
public:
  /// The product, cut so that its main part is a multiple of `unit` elements, itself a multiple of 8. Null
  /// where that would not help: factors of other than 16 bits, batches, none or several odd sizes, a rest
  /// that is more than 1/16, rows that begin on no 16 bytes; and where the library cannot be asked.
  static std::unique_ptr<CutProduct> make(BlasLt &blas, bool tf32, const MatmulDesc &desc,
                                          const MatmulMemory &memory, int64_t unit);

  /// Takes an algorithm for the rest within so much workspace: the fastest, timed on `stream`, or the
  /// library's first.
  Status chooseRest(const Driver &driver, CUstream stream, uint64_t workspaceBytes, bool byTime);
  /// Of the main part, as Product's.
  Result<std::vector<Product::Algorithm>> candidates(uint64_t workspaceBytes) {
    return main.candidates(workspaceBytes);
  }
  void take(const Product::Algorithm &chosen) { main.take(chosen); }
  /// Takes the algorithms that these words name, the main part's first, if they still are some.
  bool recall(std::span<const uint64_t> kept, uint64_t workspaceBytes);
  /// The words of the rest's algorithm.
  std::span<const uint64_t> restWords() const { return rest.words(); }

  Status issue(CUstream stream);

private:
  CutProduct(BlasLt &blas, bool tf32) : main(blas, tf32), rest(blas, tf32) {}

  Product main, rest;
  bool isRestFirst = false;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_PRODUCTS_CUTPRODUCT_H
