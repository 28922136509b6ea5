//===- Decompositions.cpp - Composite layers in primitive ops -------------------===//
//
// What ds-decompose replaces a layer by: elementwise ops, broadcasts and reductions over its rows, in the
// order that one generated row kernel computes them. 16-bit tensors are widened first, as every framework
// does.
//
//===----------------------------------------------------------------------------===//
#include "ds/Dialect/Emitter.h"

using namespace mlir;
using namespace mlir::ds;

SmallVector<Value> SoftmaxOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  RankedTensorType type = tensorType(getInput());
  int64_t dim = getDim();
  auto alongRow = [&](ReduceKind kind, Value x) {
    return emit.repeatAlong(emit.reduce(kind, x, dim), dim, type.getShape());
  };
  Value input = emit.widen(getInput());
  Value shifted = emit.sub(input, alongRow(ReduceKind::Max, input));
  Value exponential = emit.unary<ExpOp>(shifted);
  Value result;
  if (getLog()) {
    Value sum = emit.unary<LogOp>(emit.sum(exponential, dim));
    result = emit.sub(shifted, emit.repeatAlong(sum, dim, type.getShape()));
  } else {
    result = emit.div(exponential, alongRow(ReduceKind::Sum, exponential));
  }
  return {emit.convert(result, type.getElementType())};
}

/// Mean of each row over `dims`.
static Value rowMean(Emitter &emit, Value x, ArrayRef<int64_t> dims) {
  double length = 1;
  for (int64_t dim : dims)
    length *= tensorType(x).getDimSize(dim);
  Value sum = emit.sum(x, dims);
  return emit.div(sum, emit.splatLike(sum, length));
}

/// Element type of a value that is to be replaced.
static Type elementOf(Value value) { return tensorType(value).getElementType(); }

SmallVector<Value> LayerNormOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  RankedTensorType type = tensorType(getInput());
  SmallVector<int64_t> dims = dimRange(type.getRank() - getNumDims(), type.getRank());
  ArrayRef<int64_t> shape = type.getShape();

  Value input = emit.widen(getInput());
  Value mean = rowMean(emit, input, dims);
  Value centered = emit.sub(input, emit.repeatAlong(mean, dims, shape));
  Value variance = rowMean(emit, emit.square(centered), dims);
  Value rstd = emit.unary<RsqrtOp>(emit.shift(variance, getEpsilon().convertToDouble()));
  Value result = emit.mul(centered, emit.repeatAlong(rstd, dims, shape));
  if (getWeight())
    result = emit.mul(result, emit.repeatRows(emit.widen(getWeight()), shape));
  if (getBias())
    result = emit.add(result, emit.repeatRows(emit.widen(getBias()), shape));
  return {emit.convert(result, type.getElementType()), emit.convert(mean, elementOf(getMean())),
          emit.convert(rstd, elementOf(getRstd()))};
}

SmallVector<Value> RmsNormOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  RankedTensorType type = tensorType(getInput());
  SmallVector<int64_t> dims = dimRange(type.getRank() - getNumDims(), type.getRank());
  ArrayRef<int64_t> shape = type.getShape();

  Value input = emit.widen(getInput());
  Value meanSquare = rowMean(emit, emit.square(input), dims);
  Value rstd = emit.unary<RsqrtOp>(emit.shift(meanSquare, getEpsilon().convertToDouble()));
  Value result = emit.mul(input, emit.repeatAlong(rstd, dims, shape));
  if (getWeight())
    result = emit.mul(result, emit.repeatRows(emit.widen(getWeight()), shape));
  return {emit.convert(result, type.getElementType()), emit.convert(rstd, elementOf(getRstd()))};
}

SmallVector<Value> DropoutOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  double probability = getProbability().convertToDouble();
  RankedTensorType type = tensorType(getInput());
  if (probability == 0.0)
    return {getInput()};
  Value draw = builder.create<RandomUniformOp>(getLoc(), type.clone(builder.getF32Type()), getRng(), getId(),
                                               /*first=*/0, /*numbers=*/Value());
  Value keep = emit.compare(Predicate::GE, draw, emit.splatLike(draw, probability));
  // What is dropped is multiplied by 0, which leaves NaN (and makes it of infinity).
  Value isNaN = emit.compare(Predicate::NE, getInput(), getInput());
  keep = emit.getBuilder().create<OrOp>(getLoc(), keep, isNaN);
  Value scaled = emit.div(getInput(), emit.splatLike(getInput(), 1.0 - probability));
  return {emit.select(keep, scaled, emit.splatLike(scaled, 0.0))};
}
