//===- PlanLeast.cpp - Plans that hold as little as can be -------------------------===//
//
// Whether a size of a model fits, such a plan mostly says: it is made without a search for what to hold, and
// its peak grows with the size on a line. What takes least, the whole loss or a split one, and which groups
// made again, is the same for all sizes, and is found once, in phase resident.
//
//===---------------------------------------------------------------------------===//
#include "ds/Passes/Phases.h"
#include "ds/Passes/Residency.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/TrainingAttr.h"
#include "ds/Planner/PlanModel.h"

using namespace mlir;
using namespace mlir::ds;

/// Asks for a loss in one piece.
static void keepLossWhole(ModuleOp module) {
  Builder builder(module.getContext());
  NamedAttrList keys;
  if (auto given = module->getAttrOfType<DictionaryAttr>(DsDialect::kTrainingAttr))
    keys.append(given.getValue());
  keys.set("loss_chunks", builder.getI64IntegerAttr(1));
  module->setAttr(DsDialect::kTrainingAttr, builder.getDictionaryAttr(keys.getAttrs()));
}

/// Model to step.
static LogicalResult makeStep(ModuleOp module, RunPipeline run) {
  return run([](OpPassManager &manager) { buildStepPipeline(manager); }, module);
}

/// Asks for as little to be held of `step` as can be.
static void holdLeast(ModuleOp step, int64_t leastHeld) {
  step->setAttr(kLeastHeldAttr, Builder(step.getContext()).getI64IntegerAttr(leastHeld));
}

namespace {
/// What is expected where least is held.
struct Least {
  int64_t bytes = 0, held = -1; ///< `held` as kLeastHeldAttr has it
};
} // namespace

/// Of `step`, which is brought to phase resident.
static FailureOr<Least> expect(ModuleOp step, const PipelineOptions &options, RunPipeline run) {
  holdLeast(step, /*leastHeld=*/-1);
  if (failed(
          run([&](OpPassManager &manager) { buildPipelines(manager, Phase::Step, Phase::Resident, options); },
              step)))
    return failure();
  auto residency = step->getAttrOfType<DictionaryAttr>(kResidencyAttr);
  return Least{residency.getAs<IntegerAttr>("expected_bytes").getInt(),
               step->getAttrOfType<IntegerAttr>(kLeastHeldAttr).getInt()};
}

FailureOr<int64_t> mlir::ds::expectLeast(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                                         LeastForm &form) {
  // Of near equals the split one: what chunks save at the head of the loss no estimate sees to the byte.
  constexpr double kNear = 0.99;
  FailureOr<TrainingOptions> training = readTrainingAttr(module);
  if (failed(training))
    return failure();
  OwningOpRef<ModuleOp> whole = module.clone();
  if (failed(makeStep(module, run)))
    return failure();
  const bool isOpen = training->lossChunks == 0 && module->hasAttr(kLossChunksAttr);
  FailureOr<Least> least = expect(module, options, run);
  if (failed(least))
    return failure();
  form = {};
  if (isOpen) {
    keepLossWhole(*whole);
    FailureOr<Least> ofWhole = failure();
    if (failed(makeStep(*whole, run)) || failed(ofWhole = expect(*whole, options, run)))
      return failure();
    form.isWhole = double(ofWhole->bytes) < kNear * double(least->bytes);
    if (form.isWhole)
      least = ofWhole;
  }
  form.leastHeld = least->held;
  return least->bytes;
}

LogicalResult mlir::ds::planLeast(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                                  const LeastForm &form) {
  if (form.isWhole)
    keepLossWhole(module);
  if (failed(makeStep(module, run)))
    return failure();
  holdLeast(module, form.leastHeld);
  return planStepLeast(module, options, run);
}
