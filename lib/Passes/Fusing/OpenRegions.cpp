//===- OpenRegions.cpp - The regions of a block, taken apart ----------------------===//
#include "OpenRegions.h"

#include "FormRegions.h"
#include "FusionDomain.h"
#include "ds/Dialect/Work.h"

using namespace mlir;
using namespace mlir::ds;

/// The layer of each op in `fused`: what the region says of the result that it is, else what its location
/// says, else that of the first that reads it, else the region's.
static DenseMap<Operation *, Attribute> findLayers(FusedOp fused) {
  DenseMap<Operation *, Attribute> layers;
  auto known = fused->getAttrOfType<ArrayAttr>(DsDialect::kLayersAttr);
  Attribute own = fused->getAttr(DsDialect::kLayerAttr);
  Block &body = fused.getBody().front();
  for (auto [index, value] : llvm::enumerate(body.getTerminator()->getOperands()))
    if (Operation *maker = value.getDefiningOp())
      layers[maker] = known ? known[index] : own;
  for (Operation &op : llvm::drop_begin(llvm::reverse(body))) {
    auto [layer, isNew] = layers.try_emplace(&op, own);
    if (LayerAttr located = LayerAttr::of(&op); isNew && located) {
      layer->second = located;
      continue;
    }
    for (Operation *user : op.getUsers())
      if (auto reader = layers.find(user); isNew && reader != layers.end())
        layer->second = reader->second;
  }
  return layers;
}

/// Whether the ops of `fused` could be found to belong together again. One that views or joins in its body
/// does so in a kernel of its own making: outside, these ops are none of a kernel.
static bool canOpen(FusedOp fused) {
  return llvm::all_of(fused.getBody().front().without_terminator(),
                      [](Operation &op) { return isFusionCandidate(&op); });
}

OpenRegions::OpenRegions(Block &block) : block(&block) {
  for (FusedOp fused : llvm::make_early_inc_range(block.getOps<FusedOp>())) {
    if (!canOpen(fused))
      continue;
    const DenseMap<Operation *, Attribute> layers = findLayers(fused);
    Block &body = fused.getBody().front();
    for (auto [argument, input] : llvm::zip_equal(body.getArguments(), fused.getInputs()))
      argument.replaceAllUsesWith(input);
    for (auto [result, value] : llvm::zip_equal(fused.getResults(), body.getTerminator()->getOperands()))
      result.replaceAllUsesWith(value);
    Attribute work = fused->getAttr(DsDialect::kWorkAttr);
    for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
      op.moveBefore(fused);
      regions[&op] = count;
      if (!needsWork(&op))
        continue;
      if (work)
        op.setAttr(DsDialect::kWorkAttr, work);
      if (auto layer = dyn_cast_or_null<LayerAttr>(layers.lookup(&op)))
        op.setAttr(DsDialect::kLayerAttr, layer);
    }
    fused.erase();
    ++count;
  }
}

std::optional<unsigned> OpenRegions::find(Operation *op) const {
  auto known = regions.find(op);
  return known == regions.end() ? std::nullopt : std::optional(known->second);
}

/// Gives ops that are in no region, as what is recomputed, constants of their own: a region puts one into
/// memory for other regions and for results alone.
static void leaveConstants(Block &block, const OpenRegions &regions) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!regions.find(&op) || !op.hasTrait<OpTrait::ConstantLike>())
      continue;
    for (OpOperand &use : llvm::make_early_inc_range(op.getUses()))
      if (!regions.find(use.getOwner()) && !use.getOwner()->hasTrait<OpTrait::IsTerminator>())
        use.set(OpBuilder(use.getOwner()).clone(op)->getResult(0));
  }
}

LogicalResult OpenRegions::close() {
  leaveConstants(*block, *this);
  SmallVector<SmallVector<Operation *>, 0> members(count);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (std::optional<unsigned> region = find(&op)) {
      if (op.use_empty())
        op.erase();
      else
        members[*region].push_back(&op);
    }
  CopiedOps none;
  for (SmallVector<Operation *> &ops : members)
    if (!ops.empty()) {
      std::reverse(ops.begin(), ops.end());
      formRegion(ops, none);
    }
  regions.clear();
  return sortStably(*block);
}
