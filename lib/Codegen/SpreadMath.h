//===- SpreadMath.h - Numbers spread over the shape that is computed in ----------===//
#ifndef DS_LIB_CODEGEN_SPREADMATH_H
#define DS_LIB_CODEGEN_SPREADMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
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

/// The arithmetic that functions of every float type are written in.
struct SpreadArithmetic : SpreadMath {
  using Cmp = arith::CmpFPredicate;

  Value d(double value) const { return spread(b.getF64FloatAttr(value)); }
  Value add(Value x, Value y) const { return b.create<arith::AddFOp>(loc, x, y); }
  Value sub(Value x, Value y) const { return b.create<arith::SubFOp>(loc, x, y); }
  Value mul(Value x, Value y) const { return b.create<arith::MulFOp>(loc, x, y); }
  Value div(Value x, Value y) const { return b.create<arith::DivFOp>(loc, x, y); }
  Value neg(Value x) const { return b.create<arith::NegFOp>(loc, x); }
  Value abs(Value x) const { return b.create<math::AbsFOp>(loc, x); }
  Value cmp(Cmp predicate, Value x, Value y) const { return b.create<arith::CmpFOp>(loc, predicate, x, y); }
  Value select(Value c, Value x, Value y) const { return b.create<arith::SelectOp>(loc, c, x, y); }
  Value addI(Value x, Value y) const { return b.create<arith::AddIOp>(loc, x, y); }
  Value subI(Value x, Value y) const { return b.create<arith::SubIOp>(loc, x, y); }
};

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_SPREADMATH_H
