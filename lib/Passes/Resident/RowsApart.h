//===- RowsApart.h - Which rows lie further apart than they are long -----------------------===//
//
// Tensor cores want a row to begin at a multiple of 16 bytes, so rows of odd lengths are laid apart where all
// that makes or reads them goes row by row. Said once, for the choice of what is kept counts on tensors what
// ds-align-rows does to buffers.
//
// Example: logits of 16384 x 50257 of 16 bits, that a product makes and a loss and two products read, have
// rows of 50304 elements, 1.5 MB more in all. Behind GELU's epilogue they would stay as they are.
//
//===---------------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_ROWSAPART_H
#define DS_LIB_PASSES_RESIDENT_ROWSAPART_H

#include "ds/Dialect/Ds.h"
#include "ds/Runtime/Program/Library.h"

namespace mlir::ds {

/// Elements of a row, and from one row to the next once they lie apart.
struct Rows {
  int64_t elements, pitch;
};

/// The rows of a tensor of the device where they should lie further apart than they do.
std::optional<Rows> findRowsApart(RankedTensorType tensor);

/// Whether a call of `callee` with `params` walks its operand `index` row by row (Library.h), and so takes
/// rows that lie apart. GELU's products want their result packed.
bool walksRows(::ds::rt::LibraryFn callee, ArrayRef<Attribute> params, unsigned index);

/// Whether a call of `op` walks `value` row by row wherever it names it, an operand or a result.
bool walksRows(Operation *op, Value value);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_ROWSAPART_H
