//===- ScalarMath.h - Numbers that are known now or at run time -----------------===//
//
// Learning rates and bias corrections are formulas over numbers of which some are hyperparameters and some
// depend on the step. Written in terms of `Scalar`, the part that is constant is computed here, in double
// precision, and only the rest becomes ops on rank-0 f64 tensors: without a schedule a learning rate is a
// constant of the update kernel.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_SCALARMATH_H
#define DS_LIB_PASSES_SUPPORT_SCALARMATH_H

#include "ds/Dialect/Emitter.h"

namespace mlir::ds {

/// A real number: `value`, a rank-0 f64 tensor, where that is set, else `constant`.
struct Scalar {
  Scalar(double constant) : constant(constant) {}
  Scalar(Value value) : value(value) {}
  bool isConstant() const { return !value; }

  double constant = 0;
  Value value;
};

/// Arithmetic on scalars; ops are emitted at the emitter's insertion point.
class ScalarMath {
public:
  explicit ScalarMath(Emitter &emit) : emit(emit) {}

  Scalar add(Scalar a, Scalar b);
  Scalar sub(Scalar a, Scalar b);
  Scalar mul(Scalar a, Scalar b);
  Scalar div(Scalar a, Scalar b);
  Scalar pow(Scalar a, Scalar b);
  Scalar min(Scalar a, Scalar b);
  Scalar max(Scalar a, Scalar b);
  Scalar sqrt(Scalar a);
  Scalar log(Scalar a);
  Scalar cos(Scalar a);
  Scalar floor(Scalar a);
  /// `predicate(a, b) ? onTrue : onFalse`.
  Scalar choose(Predicate predicate, Scalar a, Scalar b, Scalar onTrue, Scalar onFalse);

  /// A rank-0 tensor of any numbers as a scalar.
  Scalar widen(Value a) { return emit.convert(a, emit.getBuilder().getF64Type()); }
  /// The number as a rank-0 tensor.
  Value materialize(Scalar a, Type element);

private:
  template <class OpTy, class Fold>
  Scalar binary(Scalar a, Scalar b, Fold fold);
  template <class OpTy, class Fold>
  Scalar unary(Scalar a, Fold fold);
  Value f64(Scalar a);

  Emitter &emit;
};

/// The number in every element of the shape and type of `like`.
Value spread(Emitter &emit, Scalar number, Value like);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_SCALARMATH_H
