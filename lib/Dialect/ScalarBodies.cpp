//===- ScalarBodies.cpp - Elementwise ops in arith and math --------------------===//
//
// One function per op, valid for scalars and for vectors alike. No fast-math flag is ever set: what is
// written here is the order of operations that every device computes. Operands of ui8 come as i8 bits; the op
// knows the type.
//
//===---------------------------------------------------------------------------===//

#include "ds/Dialect/Ds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>

using namespace mlir;
using namespace mlir::ds;

namespace {
/// True when `value` holds floats, be it one or a vector of them.
bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

/// True when the elements of the tensor `value` are unsigned.
bool isUnsigned(Value tensor) { return getElementTypeOrSelf(tensor).isUnsignedInteger(); }

/// `number` as a constant of `type`, which is a scalar or vector type of floats or integers.
Value splat(OpBuilder &builder, Location loc, Type type, double number) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr value;
  if (isa<FloatType>(element))
    value = builder.getFloatAttr(element, number);
  else
    value = builder.getIntegerAttr(element, int64_t(number));
  if (auto vector = dyn_cast<VectorType>(type))
    value = DenseElementsAttr::get(vector, value);
  return builder.create<arith::ConstantOp>(loc, value);
}

/// The float op or the integer op, by the operands' type.
template <class FloatOp, class IntegerOp>
Value floatOrInteger(OpBuilder &builder, Location loc, ValueRange operands) {
  if (isFloat(operands[0]))
    return builder.create<FloatOp>(loc, operands[0], operands[1]);
  return builder.create<IntegerOp>(loc, operands[0], operands[1]);
}

arith::CmpFPredicate floatPredicate(Predicate predicate) {
  switch (predicate) {
  case Predicate::EQ:
    return arith::CmpFPredicate::OEQ;
  case Predicate::NE:
    return arith::CmpFPredicate::UNE;
  case Predicate::LT:
    return arith::CmpFPredicate::OLT;
  case Predicate::LE:
    return arith::CmpFPredicate::OLE;
  case Predicate::GT:
    return arith::CmpFPredicate::OGT;
  case Predicate::GE:
    return arith::CmpFPredicate::OGE;
  }
  llvm_unreachable("every predicate is listed");
}

arith::CmpIPredicate integerPredicate(Predicate predicate, bool isUnsigned) {
  switch (predicate) {
  case Predicate::EQ:
    return arith::CmpIPredicate::eq;
  case Predicate::NE:
    return arith::CmpIPredicate::ne;
  case Predicate::LT:
    return isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  case Predicate::LE:
    return isUnsigned ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle;
  case Predicate::GT:
    return isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  case Predicate::GE:
    return isUnsigned ? arith::CmpIPredicate::uge : arith::CmpIPredicate::sge;
  }
  llvm_unreachable("every predicate is listed");
}
} // namespace

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

Value NegOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  Value x = operands[0];
  if (isFloat(x))
    return builder.create<arith::NegFOp>(loc, x);
  return builder.create<arith::SubIOp>(loc, splat(builder, loc, x.getType(), 0), x);
}

Value AbsOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  Value x = operands[0];
  if (isFloat(x))
    return builder.create<math::AbsFOp>(loc, x);
  return isUnsigned(getInput()) ? x : builder.create<math::AbsIOp>(loc, x).getResult();
}

Value SignOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  // Zeros and NaN keep themselves, so that NaN does not turn into a number.
  Value x = operands[0], zero = splat(builder, loc, x.getType(), 0.0);
  Value one = builder.create<math::CopySignOp>(loc, splat(builder, loc, x.getType(), 1.0), x);
  Value nonZero = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::ONE, x, zero);
  return builder.create<arith::SelectOp>(loc, nonZero, one, x);
}

Value ExpOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<math::ExpOp>(loc, operands[0]);
}

Value LogOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<math::LogOp>(loc, operands[0]);
}

