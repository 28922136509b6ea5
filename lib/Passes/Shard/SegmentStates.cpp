//===- SegmentStates.cpp - States as arguments and results of a segment -----------===//
#include "SegmentStates.h"

using namespace mlir;
using namespace mlir::ds;

StringAttr SegmentStates::nameOf(BlockArgument argument) const {
  return argumentStates[argument.getArgNumber()];
}

/// Notes where each state is, so that a step of many states is not searched for each.
void SegmentStates::index() {
  arguments.clear();
  results.clear();
  argumentStates.clear();
  resultStates.clear();
  auto nameIn = [](FlatSymbolRefAttr state) { return state ? state.getAttr() : StringAttr(); };
  for (BlockArgument argument : getBody().getArguments()) {
    unsigned index = argument.getArgNumber();
    argumentStates.push_back(nameIn(func.getArgAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr)));
    if (StringAttr state = argumentStates.back())
      arguments.try_emplace(state, argument);
  }
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    resultStates.push_back(nameIn(func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr)));
    if (StringAttr state = resultStates.back())
      results.try_emplace(state, index);
  }
}

BlockArgument SegmentStates::find(StringAttr state) const { return arguments.lookup(state); }

Value SegmentStates::findResult(StringAttr state) const {
  auto found = results.find(state);
  return found == results.end() ? Value() : getTerminator()->getOperand(found->second);
}

Value SegmentStates::read(StateOp state) {
  if (BlockArgument known = find(state.getSymNameAttr()))
    return known;
  argumentStates.push_back(state.getSymNameAttr());
  return arguments[state.getSymNameAttr()] = getBody().addArgument(state.getLocalType(), state.getLoc());
}

void SegmentStates::write(StateOp state, Value value) {
  assert(value.getType() == state.getLocalType() && "a state keeps its type");
  auto [place, isNew] = results.try_emplace(state.getSymNameAttr(), getNumResults());
  if (!isNew)
    return getTerminator()->setOperand(place->second, value);
  resultStates.push_back(state.getSymNameAttr());
  getTerminator()->insertOperands(getTerminator()->getNumOperands(), value);
}

void SegmentStates::finish() {
  Builder builder(func.getContext());
  // What was added says its state; what was there keeps what it says.
  auto attributesOf = [&](unsigned index, unsigned known, StringAttr state, auto get) {
    return index < known ? get(index)
                         : builder.getDictionaryAttr(
                               builder.getNamedAttr(DsDialect::kStateAttr, FlatSymbolRefAttr::get(state)));
  };
  SmallVector<DictionaryAttr> argumentAttrs, resultAttrs;
  SmallVector<Value> returned;
  auto getResult = [&](unsigned index) { return func.getResultAttrDict(index); };
  for (unsigned index = 0; index < getNumResults(); ++index)
    if (!dropped.contains(nameOfResult(index))) {
      returned.push_back(getTerminator()->getOperand(index));
      resultAttrs.push_back(attributesOf(index, func.getNumResults(), nameOfResult(index), getResult));
    }
  getTerminator()->setOperands(returned);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getBody())))
    if (isOpTriviallyDead(&op))
      op.erase();
  BitVector gone(getBody().getNumArguments());
  auto getArgument = [&](unsigned index) { return func.getArgAttrDict(index); };
  for (unsigned index = 0; index < gone.size(); ++index) {
    gone[index] = argumentStates[index] && dropped.contains(argumentStates[index]);
    if (!gone[index])
      argumentAttrs.push_back(
          attributesOf(index, func.getNumArguments(), argumentStates[index], getArgument));
  }
  getBody().eraseArguments(gone);
  func.setFunctionType(
      builder.getFunctionType(getBody().getArgumentTypes(), TypeRange(ValueRange(returned))));
  func.setAllArgAttrs(argumentAttrs);
  func.setAllResultAttrs(resultAttrs);
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
