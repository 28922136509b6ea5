//===- GradientsNetwork.cpp - Derivatives of layers -----------------------------===//
//
// A layer's gradient names as little of its forward as it can: a norm keeps its input and one or two numbers
// a row, attention its output and one number a row, cross-entropy the same. Normalisations are written in
// elementwise ops and two row sums over one pass of the row, so that one generated kernel computes each. A
// matrix product's gradient by its weight is one plain product in the weight's own layout: no transpose is
// ever made.
//
//===----------------------------------------------------------------------------===//
#include "ds/Dialect/DsConv.h"
#include "ds/Dialect/Emitter.h"

using namespace mlir;
using namespace mlir::ds;

using Values = SmallVectorImpl<Value>;

//===----------------------------------------------------------------------------===//
// MatmulOp
//===----------------------------------------------------------------------------===//

/// x with all dimensions but the last as rows.
static Value foldRows(Emitter &emit, Value x) {
  RankedTensorType type = tensorType(x);
  int64_t columns = type.getShape().back();
  return emit.reshape(x, {type.getNumElements() / columns, columns});
}

static Value matmul(Emitter &emit, Type type, Value lhs, Value rhs, bool transposeLhs, bool transposeRhs) {
  return emit.getBuilder()
      .create<MatmulOp>(emit.getLoc(), type, lhs, rhs, /*bias=*/Value(), transposeLhs, transposeRhs)
      .getResult();
}

/// C = op(A) op(B): dA = dC op(B)^T, and where A is stored transposed, dA^T = op(B) dC^T.
static Value matmulGradientByLhs(Emitter &emit, MatmulOp op, Value grad) {
  Type type = op.getLhs().getType();
  if (op.getTransposeLhs())
    return matmul(emit, type, op.getRhs(), grad, op.getTransposeRhs(), true);
  return matmul(emit, type, grad, op.getRhs(), false, !op.getTransposeRhs());
}

/// dB = op(A)^T dC, and where B is stored transposed, dB^T = dC^T op(A). Leading dimensions of A that a
/// rank-2 B does not have count as rows.
static Value matmulGradientByRhs(Emitter &emit, MatmulOp op, Value grad) {
  Type type = op.getRhs().getType();
  Value lhs = op.getLhs();
  if (tensorType(lhs).getRank() > 2 && tensorType(op.getRhs()).getRank() == 2) {
    lhs = foldRows(emit, lhs);
    grad = foldRows(emit, grad);
  }
  if (op.getTransposeRhs())
    return matmul(emit, type, grad, lhs, true, op.getTransposeLhs());
  return matmul(emit, type, lhs, grad, !op.getTransposeLhs(), false);
}

/// What GELU of `op` is taken of: multiplied again, where it was not kept.
static Value geluInput(Emitter &emit, MatmulOp op) {
  if (op.getKept())
    return op.getKept();
  return emit.getBuilder()
      .create<MatmulOp>(emit.getLoc(), op.getResult().getType(), op.getLhs(), op.getRhs(), op.getBias(),
                        op.getTransposeLhs(), op.getTransposeRhs())
      .getResult();
}

/// The gradient by what the epilogue of `op` is taken of, where `grad` is that by its result.
static Value epilogueGradient(Emitter &emit, MatmulOp op, Value grad) {
  switch (op.getEpilogue()) {
  case Epilogue::None:
    return grad;
  case Epilogue::Relu: {
    Value zero = emit.splatLike(grad, 0.0);
    return emit.select(emit.compare(Predicate::LE, op.getResult(), zero), zero, grad); // to NaN as well
  }
  case Epilogue::Gelu: {
    Value wide = emit.widen(grad), input = emit.widen(geluInput(emit, op));
    Value product = emit.getBuilder().create<GeluGradOp>(emit.getLoc(), wide.getType(), wide, input, true);
    return emit.convert(product, tensorType(grad).getElementType());
  }
  case Epilogue::GeluGradient:
    return {}; // no second derivatives
  }
  llvm_unreachable("an epilogue of no kind");
}

void MatmulOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                              Values &grads) {
  Emitter emit(builder, getLoc());
  Value grad = resultGrads.front() ? epilogueGradient(emit, *this, resultGrads.front()) : Value();
  if (Value kept = getKept() ? resultGrads.back() : Value())
    grad = grad ? emit.add(grad, kept) : kept;
  if (!grad) {
    grads.append(getNumOperands(), Value());
    return;
  }
  // A product of 16-bit matrices may have an f32 result; those of its gradient take the operands' type.
  Type element = tensorType(getLhs()).getElementType();
  Value factor = needed[0] || needed[1] ? emit.convert(grad, element) : Value();
  grads.push_back(needed[0] ? matmulGradientByLhs(emit, *this, factor) : Value());
  grads.push_back(needed[1] ? matmulGradientByRhs(emit, *this, factor) : Value());
  if (getBias())
    grads.push_back(needed[grads.size()] ? emit.convert(emit.sumLeading(grad, 1), element) : Value());
  if (getAccumulator())
    grads.push_back(needed[grads.size()] ? grad : Value());
  assert(!getInput() && "read by what has no second derivatives");
}