Value SqrtOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<math::SqrtOp>(loc, operands[0]);
}

Value RsqrtOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  Value root = builder.create<math::SqrtOp>(loc, operands[0]);
  return builder.create<arith::DivFOp>(loc, splat(builder, loc, root.getType(), 1.0), root);
}

Value TanhOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<math::TanhOp>(loc, operands[0]);
}

Value ErfOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<math::ErfOp>(loc, operands[0]);
}

Value SigmoidOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  Value power = builder.create<math::ExpOp>(loc, builder.create<arith::NegFOp>(loc, operands[0]));
  Value one = splat(builder, loc, power.getType(), 1.0);
  return builder.create<arith::DivFOp>(loc, one, builder.create<arith::AddFOp>(loc, one, power));
}

namespace {
/// Formulas on scalars or vectors of floats.
struct Formula {
  OpBuilder &builder;
  Location loc;

  Value add(Value a, Value b) { return builder.create<arith::AddFOp>(loc, a, b); }
  Value sub(Value a, Value b) { return builder.create<arith::SubFOp>(loc, a, b); }
  Value mul(Value a, Value b) { return builder.create<arith::MulFOp>(loc, a, b); }
  Value shift(Value x, double offset) { return add(x, number(x, offset)); }
  Value scale(Value x, double factor) { return mul(x, number(x, factor)); }
  Value number(Value like, double value) { return splat(builder, loc, like.getType(), value); }

  /// tanh(sqrt(2 / pi) * (x + 0.044715 x^3)), or erf(x / sqrt(2)).
  Value geluGate(Value x, bool tanh) {
    if (!tanh)
      return builder.create<math::ErfOp>(loc, scale(x, M_SQRT1_2));
    Value sum = add(x, scale(mul(mul(x, x), x), kGeluCube));
    return builder.create<math::TanhOp>(loc, scale(sum, kGeluSlope));
  }

  static constexpr double kGeluCube = 0.044715, kGeluSlope = M_SQRT2 * M_2_SQRTPI / 2; // sqrt(2 / pi)
};
} // namespace

Value GeluOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  Formula f{builder, loc};
  Value x = operands[0];
  return f.mul(f.scale(x, 0.5), f.shift(f.geluGate(x, getTanh()), 1));
}

Value GeluGradOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  Formula f{builder, loc};
  Value x = operands[1], gate = f.geluGate(x, getTanh()), square = f.mul(x, x), slope;
  if (getTanh()) {
    Value inner = f.shift(f.scale(square, 3 * f.kGeluCube * f.kGeluSlope), f.kGeluSlope);
    slope = f.mul(f.sub(f.number(x, 1), f.mul(gate, gate)), f.mul(f.scale(x, 0.5), inner));
  } else {
    Value bell = builder.create<math::ExpOp>(loc, f.scale(square, -0.5));
    slope = f.mul(x, f.scale(bell, M_SQRT1_2 * M_2_SQRTPI / 2));
  }
  return f.mul(operands[0], f.add(f.scale(f.shift(gate, 1), 0.5), slope));
}

Value SinOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<math::SinOp>(loc, operands[0]);
}

Value CosOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<math::CosOp>(loc, operands[0]);
}

Value FloorOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<math::FloorOp>(loc, operands[0]);
}

Value NotOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<arith::XOrIOp>(loc, operands[0], splat(builder, loc, operands[0].getType(), 1));
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

Value AddOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return floatOrInteger<arith::AddFOp, arith::AddIOp>(builder, loc, operands);
}

Value SubOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return floatOrInteger<arith::SubFOp, arith::SubIOp>(builder, loc, operands);
}

Value MulOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return floatOrInteger<arith::MulFOp, arith::MulIOp>(builder, loc, operands);
}

