//===- OpHelpers.h - What the verifiers of several files share -------------------===//
#ifndef DS_LIB_DIALECT_OPHELPERS_H
#define DS_LIB_DIALECT_OPHELPERS_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// The tensor type of `value`.
inline RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Emits "expects WHAT to be EXPECTED, but got TYPE" unless they are equal.
inline LogicalResult expectType(Operation *op, StringRef what, Type expected, Type type) {
  if (expected == type)
    return success();
  return op->emitOpError("expects ") << what << " to be " << expected << ", but got " << type;
}

/// Parameters of a library call, in order.
inline SmallVector<Attribute> makeParams(MLIRContext *context, ArrayRef<int64_t> integers) {
  Builder builder(context);
  return llvm::map_to_vector(integers,
                             [&](int64_t value) -> Attribute { return builder.getI64IntegerAttr(value); });
}

} // namespace mlir::ds

#endif // DS_LIB_DIALECT_OPHELPERS_H
