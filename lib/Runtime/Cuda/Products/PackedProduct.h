//===- PackedProduct.h - A product on copies whose rows lie further apart --------------===//
#ifndef DS_LIB_RUNTIME_CUDA_PRODUCTS_PACKEDPRODUCT_H
#define DS_LIB_RUNTIME_CUDA_PRODUCTS_PACKEDPRODUCT_H

#include "ProductWays.h"

#include "ds/Runtime/Program/PackedRows.h"

namespace ds::rt::cuda {

/// Adds to `all` the ways in two calls on copies of `rows` (PackedRows.h) at the begin of the workspace. None
/// where the library cannot be asked for such a product. Fails where a copy cannot be launched.
Status addPackedWays(ProductWays &all, const Binding &binding, const MatmulDesc &desc,
                     const MatmulMemory &memory, const PackedRows &rows);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_PRODUCTS_PACKEDPRODUCT_H
