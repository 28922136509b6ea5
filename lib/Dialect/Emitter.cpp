//===- Emitter.cpp - Writes tidy ops of the dialect -----------------------------===//
//
// Result types are inferred here, in one place, from operands. Folding is the ops' own (createOrFold); what
// is decided here is only what a folder cannot know, as that a factor of -1 is a negation.
//
//===----------------------------------------------------------------------------===//
#include "ds/Dialect/Emitter.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ds;

SmallVector<int64_t> mlir::ds::dimRange(int64_t begin, int64_t end) {
  SmallVector<int64_t> dims(std::max<int64_t>(end - begin, 0));
  std::iota(dims.begin(), dims.end(), begin);
  return dims;
}

std::optional<double> mlir::ds::getSplatValue(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<BroadcastOp, ReshapeOp, TransposeOp>(op))
      break;
    value = op->getOperand(0);
  }
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble();
  if (elements.getElementType().isInteger(1))
    return elements.getSplatValue<bool>() ? 1.0 : 0.0;
  return static_cast<double>(elements.getSplatValue<APInt>().getSExtValue());
}

/// Attribute of one element of type `element` with the value nearest to `value`.
static Attribute elementAttr(Type element, double value) {
  if (auto type = dyn_cast<FloatType>(element))
    return FloatAttr::get(type, value);
  return IntegerAttr::get(element, static_cast<int64_t>(value));
}

Value OpEmitter::splat(RankedTensorType type, double value) {
  auto elements = DenseElementsAttr::get(type, elementAttr(type.getElementType(), value));
  return builder.create<ConstantOp>(loc, type, elements);
}

Value OpEmitter::compare(Predicate predicate, Value a, Value b) {
  return builder.create<CompareOp>(loc, predicate, a, b);
}

Value OpEmitter::select(Value condition, Value onTrue, Value onFalse) {
  return builder.createOrFold<SelectOp>(loc, onTrue.getType(), condition, onTrue, onFalse);
}

Value OpEmitter::convert(Value x, Type element) {
  RankedTensorType type = tensorType(x);
  if (type.getElementType() == element)
    return x;
  return builder.createOrFold<ConvertOp>(loc, type.clone(element), x);
}

Value OpEmitter::reshape(Value x, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(x);
  if (type.getShape() == shape)
    return x;
  return builder.createOrFold<ReshapeOp>(loc, type.clone(shape), x);
}

Value OpEmitter::broadcast(Value x, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(x);
  if (type.getShape() == shape)
    return x;
  return builder.createOrFold<BroadcastOp>(loc, type.clone(shape), x, builder.getDenseI64ArrayAttr(dims));
}

Value OpEmitter::reduce(ReduceKind kind, Value x, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return x;
  RankedTensorType type = tensorType(x);
  SmallVector<int64_t> shape;
  for (int64_t dim : dimRange(0, type.getRank()))
    if (!llvm::is_contained(dims, dim))
      shape.push_back(type.getDimSize(dim));
  return builder.createOrFold<ReduceOp>(loc, type.clone(shape), kind, x, builder.getDenseI64ArrayAttr(dims));
}

Value Emitter::scale(Value x, double factor) {
  if (factor == 1.0)
    return x;
  return factor == -1.0 ? neg(x) : mul(x, splatLike(x, factor));
}

Value Emitter::widen(Value x) {
  auto element = cast<FloatType>(tensorType(x).getElementType());
  return element.getWidth() < 32 ? convert(x, getBuilder().getF32Type()) : x;
}

Value Emitter::repeatAlong(Value x, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> kept;
  for (int64_t dim : dimRange(0, shape.size()))
    if (!llvm::is_contained(dims, dim))
      kept.push_back(dim);
  return broadcast(x, kept, shape);
}

Value Emitter::repeatRows(Value x, ArrayRef<int64_t> shape) {
  int64_t rank = shape.size();
  return broadcast(x, dimRange(rank - tensorType(x).getRank(), rank), shape);
}

Value Emitter::sumLeading(Value x, int64_t rank) {
  return sum(x, dimRange(0, tensorType(x).getRank() - rank));
}
