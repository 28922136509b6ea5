//===- PlanLeast.cpp - Plans that hold as little as can be -------------------------===//
//
// Whether a size of a model fits, such a plan mostly says: it is made without a search for what to hold, and
// its peak grows with the size on a line. What takes least, the pieces of the loss and which groups are made
// again, is the same for all sizes, and is found once, in phase resident.
//
//===---------------------------------------------------------------------------===//
#include "Expected.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/Residency.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/TrainingAttr.h"
#include "ds/Planner/PlanModel.h"

using namespace mlir;
using namespace mlir::ds;

/// Model to step.
static LogicalResult makeStep(ModuleOp module, RunPipeline run) {
  return run([](OpPassManager &manager) { buildStepPipeline(manager); }, module);
}

/// Asks for as little to be held of `step` as can be.
static void holdLeast(ModuleOp step, int64_t leastHeld) {
  step->setAttr(kLeastHeldAttr, Builder(step.getContext()).getI64IntegerAttr(leastHeld));
}

FailureOr<int64_t> mlir::ds::expectLeast(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                                         LeastForm &form) {
  FailureOr<TrainingOptions> training = readTrainingAttr(module);
  if (failed(training))
    return failure();
  if (training->lossChunks == 0)
    module->setAttr(kOffersLossAttr, UnitAttr::get(module.getContext()));
  if (failed(makeStep(module, run)))
    return failure();
  holdLeast(module, /*leastHeld=*/-1);
  auto build = [&](OpPassManager &manager) {
    buildPipelines(manager, Phase::Step, Phase::Resident, options);
  };
  if (failed(run(build, module)))
    return failure();
  auto residency = module->getAttrOfType<DictionaryAttr>(kResidencyAttr);
  form = {};
  if (auto loss = residency.getAs<DictionaryAttr>("loss"))
    form.lossRows = loss.getAs<IntegerAttr>("rows").getInt();
  form.leastHeld = module->getAttrOfType<IntegerAttr>(kLeastHeldAttr).getInt();
  return Expected(module).bytes;
}

LogicalResult mlir::ds::planLeast(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                                  const LeastForm &form) {
  module->setAttr(kLossRowsAttr, Builder(module.getContext()).getI64IntegerAttr(form.lossRows));
  if (failed(makeStep(module, run)))
    return failure();
  module->removeAttr(kLossRowsAttr);
  holdLeast(module, form.leastHeld);
  return planStepLeast(module, options, run);
}