Value DivOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  if (isFloat(operands[0]))
    return builder.create<arith::DivFOp>(loc, operands[0], operands[1]);
  // A zero divisor, or the least number by -1, would trap: data must never kill the process. Both divide
  // by 1.
  Value x = operands[0], y = operands[1];
  Type type = y.getType();
  Value one = splat(builder, loc, type, 1);
  Value bad = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, y, splat(builder, loc, type, 0));
  if (isUnsigned(getLhs()))
    return builder.create<arith::DivUIOp>(loc, x, builder.create<arith::SelectOp>(loc, bad, one, y));
  Value minusOne =
      builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, y, splat(builder, loc, type, -1));
  bad = builder.create<arith::OrIOp>(loc, bad, minusOne);
  Value quotient = builder.create<arith::DivSIOp>(loc, x, builder.create<arith::SelectOp>(loc, bad, one, y));
  Value negated = builder.create<arith::SubIOp>(loc, splat(builder, loc, type, 0), x);
  return builder.create<arith::SelectOp>(loc, minusOne, negated, quotient);
}

/// `extremum` of `operands`, which are f32 where `type` is f16, and NaN where one of them is. LLVM would draw
/// the conversions around it together to a maximum of f16, whose expansion for processors without such
/// arithmetic takes NaN for a zero (19.1, `max(NaN, 0) = 0`); a sum it leaves alone.
static Value keepNaN(OpBuilder &builder, Location loc, Type type, Value extremum, ValueRange operands) {
  if (!cast<RankedTensorType>(type).getElementType().isF16())
    return extremum;
  Value x = operands[0], y = operands[1];
  Value unordered = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, x, y);
  return builder.create<arith::SelectOp>(loc, unordered, builder.create<arith::AddFOp>(loc, x, y), extremum);
}

Value MaxOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  if (!isFloat(operands[0]) && isUnsigned(getLhs()))
    return builder.create<arith::MaxUIOp>(loc, operands[0], operands[1]);
  Value most = floatOrInteger<arith::MaximumFOp, arith::MaxSIOp>(builder, loc, operands);
  return keepNaN(builder, loc, getType(), most, operands);
}

Value MinOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  if (!isFloat(operands[0]) && isUnsigned(getLhs()))
    return builder.create<arith::MinUIOp>(loc, operands[0], operands[1]);
  Value least = floatOrInteger<arith::MinimumFOp, arith::MinSIOp>(builder, loc, operands);
  return keepNaN(builder, loc, getType(), least, operands);
}

Value PowOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<math::PowFOp>(loc, operands[0], operands[1]);
}

Value AndOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<arith::AndIOp>(loc, operands[0], operands[1]);
}

Value OrOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<arith::OrIOp>(loc, operands[0], operands[1]);
}

Value CompareOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  if (isFloat(operands[0]))
    return builder.create<arith::CmpFOp>(loc, floatPredicate(getPredicate()), operands[0], operands[1]);
  bool asUnsigned = isUnsigned(getLhs()) || getElementTypeOrSelf(getLhs()).isInteger(1);
  return builder.create<arith::CmpIOp>(loc, integerPredicate(getPredicate(), asUnsigned), operands[0],
                                       operands[1]);
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

Value SelectOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  return builder.create<arith::SelectOp>(loc, operands[0], operands[1], operands[2]);
}

