//===- GradientsShape.cpp - Derivatives of ops that move elements ---------------===//
//
// Moving elements is linear: the gradient moves them back. What was repeated is added up, what was added up
// is repeated, what was cut off is zero.
//
//===----------------------------------------------------------------------------===//
#include "ds/Dialect/Emitter.h"

using namespace mlir;
using namespace mlir::ds;

using Values = SmallVectorImpl<Value>;

void BroadcastOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                 Values &grads) {
  Emitter emit(builder, getLoc());
  if (!isFloatTensor(getInput()))
    return grads.push_back(Value());
  RankedTensorType input = tensorType(getInput()), result = tensorType(getResult());
  SmallVector<int64_t> repeated;
  for (int64_t dim : dimRange(0, result.getRank())) {
    const auto *entry = llvm::find(getDims(), dim);
    bool isNew = entry == getDims().end();
    if (isNew || input.getDimSize(entry - getDims().begin()) != result.getDimSize(dim))
      repeated.push_back(dim);
  }
  grads.push_back(emit.reshape(emit.sum(resultGrads.front(), repeated), input.getShape()));
}

void ReshapeOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                               Values &grads) {
  Emitter emit(builder, getLoc());
  if (!isFloatTensor(getInput()))
    return grads.push_back(Value());
  grads.push_back(emit.reshape(resultGrads.front(), tensorType(getInput()).getShape()));
}

void TransposeOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                                 Values &grads) {
  if (!isFloatTensor(getInput()))
    return grads.push_back(Value());
  SmallVector<int64_t> inverse(getPerm().size());
  for (auto [index, dim] : llvm::enumerate(getPerm()))
    inverse[dim] = index;
  grads.push_back(builder.createOrFold<TransposeOp>(getLoc(), getInput().getType(), resultGrads.front(),
                                                    builder.getDenseI64ArrayAttr(inverse)));
}

void SliceOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                             Values &grads) {
  if (!isFloatTensor(getInput()))
    return grads.push_back(Value());
  grads.push_back(
      builder.create<PadOp>(getLoc(), getInput().getType(), resultGrads.front(), getOffsets(), getStrides()));
}

void PadOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  if (!isFloatTensor(getInput()))
    return grads.push_back(Value());
  grads.push_back(builder.createOrFold<SliceOp>(getLoc(), getInput().getType(), resultGrads.front(),
                                                getOffsetsAttr(), getStridesAttr()));
}

void ConcatOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                              Values &grads) {
  if (!isFloatTensor(getResult()))
    return grads.append(getInputs().size(), Value());
  if (getInputs().size() == 1)
    return grads.push_back(resultGrads.front());
  auto split = builder.create<SplitOp>(getLoc(), getInputs().getTypes(), resultGrads.front(), getDim());
  for (auto [piece, isNeeded] : llvm::zip_equal(split.getPieces(), needed))
    grads.push_back(isNeeded ? piece : Value());
}

void SplitOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                             Values &grads) {
  Emitter emit(builder, getLoc());
  if (!isFloatTensor(getInput()))
    return grads.push_back(Value());
  SmallVector<Value> pieces;
  for (auto [piece, grad] : llvm::zip_equal(getPieces(), resultGrads))
    pieces.push_back(grad ? grad : emit.splat(tensorType(piece), 0.0));
  grads.push_back(builder.createOrFold<ConcatOp>(getLoc(), getInput().getType(), pieces, getDimAttr()));
}

void ReduceOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                              Values &grads) {
  Emitter emit(builder, getLoc());
  if (!isFloatTensor(getInput()))
    return grads.push_back(Value());
  ArrayRef<int64_t> shape = tensorType(getInput()).getShape();
  if (getKind() == ReduceKind::Sum)
    return grads.push_back(emit.repeatAlong(resultGrads.front(), getDims(), shape));
  // Maximum and minimum: equal shares for all elements that attain it. None attains NaN, of which the whole
  // row gets NaN: what the others get is share - share, which is 0 for every finite share.
  Value attained = emit.compare(Predicate::EQ, getInput(), emit.repeatAlong(getResult(), getDims(), shape));
  Value count = emit.sum(emit.convert(attained, tensorType(getInput()).getElementType()), getDims());
  Value share = emit.div(resultGrads.front(), count), none = emit.sub(share, share);
  auto spread = [&](Value row) { return emit.repeatAlong(row, getDims(), shape); };
  grads.push_back(emit.select(attained, spread(share), spread(none)));
}
