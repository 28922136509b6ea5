//===- Rows.h - Values as rows ------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_ROWS_H
#define DS_LIB_PASSES_SUPPORT_ROWS_H

#include "ds/Dialect/Emitter.h"

namespace mlir::ds {

/// True when `op` only picks or rearranges rows: the last dimension stays as it is.
inline bool keepsColumns(Operation *op) {
  auto columns = [](Value value) { return tensorType(value).getShape().back(); };
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return tensorType(reshape.getInput()).getRank() > 0 && columns(reshape.getInput()) == columns(reshape);
  if (auto slice = dyn_cast<SliceOp>(op))
    return columns(slice.getInput()) == columns(slice);
  return false;
}

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_ROWS_H
