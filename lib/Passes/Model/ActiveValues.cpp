//===- ActiveValues.cpp - Between which values gradients pass ---------------------===//
#include "ActiveValues.h"

#include "ds/Dialect/Emitter.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

DenseSet<Value> mlir::ds::findActiveValues(func::FuncOp func) {
  DenseSet<Value> active;
  const SymbolTable symbols(func->getParentOfType<ModuleOp>());
  for (BlockArgument argument : func.getArguments()) {
    FlatSymbolRefAttr name = getStateOf(func, argument);
    auto state = name ? symbols.lookup<StateOp>(name.getValue()) : StateOp();
    if (state && state.getTrainable())
      active.insert(argument);
  }
  auto isActive = [&](Value value) { return active.contains(value); };
  for (Operation &op : func.getBody().front().without_terminator()) {
    auto message = dyn_cast<RecvOp>(op);
    if ((message && message.getTrained()) ||
        (isa<DifferentiableOpInterface>(op) && llvm::any_of(op.getOperands(), isActive)))
      for (Value result : op.getResults())
        if (isFloatTensor(result))
          active.insert(result);
  }
  return active;
}

DenseSet<Value> mlir::ds::findNeededValues(func::FuncOp func) {
  DenseSet<Value> needed;
  auto add = [&](ValueRange values) {
    for (Value value : values)
      if (isFloatTensor(value))
        needed.insert(value);
  };
  Block &body = func.getBody().front();
  add(body.getTerminator()->getOperands().take_front());
  for (Operation &op : llvm::reverse(body)) {
    auto message = dyn_cast<SendOp>(op);
    if ((message && message.getTrained()) ||
        (isa<DifferentiableOpInterface>(op) &&
         llvm::any_of(op.getResults(), [&](Value result) { return needed.contains(result); })))
      add(op.getOperands());
  }
  return needed;
}