//===----------------------------------------------------------------------------===//
// Normalisations
//===----------------------------------------------------------------------------===//

void SoftmaxOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                               Values &grads) {
  Emitter emit(builder, getLoc());
  RankedTensorType type = tensorType(getInput());
  int64_t dim = getDim();
  Value grad = emit.widen(resultGrads.front()), result = emit.widen(getResult());
  auto rowSum = [&](Value x) { return emit.repeatAlong(emit.sum(x, dim), dim, type.getShape()); };
  Value input;
  if (getLog()) // g - softmax * sum(g)
    input = emit.sub(grad, emit.mul(emit.unary<ExpOp>(result), rowSum(grad)));
  else // y * (g - sum(g * y))
    input = emit.mul(result, emit.sub(grad, rowSum(emit.mul(grad, result))));
  grads.push_back(emit.convert(input, type.getElementType()));
}

namespace {
/// What the gradients of both norms share: x-hat = (x - mean) * rstd, of which mean is null for the RMS norm.
struct NormRule {
  NormRule(OpBuilder &builder, Operation *op, Value input, Value weight, Value mean, Value rstd,
           int64_t numDims)
      : emit(builder, op->getLoc()), type(tensorType(input)), weight(weight), numDims(numDims) {
    shape = type.getShape();
    leading = type.getRank() - numDims;
    dims = dimRange(leading, type.getRank());
    rowRstd = repeatStatistic(rstd);
    Value x = emit.widen(input);
    normalized = emit.mul(mean ? emit.sub(x, repeatStatistic(mean)) : x, rowRstd);
  }

  /// A value per row, along the row.
  Value repeatStatistic(Value row) { return emit.repeatAlong(emit.widen(row), dims, shape); }

  /// Mean along each row, repeated along it.
  Value rowMean(Value x) {
    double length = ShapedType::getNumElements(shape.drop_front(leading));
    Value sum = emit.sum(x, dims);
    return emit.repeatAlong(emit.div(sum, emit.splatLike(sum, length)), dims, shape);
  }

  /// Gradient that reaches x-hat.
  Value throughWeight(Value grad) {
    return weight ? emit.mul(grad, emit.repeatRows(emit.widen(weight), shape)) : grad;
  }

  /// Sum over the rows, in the weight's element type.
  Value columnSum(Value x) { return emit.convert(emit.sumLeading(x, numDims), type.getElementType()); }

  Emitter emit;
  RankedTensorType type;
  Value weight;
  int64_t numDims, leading;
  ArrayRef<int64_t> shape;
  SmallVector<int64_t> dims;
  Value rowRstd, normalized;
};
} // namespace

/// Gradient by the input of the values a norm also returns: d mean = 1 / n, d rstd = -x-hat rstd^2 / n.
static Value addStatisticGradients(NormRule &rule, Value input, Value meanGrad, Value rstdGrad) {
  Emitter &emit = rule.emit;
  double length = ShapedType::getNumElements(rule.shape.drop_front(rule.leading));
  auto accumulate = [&](Value grad) { input = input ? emit.add(input, grad) : grad; };
  if (meanGrad)
    accumulate(rule.repeatStatistic(emit.scale(emit.widen(meanGrad), 1.0 / length)));
  if (rstdGrad) {
    Value row = rule.repeatStatistic(emit.scale(emit.widen(rstdGrad), -1.0 / length));
    accumulate(emit.mul(row, emit.mul(rule.normalized, emit.square(rule.rowRstd))));
  }
  return input;
}

void LayerNormOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                 Values &grads) {
  NormRule rule(builder, *this, getInput(), getWeight(), getMean(), getRstd(), getNumDims());
  Emitter &emit = rule.emit;
  Value grad = resultGrads[0] ? emit.widen(resultGrads[0]) : Value();
  Value input;
  if (needed[0]) {
    if (grad) { // rstd * (g - mean(g) - x-hat * mean(g * x-hat)), g being what reaches x-hat
      Value inner = rule.throughWeight(grad);
      Value drift = emit.mul(rule.normalized, rule.rowMean(emit.mul(inner, rule.normalized)));
      input = emit.mul(rule.rowRstd, emit.sub(emit.sub(inner, rule.rowMean(inner)), drift));
    }
    input = emit.convert(addStatisticGradients(rule, input, resultGrads[1], resultGrads[2]),
                         rule.type.getElementType());
  }
  grads.push_back(input);
  if (getWeight())
    grads.push_back(grad && needed[1] ? rule.columnSum(emit.mul(grad, rule.normalized)) : Value());
  if (getBias())
    grads.push_back(grad && needed[grads.size()] ? rule.columnSum(grad) : Value());
}

void RmsNormOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                               Values &grads) {
  NormRule rule(builder, *this, getInput(), getWeight(), /*mean=*/Value(), getRstd(), getNumDims());
  Emitter &emit = rule.emit;
  Value grad = resultGrads[0] ? emit.widen(resultGrads[0]) : Value();
  Value input;
  if (needed[0]) {
    if (grad) { // rstd * (g - x-hat * mean(g * x-hat))
      Value inner = rule.throughWeight(grad);
      Value drift = emit.mul(rule.normalized, rule.rowMean(emit.mul(inner, rule.normalized)));
      input = emit.mul(rule.rowRstd, emit.sub(inner, drift));
    }
    input =
        emit.convert(addStatisticGradients(rule, input, Value(), resultGrads[1]), rule.type.getElementType());
  }
  grads.push_back(input);
  if (getWeight())
    grads.push_back(grad && needed[1] ? rule.columnSum(emit.mul(grad, rule.normalized)) : Value());
}

//===----------------------------------------------------------------------------===//
// Layers with a gradient op of their own
//===----------------------------------------------------------------------------===//

void AttentionOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                 Values &grads) {
  grads.append(getNumOperands(), Value());
  if (!resultGrads[0]) // ds-verify-model refuses uses of the row statistics
    return;
  auto op = builder.create<AttentionGradOp>(
      getLoc(), getQuery().getType(), getKey().getType(), getValue().getType(), getQuery(), getKey(),
      getValue(), getResult(), getLse(), resultGrads[0], getMask(), getSlopes(), getRng(), getFirstHead(),
      getCausalAttr(), getWindowAttr(), getCapAttr(), getScaleAttr(), getDropoutAttr(), getDropoutIdAttr(),
      getHeadsAttr());
  for (auto [index, grad] : llvm::enumerate(op.getResults()))
    grads[index] = needed[index] ? grad : Value();
}

void ConvOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                            Values &grads) {
  Value grad = resultGrads.front();
  auto make = [&](auto op, Value of, Value factor) -> Value {
    return builder.create<decltype(op)>(getLoc(), of.getType(), factor, grad, getStride(), getPadding(),
                                        getDilation(), getGroups());
  };
  grads.push_back(needed[0] ? make(ConvGradInputOp(), getInput(), getWeight()) : Value());
  grads.push_back(needed[1] ? make(ConvGradWeightOp(), getWeight(), getInput()) : Value());
  if (!getBias())
    return;
  SmallVector<int64_t> dims = dimRange(1, getType().getRank());
  dims.front() = 0; // all but the channels
  grads.push_back(needed[2] ? Emitter(builder, getLoc()).sum(grad, dims) : Value());
}

/// The three convolutions are one relation: what gave the gradient by the input gives its own by the others.
void ConvGradInputOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                     Values &grads) {
  Value grad = resultGrads.front(), weight, factor;
  if (needed[0])
    weight = builder.create<ConvGradWeightOp>(getLoc(), getWeight().getType(), grad, getGrad(), getStride(),
                                              getPadding(), getDilation(), getGroups());
  if (needed[1])
    factor = builder.create<ConvOp>(getLoc(), getGrad().getType(), grad, getWeight(), /*bias=*/Value(),
                                    getStride(), getPadding(), getDilation(), getGroups());
  grads.append({weight, factor});
}

/// Looking the padding row up gives it no gradient: its ids become -1, which adds nowhere. A mask of the
/// gradient's rows would say the same, but is as wide as the table.
void EmbeddingOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                 Values &grads) {
  Emitter emit(builder, getLoc());
  Value ids = getIds();
  if (std::optional<int64_t> padding = getPaddingIndex()) {
    Value isPadding = emit.compare(Predicate::EQ, ids, emit.splatLike(ids, static_cast<double>(*padding)));
    ids = emit.select(isPadding, emit.splatLike(ids, -1), ids);
  }
  grads.push_back(builder.create<EmbeddingGradOp>(getLoc(), getTable().getType(), ids, resultGrads.front(),
                                                  /*accumulator=*/Value()));
  grads.push_back(Value());
}

void CrossEntropyOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                    Values &grads) {
  grads.append(getNumOperands(), Value());
  Value count = getDenominator() ? getDenominator() : getCount(); // neither depends on a parameter
  if (resultGrads[0]) // ds-verify-model refuses uses of the row statistics
    grads[0] = builder.create<CrossEntropyGradOp>(getLoc(), getLogits().getType(), getLogits(), getTargets(),
                                                  getLse(), count, resultGrads[0], getIgnoreIndexAttr(),
                                                  getCapAttr());
}

void DropoutOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                               Values &grads) {
  grads.push_back(builder.create<DropoutOp>(getLoc(), getInput().getType(), resultGrads.front(), getRng(),
                                            getProbability(), getId()));
  grads.push_back(Value());
}
