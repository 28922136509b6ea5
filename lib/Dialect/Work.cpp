//===- Work.cpp - Which part of a step an op is, and of which layer --------------===//
#include "ds/Dialect/Work.h"

using namespace mlir;
using namespace mlir::ds;

std::optional<Work> mlir::ds::getWork(Operation *op) {
  auto work = op->getAttrOfType<WorkAttr>(DsDialect::kWorkAttr);
  return work ? std::optional(work.getValue()) : std::nullopt;
}

void mlir::ds::setWork(Operation *op, Work work) {
  op->setAttr(DsDialect::kWorkAttr, WorkAttr::get(op->getContext(), work));
}

bool mlir::ds::needsWork(Operation *op) {
  return !op->hasTrait<OpTrait::ConstantLike>() && !op->hasTrait<OpTrait::IsTerminator>() &&
         !isa<ViewOp, AfterOp>(op);
}

std::string mlir::ds::layerOf(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string layer = layerOf(part); !layer.empty())
        return layer;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return layerOf(call.getCallee());
  return "";
}

std::string mlir::ds::layerOf(Operation *op) {
  auto layer = op->getAttrOfType<StringAttr>(DsDialect::kLayerAttr);
  return layer ? layer.str() : layerOf(op->getLoc());
}

/// The layer that `op` has, as an attribute; null for none.
static Attribute layerAttrOf(Operation *op) {
  if (Attribute layer = op->getAttr(DsDialect::kLayerAttr))
    return layer;
  std::string layer = layerOf(op->getLoc());
  return layer.empty() ? Attribute() : StringAttr::get(op->getContext(), layer);
}

/// Sets what is not null and not there yet.
static void say(Operation *op, Attribute work, Attribute layer) {
  if (work && !op->hasAttr(DsDialect::kWorkAttr))
    op->setAttr(DsDialect::kWorkAttr, work);
  if (layer && !op->hasAttr(DsDialect::kLayerAttr))
    op->setAttr(DsDialect::kLayerAttr, layer);
}

void mlir::ds::markWork(Block &block, Work work) {
  Attribute attr = WorkAttr::get(block.getParentOp()->getContext(), work);
  for (Operation &op : block)
    if (needsWork(&op) && !op.hasAttr(DsDialect::kWorkAttr))
      say(&op, attr, layerAttrOf(&op));
}

void mlir::ds::copyWork(Operation *from, Operation *to) {
  say(to, from->getAttr(DsDialect::kWorkAttr), from->getAttr(DsDialect::kLayerAttr));
}

void mlir::ds::clearWork(Operation *op) {
  op->removeAttr(DsDialect::kWorkAttr);
  op->removeAttr(DsDialect::kLayerAttr);
}

bool mlir::ds::isBefore(Work a, Work b) {
  auto rank = [](Work work) {
    switch (work) {
    case Work::Forward:
    case Work::Evaluation:
      return 0;
    case Work::Recompute:
      return 1;
    case Work::Backward:
    case Work::InputGradient:
    case Work::WeightGradient:
      return 2;
    case Work::Update:
      return 3;
    }
    llvm_unreachable("all work is ranked");
  };
  return rank(a) < rank(b);
}

void WorkListener::follow(Operation *op) {
  work = op ? op->getAttr(DsDialect::kWorkAttr) : Attribute();
  layer = op ? op->getAttr(DsDialect::kLayerAttr) : Attribute();
}

void WorkListener::follow(Operation *op, Work work) {
  follow(op);
  this->work = WorkAttr::get(op->getContext(), work);
}

void WorkListener::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) {
  if (needsWork(op))
    say(op, work, layer);
}
