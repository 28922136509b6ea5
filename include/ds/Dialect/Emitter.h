//===- Emitter.h - Writes tidy ops of the dialect -------------------------------===//
//
// Gradients, decompositions and optimizer updates are formulas. The emitter lets them be written as formulas:
// it infers result types, repeats scalars and rows where asked, and folds at once what says nothing (x * 1, x
// + 0, a reshape to the same shape), so that generated code reads as if a person had written it.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_DIALECT_EMITTER_H
#define DS_DIALECT_EMITTER_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Shape and element type of a tensor value.
inline RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// True for values that can have a gradient: tensors of floats.
inline bool isFloatTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// Emits single ops at the builder's insertion point, whose result types it infers; all ops get the same
/// location. Every function that takes two tensors requires equal shapes and element types, as the ops do.
class OpEmitter {
public:
  OpEmitter(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  OpBuilder &getBuilder() { return builder; }
  Location getLoc() const { return loc; }

  /// Constant tensor of `type` with every element `value`, rounded to the element type.
  Value splat(RankedTensorType type, double value);
  /// Any op with one operand whose result type is the operand's.
  template <class OpTy>
  Value unary(Value input) {
    return builder.createOrFold<OpTy>(loc, input.getType(), input);
  }
  /// Any op with two operands of one type, which is also the result's.
  template <class OpTy>
  Value binary(Value lhs, Value rhs) {
    return builder.createOrFold<OpTy>(loc, lhs.getType(), lhs, rhs);
  }
  Value compare(Predicate predicate, Value a, Value b);
  Value select(Value condition, Value onTrue, Value onFalse);
  Value convert(Value x, Type element);
  Value reshape(Value x, ArrayRef<int64_t> shape);
  /// Dimension k of x becomes dimension dims[k] of `shape`.
  Value broadcast(Value x, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape);
  Value reduce(ReduceKind kind, Value x, ArrayRef<int64_t> dims);

private:
  OpBuilder &builder;
  Location loc;
};

/// What formulas are written with: of one op or of several, and nothing where they say nothing.
class Emitter : public OpEmitter {
public:
  using OpEmitter::OpEmitter;

  /// Every element `value`, in the type of `like`.
  Value splatLike(Value like, double value) { return splat(tensorType(like), value); }
  /// Rank-0 constant.
  Value scalar(Type element, double value) { return splat(RankedTensorType::get({}, element), value); }

  Value neg(Value x) { return unary<NegOp>(x); }
  Value add(Value a, Value b) { return binary<AddOp>(a, b); }
  Value sub(Value a, Value b) { return binary<SubOp>(a, b); }
  Value mul(Value a, Value b) { return binary<MulOp>(a, b); }
  Value div(Value a, Value b) { return binary<DivOp>(a, b); }
  Value square(Value x) { return mul(x, x); }
  /// x * factor; x itself for 1, its negative for -1.
  Value scale(Value x, double factor);
  /// x + offset.
  Value shift(Value x, double offset) { return offset == 0.0 ? x : add(x, splatLike(x, offset)); }
  /// x in at least single precision: what sums and statistics of 16-bit tensors are formed in.
  Value widen(Value x);

  /// Repeats a rank-0 tensor in the shape of `like`.
  Value repeatScalar(Value x, Value like) { return broadcast(x, {}, tensorType(like).getShape()); }
  /// Inverse of a reduction over `dims`: repeats x along them in `shape`.
  Value repeatAlong(Value x, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape);
  /// Repeats x, which has the sizes of the last dimensions of `shape`, along all leading ones.
  Value repeatRows(Value x, ArrayRef<int64_t> shape);
  Value sum(Value x, ArrayRef<int64_t> dims) { return reduce(ReduceKind::Sum, x, dims); }
  /// Sum over all dimensions but the last `rank`.
  Value sumLeading(Value x, int64_t rank);
};

/// The numbers begin, begin + 1, ..., end - 1: a list of dimensions.
SmallVector<int64_t> dimRange(int64_t begin, int64_t end);

/// The one value of a constant whose elements are all equal, seen through broadcasts and reshapes.
std::optional<double> getSplatValue(Value value);

} // namespace mlir::ds

#endif // DS_DIALECT_EMITTER_H
