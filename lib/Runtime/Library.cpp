//===- Library.cpp - Scratch memory of library functions -----------------------===//
//
// Asked by the planner, which reserves it, and by the verifier, which holds programs to it.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Library.h"

namespace ds::rt {
namespace {

/// The product of sizes, or the largest number where it is larger.
uint64_t product(std::initializer_list<uint64_t> factors) {
  uint64_t result = 1;
  for (uint64_t factor : factors)
    if (__builtin_mul_overflow(result, factor, &result))
      return UINT64_MAX;
  return result;
}

uint64_t size(int64_t extent) { return static_cast<uint64_t>(extent); }

} // namespace

uint64_t libraryWorkspaceBytes(LibraryFn fn, std::span<const Buffer *const> operands, uint32_t threads) {
  if (fn == LibraryFn::AttentionBackward && operands[0]->dtype != DType::F32) {
    const Buffer &keys = *operands[1];
    return product({2 * sizeof(float), threads, size(keys.shape[1]), size(keys.shape[3])});
  }
  if (fn == LibraryFn::EmbeddingBackward && operands[2]->dtype != DType::F32) {
    uint64_t ids = 1;
    for (int64_t extent : operands[0]->shape)
      ids = product({ids, size(extent)});
    return product({2 * sizeof(int32_t), ids});
  }
  return 0;
}

} // namespace ds::rt
