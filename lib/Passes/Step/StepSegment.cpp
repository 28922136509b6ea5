//===- StepSegment.cpp - One function of a training step ------------------------===//
#include "StepSegment.h"

#include "ds/Dialect/Work.h"

using namespace mlir;
using namespace mlir::ds;

StepSegment::StepSegment(func::FuncOp forward, StringRef name, ArrayRef<Work> works) : func(forward.clone()) {
  MLIRContext *context = forward.getContext();
  func.setName(name);
  SegmentAttr like = SegmentAttr::of(forward);
  func->setAttr(DsDialect::kSegmentAttr,
                SegmentAttr::get(context, like ? like.getStage() : 0, like ? like.getChunk() : 0, works));
  forward->getParentRegion()->back().push_back(func);
  takeResults();
  if (llvm::is_contained(works, Work::Evaluation)) // which leaves states as they are
    written.clear();
  for (BlockArgument argument : func.getArguments())
    if (auto state = func.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), DsDialect::kStateAttr))
      arguments[state.getAttr()] = argument;
}

/// Remembers what the forward returns by what it is, and returns nothing for now.
void StepSegment::takeResults() {
  Operation *terminator = getTerminator();
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    Value value = terminator->getOperand(index);
    if (index == 0 && !func.getResultAttr(index, DsDialect::kStateAttr))
      loss = value;
    else if (FlatSymbolRefAttr parameter = GradientAttr::stateOf(func, index))
      gradients[parameter.getAttr()] = value;
    else if (auto state = func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr))
      written[state.getAttr()] = value;
  }
  terminator->setOperands({});
  func.eraseResults(BitVector(func.getNumResults(), true));
}

Value StepSegment::read(StateOp state) {
  BlockArgument &argument = arguments[state.getSymNameAttr()];
  if (argument)
    return argument;
  added.push_back(state.getSymNameAttr());
  return argument = getBody().addArgument(state.getTensorType(), state.getLoc());
}

void StepSegment::write(StateOp state, Value value) {
  assert(value.getType() == state.getTensorType() && "a state keeps its type");
  bool isNew = written.insert({state.getSymNameAttr(), value}).second;
  assert(isNew && "a state is written once");
  (void)isNew;
}

void StepSegment::eraseBackward() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getBody())))
    if (getWork(&op) == Work::Backward) {
      assert(op.use_empty() && "gradients are no results any more");
      op.erase();
    }
}

void StepSegment::finish() {
  Builder builder(func.getContext());
  auto holds = [&](StringAttr state) {
    return builder.getDictionaryAttr(
        builder.getNamedAttr(DsDialect::kStateAttr, FlatSymbolRefAttr::get(state)));
  };
  SmallVector<DictionaryAttr> arguments, results;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    arguments.push_back(func.getArgAttrDict(index));
  llvm::append_range(arguments, llvm::map_range(added, holds));
  SmallVector<Value> values;
  for (auto [state, value] : written) {
    values.push_back(value);
    results.push_back(holds(state));
  }
  getTerminator()->setOperands(values);
  func.setFunctionType(builder.getFunctionType(getBody().getArgumentTypes(), TypeRange(ValueRange(values))));
  func.setAllArgAttrs(arguments);
  func.setAllResultAttrs(results);
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
