//===- PrepareFunction.cpp - What is put in order before tensors become buffers ----===//
#include "PrepareFunction.h"

#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

/// Puts the ops of `host` in its place, each saying of work and layer what the region does.
static void dissolve(HostOp host, llvm::function_ref<void(Value)> isThere) {
  Block &body = host.getBody().front();
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), host->getOperands()))
    argument.replaceAllUsesWith(operand);
  for (auto [result, value] : llvm::zip_equal(host->getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(value);
  body.getTerminator()->erase();
  for (Operation &op : llvm::make_early_inc_range(body)) {
    op.moveBefore(host);
    copyWork(host, &op);
    llvm::for_each(op.getResults(), isThere);
  }
  host.erase();
}

DenseMap<Value, Space> mlir::ds::dissolveHostRegions(func::FuncOp func) {
  DenseMap<Value, Space> spaces;
  Block &block = func.getBody().front();
  auto untype = [&](Value value) {
    if (auto stored = dyn_cast<StoredType>(value.getType())) {
      spaces[value] = stored.getSpace();
      value.setType(stored.getTensor());
    }
  };
  llvm::for_each(block.getArguments(), untype);
  for (Operation &op : block)
    if (!isa<HostOp>(op))
      llvm::for_each(op.getResults(), untype);
  for (HostOp host : llvm::make_early_inc_range(block.getOps<HostOp>()))
    dissolve(host, [&](Value value) { spaces[value] = Space::Host; });
  return spaces;
}

/// Adds `gradient`, and what it is made of in the same memory.
static void addGradient(Value gradient, DenseSet<Value> &gradients) {
  SmallVector<Value> pending = {gradient};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation *maker = value.getDefiningOp();
    if (!maker || isa<LoadOp, MoveOp>(maker) || !gradients.insert(value).second)
      continue;
    // A gradient that is added to in place was one before.
    if (auto library = dyn_cast<LibraryOpInterface>(maker))
      for (auto [result, operand] : library.getLibraryCall().inPlace)
        if (maker->getResult(result) == value)
          pending.push_back(maker->getOperand(operand));
    if (isa<ReshapeOp, StoreOp>(maker))
      pending.push_back(maker->getOperand(0));
  }
}

DenseSet<Value> mlir::ds::findGradients(func::FuncOp func, SymbolTable &symbols) {
  DenseSet<Value> gradients;
  // What a parameter's update reads, has the parameter's type and is no state, is its gradient.
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto state = func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr);
    auto declaration = state ? symbols.lookup<StateOp>(state.getValue()) : StateOp();
    Operation *update = value.getDefiningOp();
    if (!declaration || declaration.getRole() != Role::Parameter || !update)
      continue;
    if (auto gather = dyn_cast<AllGatherOp>(update)) // the update made a shard of the parameter
      if (update = gather.getShard().getDefiningOp(); update)
        value = gather.getShard();
    for (Value input : update ? update->getOperands() : ValueRange())
      if (input.getType() == value.getType())
        addGradient(input, gradients);
  }
  // What ranks sum up is a gradient, but for the few numbers that the host reads.
  for (auto collective : func.getOps<CollectiveOpInterface>())
    if (isForUpdate(collective.getCarries()))
      for (ValueRange values : {ValueRange(collective->getOperands()), ValueRange(collective->getResults())})
        for (Value value : values)
          if (cast<RankedTensorType>(value.getType()).getRank() > 0)
            gradients.insert(value);
  return gradients;
}
