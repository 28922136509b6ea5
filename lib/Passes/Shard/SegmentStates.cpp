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

/// Notes where each state is, so that a step of many states is not searched for each.
void SegmentStates::index() {
  arguments.clear();
  results.clear();
  for (BlockArgument argument : getBody().getArguments())
    if (StringAttr state = nameOf(argument))
      arguments.try_emplace(state, argument);
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (StringAttr state = nameOfResult(index))
      results.try_emplace(state, index);
}

BlockArgument SegmentStates::find(StringAttr state) const { return arguments.lookup(state); }

Value SegmentStates::findResult(StringAttr state) const {
  auto found = results.find(state);
  return found == results.end() ? Value() : getTerminator()->getOperand(found->second);
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
  return arguments[state.getSymNameAttr()] = func.getArgument(index);
}

void SegmentStates::write(StateOp state, Value value) {
  assert(value.getType() == state.getLocalType() && "a state keeps its type");
  auto [place, isNew] = results.try_emplace(state.getSymNameAttr(), func.getNumResults());
  if (!isNew)
    return getTerminator()->setOperand(place->second, value);
  func.insertResult(func.getNumResults(), value.getType(), attributesOf(state));
  getTerminator()->insertOperands(getTerminator()->getNumOperands(), value);
}

void SegmentStates::finish() {
  BitVector goneResults(func.getNumResults()), goneArguments(func.getNumArguments());
  SmallVector<Value> kept;
  for (unsigned index = 0; index < goneResults.size(); ++index) {
    goneResults[index] = dropped.contains(nameOfResult(index));
    if (!goneResults[index])
      kept.push_back(getTerminator()->getOperand(index));
  }
  getTerminator()->setOperands(kept);
  func.eraseResults(goneResults);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getBody())))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (BlockArgument argument : getBody().getArguments())
    goneArguments[argument.getArgNumber()] = nameOf(argument) && dropped.contains(nameOf(argument));
  func.eraseArguments(goneArguments);
  index();
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
