//===- PlanLeast.cpp - Plans that hold as little as can be -------------------------===//
//
// Whether a size of a model fits, such a plan mostly says: it is made without a search for what to hold, and
// its peak grows with the size on a line. What takes least, the pieces of the loss and which groups
// are recomputed, is the same for all sizes, and is found once, in phase resident.
//
//===---------------------------------------------------------------------------===//
#include "Expected.h"
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Planner/PlanModel.h"

using namespace mlir;
using namespace mlir::ds;

/// Model to step.
static LogicalResult makeStep(ModuleOp module, RunPipeline run) {
  return run([](OpPassManager &manager) { buildStepPipeline(manager); }, module);
}

/// Asks for as little to be held of `step` as can be.
static void holdLeast(ModuleOp step, std::optional<int64_t> leastStride) {
  changeDecisions(step, [&](Decisions &decisions) {
    PlanSearch search = decisions.search.value_or(PlanSearch());
    search.holdsLeast = true;
    search.leastStride = leastStride;
    decisions.search = search;
  });
}

FailureOr<int64_t> mlir::ds::expectLeast(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                                         LeastForm &form) {
  const TrainingOptions training = getTraining(module);
  if (training.lossChunks == 0)
    changeDecisions(module, [](Decisions &decisions) { decisions.search = PlanSearch{.offersLoss = true}; });
  if (failed(makeStep(module, run)))
    return failure();
  holdLeast(module, /*leastStride=*/std::nullopt);
  auto build = [&](OpPassManager &manager) {
    buildPipelines(manager, Phase::Step, Phase::Resident, options);
  };
  if (failed(run(build, module)))
    return failure();
  const Decisions decisions = getDecisions(module);
  form = {};
  if (decisions.residency->loss)
    form.lossRows = decisions.residency->loss->rows;
  form.leastStride = *decisions.search->leastStride;
  return Expected(module).bytes;
}

LogicalResult mlir::ds::planLeast(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                                  const LeastForm &form) {
  changeDecisions(module,
                  [&](Decisions &decisions) { decisions.search = PlanSearch{.lossRows = form.lossRows}; });
  if (failed(makeStep(module, run)))
    return failure();
  changeDecisions(module, [](Decisions &decisions) { decisions.search.reset(); });
  holdLeast(module, form.leastStride);
  return planStepLeast(module, options, run);
}
