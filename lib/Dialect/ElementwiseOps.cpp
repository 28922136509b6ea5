//===- ElementwiseOps.cpp - Folds of elementwise ops ----------------------------===//
//
// Only identities that hold bit for bit on every float are folded: x * 1, x - 0, -(-x), but not x + 0 (which
// turns -0 into +0) unless the zero is negative.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Ds.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::ds;

/// True when `attribute` is a splat of exactly `value` (for floats, with that sign of zero).
static bool isSplatOf(Attribute attribute, double value) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(attribute);
  if (!splat)
    return false;
  if (auto type = dyn_cast<FloatType>(splat.getElementType())) {
    APFloat number = splat.getSplatValue<APFloat>();
    APFloat expected(value);
    bool inexact = false;
    expected.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
    return number.bitwiseIsEqual(expected);
  }
  if (splat.getElementType().isInteger(1))
    return false;
  return splat.getSplatValue<APInt>().getSExtValue() == static_cast<int64_t>(value);
}

/// The splat behind `value`, looking through one broadcast; null otherwise.
static Attribute splatOf(Value value) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getInput();
  DenseElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) ? Attribute(elements) : Attribute();
}

/// True for the number that leaves any x unchanged under +: -0.0 for floats, 0 for integers.
static bool isAdditiveIdentity(Value value) {
  return isSplatOf(splatOf(value), isa<FloatType>(getElementTypeOrSelf(value.getType())) ? -0.0 : 0.0);
}

OpFoldResult NegOp::fold(FoldAdaptor) {
  if (auto inner = getInput().getDefiningOp<NegOp>())
    return inner.getInput();
  return {};
}

OpFoldResult AddOp::fold(FoldAdaptor) {
  if (isAdditiveIdentity(getRhs()))
    return getLhs();
  if (isAdditiveIdentity(getLhs()))
    return getRhs();
  return {};
}

OpFoldResult SubOp::fold(FoldAdaptor) { return isSplatOf(splatOf(getRhs()), 0.0) ? getLhs() : Value(); }

OpFoldResult MulOp::fold(FoldAdaptor) {
  if (isSplatOf(splatOf(getRhs()), 1.0))
    return getLhs();
  if (isSplatOf(splatOf(getLhs()), 1.0))
    return getRhs();
  return {};
}

OpFoldResult DivOp::fold(FoldAdaptor) { return isSplatOf(splatOf(getRhs()), 1.0) ? getLhs() : Value(); }

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse())
    return getOnTrue();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(splatOf(getCondition())))
    return splat.getSplatValue<bool>() ? getOnTrue() : getOnFalse();
  return {};
}

/// True when every value of `from` is exactly a value of `to`.
static bool isLossless(Type from, Type to) {
  auto floatFrom = dyn_cast<FloatType>(from), floatTo = dyn_cast<FloatType>(to);
  if (floatFrom && floatTo)
    return floatFrom == floatTo ||
           (floatFrom.getWidth() < floatTo.getWidth() && !(floatFrom.isBF16() && floatTo.isF16()));
  auto intFrom = dyn_cast<IntegerType>(from), intTo = dyn_cast<IntegerType>(to);
  return intFrom && intTo && intFrom.getWidth() <= intTo.getWidth() && !intFrom.isInteger(1);
}

/// A constant of floats that are all equal, rounded to the nearest of another type; null for others.
static Attribute foldSplatConversion(Attribute input, RankedTensorType type) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(input);
  auto to = dyn_cast<FloatType>(type.getElementType());
  if (!splat || !to || !isa<FloatType>(splat.getElementType()))
    return {};
  APFloat number = splat.getSplatValue<APFloat>();
  bool inexact = false;
  number.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  return DenseElementsAttr::get(type, number);
}

OpFoldResult ConvertOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (Attribute constant = foldSplatConversion(adaptor.getInput(), cast<RankedTensorType>(getType())))
    return constant;
  // x -> wider -> x: nothing was lost on the way.
  if (auto inner = getInput().getDefiningOp<ConvertOp>())
    if (inner.getInput().getType() == getType() &&
        isLossless(getElementTypeOrSelf(getType()), getElementTypeOrSelf(inner.getType())))
      return inner.getInput();
  return {};
}

// The operations of the scalar bodies, exp, erf and tanh counted as one.
int64_t GeluOp::getFlops() { return (getTanh() ? 9 : 5) * getType().getNumElements(); }
int64_t GeluGradOp::getFlops() { return (getTanh() ? 18 : 11) * getType().getNumElements(); }

LogicalResult PowOp::canonicalize(PowOp op, PatternRewriter &rewriter) {
  if (isSplatOf(splatOf(op.getRhs()), 1.0)) {
    rewriter.replaceOp(op, op.getLhs());
    return success();
  }
  if (isSplatOf(splatOf(op.getRhs()), 2.0)) {
    rewriter.replaceOpWithNewOp<MulOp>(op, op.getLhs(), op.getLhs());
    return success();
  }
  return failure();
}
