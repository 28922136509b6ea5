//===- IndexLimits.cpp - Which indices inputs may hold ------------------------------===//
//
// The same as lowering takes from commands, from ops: an op's library call has indices into another operand,
// and they are elements of an input that were moved at most.
//
//===---------------------------------------------------------------------------===//
#include "IndexLimits.h"

#include "ds/Passes/LibraryTable.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::ds;

/// The input whose elements `value` has some of; null where it is computed.
static StringAttr findInput(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ReshapeOp, SliceOp, TransposeOp, SplitOp>(op))
      return {};
    value = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return func ? getInputOf(func, argument.getArgNumber()) : StringAttr();
}

/// Value `number` of the operands of a library call.
static Value valueOf(Operation *op, const LibraryCall &call, unsigned number) {
  const unsigned index = call.order[number];
  return index < op->getNumOperands() ? op->getOperand(index) : op->getResult(index - op->getNumOperands());
}

void mlir::ds::keepIndexLimits(ModuleOp module) {
  llvm::MapVector<StringAttr, IndicesAttr> known;
  if (auto before = module->getAttrOfType<ArrayAttr>(DsDialect::kIndicesAttr))
    for (auto indices : before.getAsRange<IndicesAttr>())
      known[indices.getInput()] = indices;
  module.walk([&](LibraryOpInterface op) {
    const LibraryCall call = op.getLibraryCall();
    const std::optional<IndexUse> &use = entryOf(call.callee).indices;
    if (!use || use->isOpenIn(call.params))
      return;
    StringAttr input = findInput(valueOf(op, call, use->ids));
    if (!input)
      return;
    int64_t below = cast<RankedTensorType>(valueOf(op, call, use->table).getType()).getDimSize(use->dim);
    std::optional<int64_t> ignored;
    if (use->ignores)
      ignored = cast<IntegerAttr>(call.params[0]).getInt();
    IndicesAttr &indices = known[input];
    if (indices) {
      below = std::min(below, indices.getBelow());
      ignored = ignored ? ignored : indices.getIgnored();
    }
    const auto targets = indices ? indices.getTargets() : ArrayRef<int64_t>();
    indices = IndicesAttr::get(module.getContext(), input, below, ignored, targets);
  });
  SmallVector<Attribute> all;
  for (auto &[input, indices] : known)
    all.push_back(indices);
  if (!all.empty())
    module->setAttr(DsDialect::kIndicesAttr, ArrayAttr::get(module.getContext(), all));
}
