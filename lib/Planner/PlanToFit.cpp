//===- PlanToFit.cpp - From a step to a plan that fits, by the choices left open ---===//
//
// A step is planned until it fits (PlanFitter.h). Two decisions stand around that.
//
// One comes earlier: whether a rank keeps gradients whole until the end of a step. It is taken back where no
// plan fits with it, and where the plan that does gives up time for their place and is the slower for it.
//
// What is copied to the host costs time by where its copies stand, of which the choice knows an estimate. So
// where activations may go there, two narrower choices are planned as well, and the simulated steps decide:
// a plan with every mechanism is never slower than one with recomputation alone, or with the host alone.
//
//===---------------------------------------------------------------------------===//
#include "PlanFitter.h"
#include "StepSimulation.h"
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

/// Makes `module` reduce in each micro-step, if that is open and would take less memory.
static bool reduceEachMicroStep(ModuleOp module) {
  TrainingOptions training = getTraining(module);
  if (MeshOp::countSampleRanks(module) == 1 || training.accumulation == 1 || training.sharding.stage != 1 ||
      training.sharding.reduceEachMicroStep)
    return false;
  training.sharding.reduceEachMicroStep = true;
  return succeeded(setTraining(module, training));
}

/// Whether the plan has anything on the host, or recomputed for time.
static bool hasGivenUp(ModuleOp planned) {
  const std::optional<Residency> residency = getDecisions(planned).residency;
  return residency && (residency->hostValues > 0 || Expected(planned).hasPaid);
}

/// Puts the plan `from` in the place of `to`.
static void replace(ModuleOp to, OwningOpRef<ModuleOp> from) {
  to.getBodyRegion().takeBody(from->getBodyRegion());
  to->setAttrs((*from)->getAttrDictionary());
}

/// Plans `step`, which reduces gradients in each micro-step, and leaves in `module`, which is the plan that
/// reduces them once and fits, the faster.
static LogicalResult takeFasterReduction(ModuleOp module, OwningOpRef<ModuleOp> step,
                                         const PipelineOptions &options, RunPipeline run) {
  PlanFitter fitter(limitOf(module), options, run, /*resident=*/nullptr);
  if (failed(fitter.plan(*step, Phase::Step)))
    return failure();
  const bool fits = fitter.fits();
  OwningOpRef<ModuleOp> each = fitter.takeBest();
  FailureOr<double> once = predictSeconds(module);
  FailureOr<double> inEach = predictSeconds(*each);
  if (failed(once) || failed(inEach))
    return failure();
  if (!fits || *inEach >= *once)
    return success();
  replace(module, std::move(each));
  addChoice(module, {.kind = ChoiceOf::OnceSlower, .percent = 100 * (*once / *inEach - 1)});
  return success();
}

/// Plans `module` by one choice of what is kept, as `plan` does; what was left open of the step may be taken
/// back.
static LogicalResult planBy(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                            LogicalResult (PlanFitter::*plan)(ModuleOp, Phase),
                            OwningOpRef<ModuleOp> resident = {}) {
  FailureOr<Phase> from = phaseOf(module);
  if (failed(from))
    return failure();
  const int64_t memory = limitOf(module);
  PlanFitter fitter(memory, options, run, std::move(resident));
  if (failed((fitter.*plan)(module, *from)))
    return failure();
  const bool isOpen = *from == Phase::Step && reduceEachMicroStep(module); // not in the plan that is made
  const bool isTooLarge = isOpen && !fitter.fits();
  if (isTooLarge) {
    addChoice(module, {.kind = ChoiceOf::OnceTooLarge, .bytes = fitter.getArena(), .limitBytes = memory});
    if (failed((fitter.*plan)(module, *from)))
      return failure();
  }
  OwningOpRef<ModuleOp> best = fitter.takeBest();
  const bool isPlanOfMost = memory > 0 && plan == &PlanFitter::plan;
  OwningOpRef<ModuleOp> each;
  if (isOpen && !isTooLarge && isPlanOfMost && hasGivenUp(*best))
    each = module.clone();
  replace(module, std::move(best));
  return each ? takeFasterReduction(module, std::move(each), options, run) : success();
}

//===----------------------------------------------------------------------===//
// Narrower choices
//===----------------------------------------------------------------------===//

namespace {
/// A choice of what is kept with fewer mechanisms than the configuration leaves open.
struct Narrowing {
  ChoiceOf kind;
  bool usesHost, recomputesCalls;
};
constexpr Narrowing kNarrowings[] = {{ChoiceOf::NothingOnHost, false, true},
                                     {ChoiceOf::NoProductsRecomputed, true, false}};
} // namespace

/// Whether it is open in `module`, which is not planned yet, what of its activations goes to the host.
static bool mayMoveActivations(ModuleOp module, Phase phase) {
  return phase < Phase::Resident &&
         getTraining(module).offload.activations == OffloadOptions::Activations::Chosen;
}

/// Says of `module` what of its activations goes to the host.
static LogicalResult setActivations(ModuleOp module, OffloadOptions::Activations activations) {
  TrainingOptions training = getTraining(module);
  training.offload.activations = activations;
  return setTraining(module, training);
}

/// Plans `step` by narrower choices as well, and leaves in `module`, which is its plan by all mechanisms, the
/// fastest that fits.
static LogicalResult takeFastest(ModuleOp module, ModuleOp step, const PipelineOptions &options,
                                 RunPipeline run) {
  using Judged = std::pair<int64_t, double>; // what does not fit comes last, the smallest first
  auto judge = [&](ModuleOp planned) -> FailureOr<Judged> {
    FailureOr<double> seconds = predictSeconds(planned);
    if (failed(seconds))
      return failure();
    return Judged(std::max<int64_t>(0, arenaBytes(planned) - limitOf(planned)), *seconds);
  };
  FailureOr<Judged> best = judge(module);
  if (failed(best))
    return failure();
  for (const Narrowing &narrowing : kNarrowings) {
    OwningOpRef<ModuleOp> other = step.clone();
    PipelineOptions used = options;
    used.recomputesCalls = narrowing.recomputesCalls;
    if (!narrowing.usesHost && failed(setActivations(*other, OffloadOptions::Activations::Kept)))
      return failure();
    if (failed(planBy(*other, used, run, &PlanFitter::plan)))
      return failure();
    FailureOr<Judged> judged = judge(*other);
    if (failed(judged))
      return failure();
    if (*judged >= *best)
      continue;
    best = judged;
    replace(module, std::move(other));
    if (failed(setActivations(module, OffloadOptions::Activations::Chosen))) // as it was asked
      return failure();
    addChoice(module, {.kind = narrowing.kind});
  }
  return success();
}

LogicalResult mlir::ds::planToFit(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                                  OwningOpRef<ModuleOp> resident) {
  FailureOr<Phase> from = phaseOf(module);
  if (failed(from))
    return failure();
  const bool isOpen = limitOf(module) > 0 && mayMoveActivations(module, *from);
  OwningOpRef<ModuleOp> step = isOpen ? module.clone() : ModuleOp();
  if (failed(planBy(module, options, run, &PlanFitter::plan, std::move(resident))))
    return failure();
  return isOpen && hasGivenUp(module) ? takeFastest(module, *step, options, run) : success();
}

LogicalResult mlir::ds::planStepLeast(ModuleOp step, const PipelineOptions &options, RunPipeline run) {
  return planBy(step, options, run, &PlanFitter::planLeast);
}
