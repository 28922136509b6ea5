//===- LateUpdates.cpp - Updates that a step leaves to the next one ------------------===//
#include "ds/Passes/LateUpdates.h"

#include "ds/Dialect/Work.h"

using namespace mlir;
using namespace mlir::ds;

bool mlir::ds::isCarried(StateOp state) { return getWork(state) == Work::Update; }

/// The segment of `module` that updates without being scheduled and does other work as well, or does not.
static func::FuncOp findLate(ModuleOp module, bool doesMore) {
  if (module.getOps<ScheduleOp>().empty())
    return {};
  for (func::FuncOp func : module.getOps<func::FuncOp>())
    if (SegmentAttr segment = SegmentAttr::of(func); segment && segment.does(Work::Update) &&
                                                     (segment.getWorks().size() > 1) == doesMore &&
                                                     scheduledRuns(func) == 0)
      return func;
  return {};
}

func::FuncOp mlir::ds::getRotated(ModuleOp module) { return findLate(module, /*doesMore=*/true); }
func::FuncOp mlir::ds::getFlush(ModuleOp module) { return findLate(module, /*doesMore=*/false); }

int64_t mlir::ds::scheduledRuns(func::FuncOp func) {
  auto module = func->getParentOfType<ModuleOp>();
  auto schedules = module.getOps<ScheduleOp>();
  SegmentAttr segment = SegmentAttr::of(func);
  if (schedules.empty())
    return segment && !segment.does(Work::Evaluation);
  int64_t runs = 0;
  for (ScheduleOp schedule : schedules)
    for (RunAttr run : schedule.getRuns().getAsRange<RunAttr>())
      if (run.getSegment().getValue() == func.getSymName())
        runs += run.getCount();
  return runs;
}
