//===- ProductWays.h - The ways of a product that cuBLASLt has -------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_PRODUCTS_PRODUCTWAYS_H
#define DS_LIB_RUNTIME_CUDA_PRODUCTS_PRODUCTWAYS_H

#include "CutProduct.h"

#include "Cuda/Binding/AlgorithmCache.h"
#include "Cuda/Binding/Binding.h"

#include <optional>

namespace ds::rt::cuda {

/// Of how many elements the main part of a product in two calls is a multiple: whole 16 bytes, or whole lines
/// of 128.
inline constexpr int64_t kCutUnits[] = {8, 64};

/// A product in two calls, and what is copied before and after it.
struct InTwo {
  std::unique_ptr<CutProduct> product;
  std::vector<std::unique_ptr<CudaTask>> before = {}, after = {};
  uint64_t copies = 0; ///< bytes of the workspace, at its begin, that the product does not have for itself

  Status issue(CUstream stream);
};

/// The same product as several calls of the library would give it, of which one is taken.
class ProductWays {
public:
  /// Apart: it multiplies, and kernels do what is to be done besides. Whole: it applies GELU, or adds up a
  /// factor. Both: it applies GELU's gradient and adds up its result. From Cut on: in two calls.
  enum Kind : uint64_t { kApart, kWhole, kBoth, kCut };
  struct Way {
    uint64_t which;
    Product::Algorithm algorithm;
  };

  ProductWays(BlasLt &blas, bool tf32) : blas(blas), tf32(tf32), plain(blas, tf32) {}

  Status describe(const MatmulDesc &desc, const MatmulMemory &memory) { return plain.describe(desc, memory); }
  /// Adds the way kWhole or kBoth; fails where the library cannot be asked for it.
  Status add(uint64_t which, const MatmulDesc &desc, const MatmulMemory &memory, const Epilogue &beside);
  /// Adds those in two calls, where that is possible.
  void addCuts(const MatmulDesc &desc, const MatmulMemory &memory);
  /// One of them, on any operands; null where it is not possible.
  std::unique_ptr<CutProduct> cut(const MatmulDesc &desc, const MatmulMemory &memory, int64_t unit) {
    return CutProduct::make(blas, tf32, desc, memory, unit);
  }
  void addCut(InTwo way) { cuts.push_back(std::move(way)); }

  bool has(uint64_t which) const;
  bool hasCuts() const { return !cuts.empty(); }
  /// Whether what is cut are copies.
  bool hasCopies() const { return hasCuts() && cuts[0].copies > 0; }
  /// Appends what the library proposes within so much workspace for a way in one call.
  Status find(std::vector<Way> &all, uint64_t which, uint64_t workspaceBytes);
  /// Those in two calls; none where one of the cuts cannot be asked for.
  std::vector<Way> findCuts(const Driver &driver, CUstream stream, uint64_t workspaceBytes, bool byTime);

  void take(const Way &way);
  /// Takes the way that a value names, if it is one.
  bool recall(const AlgorithmCache::Value &kept, uint64_t workspaceBytes);
  /// The words of a way; where there are several, the first says which.
  AlgorithmCache::Value nameOf(const Way &way) const;
  uint64_t taken() const { return which; }
  /// Of the cache: all that a choice depends on but the workspace.
  std::string key() const;

  /// The product of what is taken, and the first of its calls alone, which all are alike.
  Status issue(CUstream stream) { return isCut() ? cuts[which - kCut].issue(stream) : inOne().issue(stream); }
  Status issueOne(CUstream stream) {
    return isCut() ? cuts[which - kCut].issue(stream) : inOne().issueOne(stream);
  }

private:
  bool isCut() const { return which >= kCut; }
  Product &inOne() { return which == kWhole ? *whole : which == kBoth ? *both : plain; }

  BlasLt &blas;
  bool tf32;
  Product plain;
  std::optional<Product> whole, both;
  std::vector<InTwo> cuts;
  uint64_t which = kApart; ///< taken
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_PRODUCTS_PRODUCTWAYS_H
