//===- PlanToFit.cpp - Plans again where the first plan does not fit --------------===//
//
// How much memory gathers may fill, and how much attention's gradient has for its pieces, is decided by what
// is live beside them. What the packing takes beyond that is known only once it is made: where a plan does
// not fit because of it, the same buffers are put on their streams once more, with so much less. Nothing
// before that depends on memory, and nothing before that is done twice.
//
// One decision comes earlier: whether a rank keeps gradients whole until the end of a step. It is taken back
// where no plan fits with it, which does build the step's buffers again.
//
//===---------------------------------------------------------------------------===//
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/TrainingAttr.h"
#include "ds/Planner/PlanModel.h"
#include "ds/Support/Format.h"

using namespace mlir;
using namespace mlir::ds;

/// Plans that give back what the packing of the one before took too much.
static constexpr int kMostRounds = 3;

/// The device's arena of a planned module.
static ArenaOp arenaOf(ModuleOp module) { return ArenaOp::lookup(module, Space::Device); }

namespace {

/// What became of a plan.
struct Outcome {
  int64_t excess = 0; ///< bytes of the arena beyond the limit
  int64_t live = 0;   ///< most bytes that are live at once

  bool fits() const { return excess == 0; }
  /// A limit of what is live with which the next plan should fit, if the packing loses as much again.
  int64_t tighten(int64_t limit) const { return std::max<int64_t>(1, std::min(limit, live) - excess); }
};

/// Plans copies of one step.
class PlanFitter {
public:
  PlanFitter(const PipelineOptions &options, RunPipeline run) : options(options), run(run) {}

  /// Plans `step`, which is in phase `from`, with as much memory for gathers and for pieces of attention as
  /// fits.
  LogicalResult plan(ModuleOp step, Phase from);
  bool fits() const { return !isTooLarge(getArena()); }
  int64_t getArena() const { return static_cast<int64_t>(arenaOf(*best).getBytes()); }
  OwningOpRef<ModuleOp> takeBest() { return std::move(best); }

private:
  bool isTooLarge(int64_t bytes) const { return options.memory > 0 && bytes > options.memory; }
  /// Brings `step` to buffers in issue order, which no memory has changed yet.
  LogicalResult makeBuffers(ModuleOp step, Phase from);
  /// Plans them with so much for gathers and for workspaces.
  FailureOr<Outcome> planWith(int64_t forGathers, int64_t forWorkspaces);
  /// Finds workspaces with which a plan fits that holds nothing by choice. True where there are such.
  FailureOr<bool> fitWorkspaces(int64_t &forWorkspaces);

  const PipelineOptions &options;
  RunPipeline run;
  OwningOpRef<ModuleOp> buffers;
  bool areOnStreams = false;  ///< from the start, where the step came so
  OwningOpRef<ModuleOp> best; ///< the last one that fits, else the smallest
};

} // namespace

LogicalResult PlanFitter::makeBuffers(ModuleOp step, Phase from) {
  buffers = step.clone();
  areOnStreams = from == Phase::Scheduled;
  auto build = [&](OpPassManager &manager) {
    buildPipelines(manager, from, Phase::Resident, options);
    buildBufferPipeline(manager);
  };
  return success(areOnStreams || succeeded(run(build, *buffers)));
}

FailureOr<Outcome> PlanFitter::planWith(int64_t forGathers, int64_t forWorkspaces) {
  OwningOpRef<ModuleOp> copy = buffers->clone();
  PipelineOptions used = options;
  used.memory = forGathers;
  used.workspaceMemory = forWorkspaces;
  auto build = [&](OpPassManager &manager) {
    if (!areOnStreams)
      buildStreamPipeline(manager, used);
    buildPlanPipeline(manager, used);
  };
  if (failed(run(build, *copy)))
    return failure();
  auto arena = static_cast<int64_t>(arenaOf(*copy).getBytes());
  auto live = static_cast<int64_t>(arenaOf(*copy).getLowerBound());
  if (!best || !isTooLarge(arena) || arena < getArena())
    best = std::move(copy);
  return Outcome{isTooLarge(arena) ? arena - options.memory : 0, live};
}

FailureOr<bool> PlanFitter::fitWorkspaces(int64_t &forWorkspaces) {
  bool canShrink = gradientWorkspaceBytes(*best, options.attentionBytes) > 0;
  for (int round = 0; round < kMostRounds; ++round) {
    FailureOr<Outcome> outcome = planWith(/*forGathers=*/1, forWorkspaces);
    if (failed(outcome))
      return failure();
    if (outcome->fits() || !canShrink)
      return outcome->fits();
    forWorkspaces = outcome->tighten(forWorkspaces);
  }
  return false;
}

LogicalResult PlanFitter::plan(ModuleOp step, Phase from) {
  if (failed(makeBuffers(step, from)))
    return failure();
  int64_t forGathers = options.memory, forWorkspaces = options.memory;
  FailureOr<Outcome> outcome = planWith(forGathers, forWorkspaces);
  if (failed(outcome) || outcome->fits())
    return outcome;
  // Nothing kept or ahead by choice: if that does not fit either, no schedule does.
  FailureOr<bool> fits = fitWorkspaces(forWorkspaces);
  if (failed(fits) || !*fits)
    return fits;
  for (int round = 0; round < kMostRounds && !outcome->fits(); ++round) {
    forGathers = outcome->tighten(forGathers);
    outcome = planWith(forGathers, forWorkspaces);
    if (failed(outcome))
      return failure();
  }
  return success();
}

/// Makes `module` reduce in each micro-step, if that is open and would take less memory.
static bool reduceEachMicroStep(ModuleOp module) {
  FailureOr<TrainingOptions> training = readTrainingAttr(module);
  if (failed(training) || training->world == 1 || training->accumulation == 1 ||
      training->sharding.stage != 1 || training->sharding.reduceEachMicroStep)
    return false;
  Builder builder(module.getContext());
  NamedAttrList keys(module->getAttrOfType<DictionaryAttr>(DsDialect::kTrainingAttr));
  NamedAttrList zero(cast<DictionaryAttr>(keys.get("zero_optimization")));
  zero.set("reduce_each_micro_step", builder.getBoolAttr(true));
  keys.set("zero_optimization", builder.getDictionaryAttr(zero.getAttrs()));
  module->setAttr(DsDialect::kTrainingAttr, builder.getDictionaryAttr(keys.getAttrs()));
  return true;
}

LogicalResult mlir::ds::planToFit(ModuleOp module, const PipelineOptions &options, RunPipeline run) {
  FailureOr<Phase> from = phaseOf(module);
  if (failed(from))
    return failure();
  PlanFitter fitter(options, run);
  if (failed(fitter.plan(module, *from)))
    return failure();
  if (!fitter.fits() && *from == Phase::Step && reduceEachMicroStep(module)) {
    addChoice(module, "reducing gradients once per step would take " + ::ds::formatBytes(fitter.getArena()) +
                          ", the limit is " + ::ds::formatBytes(options.memory));
    if (failed(fitter.plan(module, *from)))
      return failure();
  }
  OwningOpRef<ModuleOp> best = fitter.takeBest();
  module.getBodyRegion().takeBody(best->getBodyRegion());
  module->setAttrs((*best)->getAttrDictionary());
  return success();
}
