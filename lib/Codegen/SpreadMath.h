//===- SpreadMath.h - Numbers spread over the shape that is computed in ----------===//
#ifndef DS_LIB_CODEGEN_SPREADMATH_H
#define DS_LIB_CODEGEN_SPREADMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace mlir::ds::codegen {

/// What arithmetic on values of one shape, scalars or vectors, shares: its types and constants.
struct SpreadMath {
  OpBuilder &b;
  Location loc;
  Type shape; ///< any type of the shape that is computed in

  /// `element` in that shape.
  Type typeOf(Type element) const {
    auto vector = dyn_cast<VectorType>(shape);
    return vector ? Type(vector.clone(element)) : element;
  }
  /// The constant `value`, in every place of the shape.
  Value spread(TypedAttr value) const {
    if (auto vector = dyn_cast<VectorType>(typeOf(value.getType())))
      value = DenseElementsAttr::get(vector, value);
    return b.create<arith::ConstantOp>(loc, value);
  }
  Value f(float value) const { return spread(b.getF32FloatAttr(value)); }
};

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_SPREADMATH_H
