//===- PostOrder.cpp - What a value is computed from, operands first ------------===//
#include "PostOrder.h"

using namespace mlir;
using namespace mlir::ds;

void mlir::ds::visitPostOrder(Value value, function_ref<bool(Value)> isOpen,
                              function_ref<void(Value)> visit) {
  SmallVector<std::pair<Value, unsigned>> path; // from `value` on, each with its operands that were looked at
  auto enter = [&](Value next) {
    if (isOpen(next))
      path.emplace_back(next, 0);
  };
  enter(value);
  while (!path.empty()) {
    auto &[reached, looked] = path.back();
    Operation *op = reached.getDefiningOp();
    if (looked < op->getNumOperands()) {
      enter(op->getOperand(looked++)); // `reached` and `looked` are gone now
      continue;
    }
    visit(reached);
    path.pop_back();
  }
}
