//===- ReductionMath.cpp - How elements are combined ---------------------------===//

#include "ReductionMath.h"
#include "NodeEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::ds::codegen {

Value combine(OpBuilder &b, Location loc, const Node *reduction, Value x, Value y) {
  auto kind = cast<ds::ReduceOp>(reduction->op).getKind();
  bool isFloat = isa<FloatType>(reduction->type), isUnsigned = reduction->type.isUnsignedInteger();
  if (kind == ds::ReduceKind::Sum)
    return isFloat ? b.create<arith::AddFOp>(loc, x, y).getResult()
                   : b.create<arith::AddIOp>(loc, x, y).getResult();
  if (kind == ds::ReduceKind::Max) {
    if (isFloat)
      return b.create<arith::MaximumFOp>(loc, x, y);
    return isUnsigned ? b.create<arith::MaxUIOp>(loc, x, y).getResult()
                      : b.create<arith::MaxSIOp>(loc, x, y).getResult();
  }
  if (isFloat)
    return b.create<arith::MinimumFOp>(loc, x, y);
  return isUnsigned ? b.create<arith::MinUIOp>(loc, x, y).getResult()
                    : b.create<arith::MinSIOp>(loc, x, y).getResult();
}

TypedAttr neutralElement(OpBuilder &b, const Node *reduction) {
  auto kind = cast<ds::ReduceOp>(reduction->op).getKind();
  Type type = NodeEmitter::computeType(reduction->type);
  if (kind == ds::ReduceKind::Sum)
    return b.getZeroAttr(type);
  bool isMax = kind == ds::ReduceKind::Max;
  if (auto floatType = dyn_cast<FloatType>(type))
    return b.getFloatAttr(type, APFloat::getInf(floatType.getFloatSemantics(), /*Negative=*/isMax));
  unsigned width = type.getIntOrFloatBitWidth();
  if (reduction->type.isUnsignedInteger())
    return b.getIntegerAttr(type, isMax ? APInt::getMinValue(width) : APInt::getMaxValue(width));
  return b.getIntegerAttr(type, isMax ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
}

Value acrossLanes(OpBuilder &b, Location loc, const Node *reduction, Value total) {
  for (int64_t width = cast<VectorType>(total.getType()).getDimSize(0) / 2; width > 0; width /= 2) {
    SmallVector<int32_t> low, high;
    for (int64_t lane = 0; lane < width; ++lane) {
      low.push_back(lane);
      high.push_back(lane + width);
    }
    Value first = b.create<LLVM::ShuffleVectorOp>(loc, total, total, low);
    Value second = b.create<LLVM::ShuffleVectorOp>(loc, total, total, high);
    total = combine(b, loc, reduction, first, second);
  }
  Value zero = b.create<LLVM::ConstantOp>(loc, b.getI32Type(), b.getI32IntegerAttr(0));
  return b.create<LLVM::ExtractElementOp>(loc, total, zero);
}

} // namespace mlir::ds::codegen
