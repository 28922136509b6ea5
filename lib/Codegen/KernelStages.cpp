//===- KernelStages.cpp - Kernels that add up columns in two stages ------------===//

#include "ds/Codegen/KernelStages.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::ds {

/// The ops of `body` that `outputs` depend on, in order; `given` is in memory.
static SmallVector<Operation *> opsFor(Block &body, ArrayRef<Value> outputs, const DenseSet<Value> &given) {
  DenseSet<Operation *> needed;
  SmallVector<Value> open(outputs);
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op && !given.contains(value) && needed.insert(op).second)
      llvm::append_range(open, op->getOperands());
  }
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    if (needed.contains(&op))
      ops.push_back(&op);
  return ops;
}

/// What `body` yields that it reduces again.
static DenseSet<Value> findParts(Block &body) {
  DenseSet<Value> parts;
  for (Value value : body.getTerminator()->getOperands())
    if (value.getDefiningOp<ReduceOp>() && llvm::any_of(value.getUsers(), llvm::IsaPred<ReduceOp>))
      parts.insert(value);
  return parts;
}

SmallVector<KernelStage, 2> stagesOf(Block &body) {
  const DenseSet<Value> parts = findParts(body);
  DenseSet<Operation *> later; // depends on parts
  for (Operation &op : body.without_terminator())
    if (llvm::any_of(op.getOperands(), [&](Value operand) {
          return parts.contains(operand) || later.contains(operand.getDefiningOp());
        }))
      later.insert(&op);
  SmallVector<KernelStage, 2> stages(parts.empty() ? 1 : 2);
  for (Value value : body.getTerminator()->getOperands())
    stages[later.contains(value.getDefiningOp()) ? 1 : 0].outputs.push_back(value);
  const DenseSet<Value> stored(stages[0].outputs.begin(), stages[0].outputs.end());
  stages[0].ops = opsFor(body, stages[0].outputs, {});
  if (stages.size() > 1)
    stages[1].ops = opsFor(body, stages[1].outputs, stored);
  return stages;
}

} // namespace mlir::ds
