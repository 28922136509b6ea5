//===- StepSegment.cpp - One function of a training step ------------------------===//
#include "StepSegment.h"

using namespace mlir;
using namespace mlir::ds;

StepSegment::StepSegment(func::FuncOp forward, StringRef name, SegmentKind kind) : func(forward.clone()) {
  MLIRContext *context = forward.getContext();
  func.setName(name);
  func->setAttr(DsDialect::kSegmentAttr, SegmentKindAttr::get(context, kind));
  forward->getParentRegion()->back().push_back(func);
  takeResults();
}

/// Remembers what the forward returns by what it is, and returns nothing for now.
void StepSegment::takeResults() {
  Operation *terminator = getTerminator();
  loss = terminator->getOperand(0);
  for (unsigned index = 1; index < func.getNumResults(); ++index) {
    Value value = terminator->getOperand(index);
    if (auto parameter = func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kGradientAttr))
      gradients[parameter.getAttr()] = value;
    else if (auto state = func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr))
      written[state.getAttr()] = value;
  }
  terminator->setOperands({});
  func.eraseResults(BitVector(func.getNumResults(), true));
}

Value StepSegment::read(StateOp state) {
  auto name = FlatSymbolRefAttr::get(state);
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (func.getArgAttr(index, DsDialect::kStateAttr) == name)
      return func.getArgument(index);
  Builder builder(func.getContext());
  unsigned index = func.getNumArguments();
  func.insertArgument(index, state.getTensorType(),
                      builder.getDictionaryAttr(builder.getNamedAttr(DsDialect::kStateAttr, name)),
                      state.getLoc());
  return func.getArgument(index);
}

void StepSegment::write(StateOp state, Value value) {
  assert(value.getType() == state.getTensorType() && "a state keeps its type");
  bool isNew = written.insert({state.getSymNameAttr(), value}).second;
  assert(isNew && "a state is written once");
  (void)isNew;
}

void StepSegment::finish() {
  Builder builder(func.getContext());
  Operation *terminator = getTerminator();
  for (auto [state, value] : written) {
    auto attr = builder.getNamedAttr(DsDialect::kStateAttr, FlatSymbolRefAttr::get(state));
    func.insertResult(func.getNumResults(), value.getType(), builder.getDictionaryAttr(attr));
    terminator->insertOperands(terminator->getNumOperands(), value);
  }
  eraseUnused();
}

void StepSegment::eraseUnused() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getBody())))
    if (isOpTriviallyDead(&op))
      op.erase();
  BitVector unused(func.getNumArguments());
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    unused[index] = func.getArgAttr(index, DsDialect::kStateAttr) && func.getArgument(index).use_empty();
  func.eraseArguments(unused);
}
