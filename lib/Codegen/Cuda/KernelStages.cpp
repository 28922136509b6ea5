//===- KernelStages.cpp - Kernels that add up columns in two stages ------------===//

#include "ds/Codegen/KernelStages.h"
#include "CudaMapping.h"
#include "KernelBody.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::ds {
using namespace codegen;

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

bool canLaunchStages(KernelOp kernel, std::string &reason) {
  SmallVector<KernelBody, 2> sources = readStages(kernel);
  SmallVector<std::unique_ptr<LoopNest>, 2> nests;
  for (const KernelBody &source : sources) {
    nests.push_back(buildLoopNest(source.body, &source.layout, reason));
    if (!nests.back())
      return false;
  }
  if (nests.size() != 2) {
    reason = "no stage reads what another stores";
    return false;
  }
  CudaMapping mapping = mapToCuda(*nests[0]);
  if (mapParts(*nests[0], mapping, *nests[1]))
    return true;
  reason = "strips of columns of the stages are not the same";
  return false;
}

} // namespace mlir::ds
