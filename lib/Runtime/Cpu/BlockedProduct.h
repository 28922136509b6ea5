//===- BlockedProduct.h - Runs a 16-bit product block by block -----------------===//
#ifndef DS_LIB_RUNTIME_CPU_BLOCKEDPRODUCT_H
#define DS_LIB_RUNTIME_CPU_BLOCKEDPRODUCT_H

#include "Task.h"

#include "ds/Runtime/Onednn/ProductBlocks.h"

namespace ds::rt {

/// Addresses of the command's operands; `workspace` has blocks.bytes.
struct BlockedMemory {
  const void *a, *b, *bias;
  void *result, *workspace;
};

/// The task of a product that `needsBlocks`, its f32 products bound to the workspace.
Result<std::unique_ptr<Task>> bindBlockedProduct(const ProductBlocks &blocks, const BlockedMemory &memory,
                                                 uint32_t threads, Isa isa, std::string where);

/// How this machine forms the program's 16-bit products, in one line; empty when it has none.
std::string describeNarrowProducts(const Program &program);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CPU_BLOCKEDPRODUCT_H
