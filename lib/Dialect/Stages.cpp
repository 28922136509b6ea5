//===- Stages.cpp - The stages of a pipeline, each a module of its own --------------===//
#include "ds/Dialect/Stages.h"

#include "ds/Dialect/MeshShape.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::ds;

bool mlir::ds::hasStages(ModuleOp module) { return !module.getOps<ModuleOp>().empty(); }

SmallVector<ModuleOp> mlir::ds::getStages(ModuleOp module) {
  if (!hasStages(module))
    return {module};
  auto stages = llvm::to_vector(module.getOps<ModuleOp>());
  llvm::stable_sort(stages, [](ModuleOp a, ModuleOp b) {
    return findStageNumber(a).value_or(0) < findStageNumber(b).value_or(0);
  });
  return stages;
}

std::optional<int64_t> mlir::ds::findStageNumber(ModuleOp stage) {
  for (auto func : stage.getOps<func::FuncOp>())
    if (SegmentAttr segment = SegmentAttr::of(func))
      return segment.getStage();
  for (auto schedule : stage.getOps<ScheduleOp>())
    return schedule.getStage();
  return std::nullopt;
}

bool mlir::ds::isStage(func::FuncOp forward) { return SegmentAttr::of(forward) != nullptr; }

bool mlir::ds::givesLoss(func::FuncOp forward) {
  const MeshShape shape = getMeshShape(forward->getParentOfType<ModuleOp>());
  SegmentAttr segment = SegmentAttr::of(forward);
  return !segment || segment.getStage() + 1 == shape.mesh.size(shape.stages);
}
