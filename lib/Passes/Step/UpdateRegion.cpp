//===- UpdateRegion.cpp - Writes the body of a ds.update -------------------------===//
#include "UpdateRegion.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ds;

UpdateRegion::UpdateRegion(StateOp parameter, Value gradient)
    : parameter(parameter), outsideGradient(gradient), block(region.emplaceBlock()),
      bodyBuilder(parameter.getContext()), emit(bodyBuilder, gradient.getLoc()) {
  bodyBuilder.setInsertionPointToEnd(&block); // the region has no parent to ask for a context yet
  this->gradient = block.addArgument(gradient.getType(), gradient.getLoc());
}

Value UpdateRegion::addState(Value outside) {
  auto *known = llvm::find(states, outside);
  if (known != states.end())
    return block.getArgument(known - states.begin());
  states.push_back(outside);
  return block.insertArgument(states.size() - 1, outside.getType(), outside.getLoc());
}

unsigned UpdateRegion::yield(Value value) {
  results.push_back(value);
  return results.size() - 1;
}

/// Makes what the body names from outside an argument, or, if it is a constant, an op of the body.
void UpdateRegion::captureScalars(SmallVectorImpl<Value> &scalars) {
  DenseMap<Value, Value> inside;
  auto capture = [&](Value value) {
    if (value.getParentBlock() == &block)
      return value;
    Value &known = inside[value];
    if (known)
      return known;
    if (auto constant = value.getDefiningOp<ConstantOp>()) {
      OpBuilder builder(constant.getContext());
      builder.setInsertionPointToStart(&block);
      return known = builder.clone(*constant)->getResult(0);
    }
    assert(tensorType(value).getRank() == 0 && "all elements share what a body names from outside");
    scalars.push_back(value);
    return known = block.addArgument(value.getType(), value.getLoc());
  };
  for (Operation &op : llvm::make_early_inc_range(block))
    for (OpOperand &operand : op.getOpOperands())
      operand.set(capture(operand.get()));
}

UpdateOp UpdateRegion::finish(OpBuilder &builder) {
  bodyBuilder.create<YieldOp>(emit.getLoc(), results);
  SmallVector<Value> scalars;
  captureScalars(scalars);
  auto types = llvm::to_vector(TypeRange(ValueRange(results)));
  auto op = builder.create<UpdateOp>(emit.getLoc(), types, FlatSymbolRefAttr::get(parameter), states,
                                     outsideGradient, scalars);
  op.getBody().takeBody(region);
  return op;
}