/// `x` converted to integers of `type`: truncated towards zero, and at the ends of the range where it does
/// not fit.
static Value floatToInteger(OpBuilder &builder, Location loc, Type type, bool toUnsigned, Value x) {
  if (getElementTypeOrSelf(x).getIntOrFloatBitWidth() == 16) {
    Type wide = builder.getF32Type(); // The bounds below do not fit 16-bit floats.
    if (auto vector = dyn_cast<VectorType>(x.getType()))
      wide = vector.clone(wide);
    x = builder.create<arith::ExtFOp>(loc, wide, x);
  }
  // An out-of-range conversion is poison in LLVM, so the argument is clamped first; NaN becomes 0.
  int bits = int(getElementTypeOrSelf(type).getIntOrFloatBitWidth()) - (toUnsigned ? 0 : 1);
  int precision = int(cast<FloatType>(getElementTypeOrSelf(x)).getFPMantissaWidth());
  double low = toUnsigned ? 0.0 : -std::ldexp(1.0, bits);
  double most = std::ldexp(1.0, bits) - std::ldexp(1.0, std::max(bits - precision, 0));
  auto clamp = [&](arith::CmpFPredicate predicate, double bound, Value value) -> Value {
    Value limit = splat(builder, loc, x.getType(), bound);
    Value inside = builder.create<arith::CmpFOp>(loc, predicate, value, limit);
    return builder.create<arith::SelectOp>(loc, inside, value, limit);
  };
  Value isNumber = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::ORD, x, x);
  x = builder.create<arith::SelectOp>(loc, isNumber, x, splat(builder, loc, x.getType(), 0.0));
  x = clamp(arith::CmpFPredicate::OLT, most, clamp(arith::CmpFPredicate::OGT, low, x));
  if (toUnsigned)
    return builder.create<arith::FPToUIOp>(loc, type, x);
  return builder.create<arith::FPToSIOp>(loc, type, x);
}

/// `x`, of floats, as `type`, which differs; `toUnsigned` where that stands for unsigned integers.
static Value convertFloat(OpBuilder &builder, Location loc, Type type, bool toUnsigned, Value x) {
  Type from = getElementTypeOrSelf(x), to = getElementTypeOrSelf(type);
  if (to.isInteger(1))
    return builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNE, x,
                                         splat(builder, loc, x.getType(), 0));
  if (isa<IntegerType>(to))
    return floatToInteger(builder, loc, type, toUnsigned, x);
  unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = to.getIntOrFloatBitWidth();
  if (toWidth > fromWidth)
    return builder.create<arith::ExtFOp>(loc, type, x);
  if (toWidth < fromWidth)
    return builder.create<arith::TruncFOp>(loc, type, x);
  // f16 and bf16 have no conversion into each other: go through f32, which holds both.
  Type wide = type.isF32() ? type : Type(builder.getF32Type());
  if (auto vector = dyn_cast<VectorType>(type))
    wide = vector.clone(builder.getF32Type());
  return builder.create<arith::TruncFOp>(loc, type, builder.create<arith::ExtFOp>(loc, wide, x));
}

/// `x`, of integers, as `type`, which differs.
static Value convertInteger(OpBuilder &builder, Location loc, Type type, bool fromUnsigned, Value x) {
  Type from = getElementTypeOrSelf(x), to = getElementTypeOrSelf(type);
  if (to.isInteger(1))
    return builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, x,
                                         splat(builder, loc, x.getType(), 0));
  if (isa<FloatType>(to)) {
    if (fromUnsigned)
      return builder.create<arith::UIToFPOp>(loc, type, x);
    return builder.create<arith::SIToFPOp>(loc, type, x);
  }
  if (to.getIntOrFloatBitWidth() < from.getIntOrFloatBitWidth())
    return builder.create<arith::TruncIOp>(loc, type, x);
  if (fromUnsigned)
    return builder.create<arith::ExtUIOp>(loc, type, x);
  return builder.create<arith::ExtSIOp>(loc, type, x);
}

Value ConvertOp::buildScalar(OpBuilder &builder, Location loc, ValueRange operands) {
  Value x = operands[0];
  Type from = getElementTypeOrSelf(x), to = getElementTypeOrSelf(getResult());
  bool toUnsigned = to.isUnsignedInteger();
  if (toUnsigned)
    to = builder.getIntegerType(to.getIntOrFloatBitWidth());
  if (to == from)
    return x;
  Type type = to;
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    type = vector.clone(to);
  if (isa<FloatType>(from))
    return convertFloat(builder, loc, type, toUnsigned, x);
  return convertInteger(builder, loc, type, isUnsigned(getInput()) || from.isInteger(1), x);
}
