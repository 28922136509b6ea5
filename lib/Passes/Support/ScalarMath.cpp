//===- ScalarMath.cpp - Numbers that are known now or at run time ---------------===//
//
// Every operation is written twice, as an op and as the C++ function that folds it; both are IEEE double.
//
//===----------------------------------------------------------------------------===//
#include "ScalarMath.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ds;

Value ScalarMath::f64(Scalar a) { return materialize(a, emit.getBuilder().getF64Type()); }

Value ScalarMath::materialize(Scalar a, Type element) {
  return a.isConstant() ? emit.scalar(element, a.constant) : emit.convert(a.value, element);
}

template <class OpTy, class Fold>
Scalar ScalarMath::binary(Scalar a, Scalar b, Fold fold) {
  if (a.isConstant() && b.isConstant())
    return fold(a.constant, b.constant);
  return emit.binary<OpTy>(f64(a), f64(b));
}

template <class OpTy, class Fold>
Scalar ScalarMath::unary(Scalar a, Fold fold) {
  return a.isConstant() ? Scalar(fold(a.constant)) : Scalar(emit.unary<OpTy>(a.value));
}

Scalar ScalarMath::add(Scalar a, Scalar b) {
  if (b.isConstant() && b.constant == 0)
    return a;
  return binary<AddOp>(a, b, [](double x, double y) { return x + y; });
}
Scalar ScalarMath::sub(Scalar a, Scalar b) {
  return binary<SubOp>(a, b, [](double x, double y) { return x - y; });
}
Scalar ScalarMath::mul(Scalar a, Scalar b) {
  return binary<MulOp>(a, b, [](double x, double y) { return x * y; });
}
Scalar ScalarMath::div(Scalar a, Scalar b) {
  return binary<DivOp>(a, b, [](double x, double y) { return x / y; });
}
Scalar ScalarMath::pow(Scalar a, Scalar b) {
  return binary<PowOp>(a, b, [](double x, double y) { return std::pow(x, y); });
}
Scalar ScalarMath::min(Scalar a, Scalar b) {
  return binary<MinOp>(a, b, [](double x, double y) { return std::min(x, y); });
}
Scalar ScalarMath::max(Scalar a, Scalar b) {
  return binary<MaxOp>(a, b, [](double x, double y) { return std::max(x, y); });
}
Scalar ScalarMath::sqrt(Scalar a) {
  return unary<SqrtOp>(a, [](double x) { return std::sqrt(x); });
}
Scalar ScalarMath::log(Scalar a) {
  return unary<LogOp>(a, [](double x) { return std::log(x); });
}
Scalar ScalarMath::cos(Scalar a) {
  return unary<CosOp>(a, [](double x) { return std::cos(x); });
}
Scalar ScalarMath::floor(Scalar a) {
  return unary<FloorOp>(a, [](double x) { return std::floor(x); });
}

Scalar ScalarMath::choose(Predicate predicate, Scalar a, Scalar b, Scalar onTrue, Scalar onFalse) {
  return emit.select(emit.compare(predicate, f64(a), f64(b)), f64(onTrue), f64(onFalse));
}

Value mlir::ds::spread(Emitter &emit, Scalar number, Value like) {
  if (number.isConstant())
    return emit.splatLike(like, number.constant);
  return emit.repeatScalar(emit.convert(number.value, tensorType(like).getElementType()), like);
}
