//===- SegmentStates.cpp - States as arguments and results of a segment -----------===//
#include "SegmentStates.h"

using namespace mlir;
using namespace mlir::ds;

StringAttr SegmentStates::nameOf(BlockArgument argument) const {
  auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), DsDialect::kStateAttr);
  return name ? name.getAttr() : StringAttr();
}

StringAttr SegmentStates::nameOfResult(unsigned index) const {
  auto name = func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr);
  return name ? name.getAttr() : StringAttr();
}

BlockArgument SegmentStates::find(StringAttr state) const {
  for (BlockArgument argument : getBody().getArguments())
    if (nameOf(argument) == state)
      return argument;
  return {};
}

Value SegmentStates::findResult(StringAttr state) const {
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (nameOfResult(index) == state)
      return getTerminator()->getOperand(index);
  return {};
}

/// The attributes of an argument or result that holds `state`.
static DictionaryAttr attributesOf(StateOp state) {
  Builder builder(state.getContext());
  return builder.getDictionaryAttr(
      builder.getNamedAttr(DsDialect::kStateAttr, FlatSymbolRefAttr::get(state)));
}

Value SegmentStates::read(StateOp state) {
  if (BlockArgument known = find(state.getSymNameAttr()))
    return known;
  unsigned index = func.getNumArguments();
  func.insertArgument(index, state.getLocalType(), attributesOf(state), state.getLoc());
  return func.getArgument(index);
}

void SegmentStates::write(StateOp state, Value value) {
  assert(value.getType() == state.getLocalType() && "a state keeps its type");
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (nameOfResult(index) == state.getSymNameAttr())
      return getTerminator()->setOperand(index, value);
  func.insertResult(func.getNumResults(), value.getType(), attributesOf(state));
  getTerminator()->insertOperands(getTerminator()->getNumOperands(), value);
}

void SegmentStates::finish() {
  BitVector results(func.getNumResults()), arguments(func.getNumArguments());
  SmallVector<Value> kept;
  for (unsigned index = 0; index < results.size(); ++index) {
    results[index] = dropped.contains(nameOfResult(index));
    if (!results[index])
      kept.push_back(getTerminator()->getOperand(index));
  }
  getTerminator()->setOperands(kept);
  func.eraseResults(results);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getBody())))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (BlockArgument argument : getBody().getArguments())
    arguments[argument.getArgNumber()] = nameOf(argument) && dropped.contains(nameOf(argument));
  func.eraseArguments(arguments);
}

Operation *mlir::ds::earlierOf(Operation *a, Operation *b) {
  if (!a || !b)
    return a ? a : b;
  return a->isBeforeInBlock(b) ? a : b;
}

Operation *mlir::ds::laterOf(Operation *a, Operation *b) {
  if (!a || !b)
    return a ? a : b;
  return a->isBeforeInBlock(b) ? b : a;
}
