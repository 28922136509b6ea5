//===- StatePlaces.cpp - Which values become states, and whose memory those take -----------===//
#include "StatePlaces.h"

using namespace mlir;
using namespace mlir::ds;

FlatSymbolRefAttr mlir::ds::becomesState(func::FuncOp func, Value value) {
  for (OpOperand &use : value.getUses())
    if (isa<func::ReturnOp>(use.getOwner()))
      if (auto state =
              func.getResultAttrOfType<FlatSymbolRefAttr>(use.getOperandNumber(), DsDialect::kStateAttr))
        return state;
  return {};
}

unsigned mlir::ds::rankOfPlace(Value operand, bool isInState, OpResult result) {
  if (isInState)
    return 1;
  auto from = operand.getDefiningOp<MoveOp>();
  auto argument = from ? dyn_cast<BlockArgument>(from->getOperand(0)) : BlockArgument();
  if (!argument)
    return 2;
  auto func = result.getOwner()->getParentOfType<func::FuncOp>();
  Attribute state = func.getArgAttr(argument.getArgNumber(), DsDialect::kStateAttr);
  const bool goesBack = llvm::any_of(result.getUsers(), [&](Operation *user) {
    return isa<MoveOp>(user) && becomesState(func, user->getResult(0)) == state;
  });
  return goesBack ? 0 : 3;
}
