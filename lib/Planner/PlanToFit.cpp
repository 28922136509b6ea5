//===- PlanToFit.cpp - Plans again where the first plan does not fit --------------===//
//
// Three decisions come before the plan that shows what they cost: how much memory gathers may fill, for
// packing and workspaces are not known then, how much of it cuDNN has for a gradient of attention, and
// whether a rank keeps gradients whole until the end of a step. All have a good first guess; only where that
// does not fit is the step planned again, from the same IR.
//
//===---------------------------------------------------------------------------===//
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/TrainingAttr.h"
#include "ds/Planner/PlanModel.h"
#include "ds/Support/Format.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ds;

/// Plans that look for the most memory that gathers may fill.
static constexpr int kMostHalvings = 4;

/// The arena of a planned module.
static int64_t arenaOf(ModuleOp module) {
  return static_cast<int64_t>(ArenaOp::lookup(module, Space::Device).getBytes());
}

namespace {

/// Plans copies of one step.
class PlanFitter {
public:
  PlanFitter(ModuleOp module, Phase from, const PipelineOptions &options, RunPipeline run)
      : step(module), from(from), options(options), run(run) {}

  /// Plans the step as it is, with as much memory for gathers and for pieces of attention as fits.
  LogicalResult plan();
  /// Plans it with attention's gradient by the runtime's own kernels, where cuDNN would have been asked.
  LogicalResult planWithoutCudnn();
  bool fits() const { return options.memory == 0 || getArena() <= options.memory; }
  int64_t getArena() const { return arenaOf(*best); }
  OwningOpRef<ModuleOp> takeBest() { return std::move(best); }

private:
  /// Plans with so much for the schedule. True where that fits.
  FailureOr<bool> planWith(int64_t scheduledMemory);
  /// Finds the largest pieces of attention with which a plan fits that holds nothing by choice. True where
  /// there are such.
  FailureOr<bool> cutAttention();
  /// Finds the most memory that gathers may fill, once a plan fits that holds nothing by choice.
  LogicalResult fillWithGathers();

  ModuleOp step;
  Phase from; ///< in which it is
  const PipelineOptions &options;
  RunPipeline run;
  uint64_t attentionBytes = 0;
  OwningOpRef<ModuleOp> best; ///< the last one that fits, else the smallest
};

} // namespace

FailureOr<bool> PlanFitter::planWith(int64_t scheduledMemory) {
  OwningOpRef<ModuleOp> copy = step.clone();
  PipelineOptions used = options;
  used.memory = scheduledMemory;
  used.attentionBytes = attentionBytes;
  auto build = [&](OpPassManager &manager) { buildPipelines(manager, from, Phase::Planned, used); };
  if (failed(run(build, *copy)))
    return failure();
  int64_t arena = arenaOf(*copy);
  bool fits = options.memory == 0 || arena <= options.memory;
  if (!best || fits || arena < getArena())
    best = std::move(copy);
  return fits;
}

FailureOr<bool> PlanFitter::cutAttention() {
  uint64_t least = gradientWorkspaceBytes(*best, 1), usual = gradientWorkspaceBytes(*best, attentionBytes);
  if (least == usual)
    return false;
  attentionBytes = least;
  FailureOr<bool> done = planWith(1);
  // Powers of two between what fits and what does not.
  unsigned low = llvm::Log2_64(least), high = llvm::Log2_64_Ceil(usual);
  while (succeeded(done) && *done && high - low > 1) {
    unsigned middle = low + (high - low) / 2;
    attentionBytes = uint64_t(1) << middle;
    FailureOr<bool> fits = planWith(1);
    if (failed(fits))
      return failure();
    (*fits ? low : high) = middle;
  }
  attentionBytes = std::max(least, uint64_t(1) << low);
  return done;
}

LogicalResult PlanFitter::plan() {
  attentionBytes = options.attentionBytes;
  FailureOr<bool> done = planWith(options.memory);
  if (failed(done) || *done)
    return done;
  // Nothing kept or ahead by choice: if that does not fit either, no schedule does.
  done = planWith(1);
  if (succeeded(done) && !*done)
    done = cutAttention();
  if (failed(done) || !*done)
    return done;
  return fillWithGathers();
}

LogicalResult PlanFitter::planWithoutCudnn() {
  if (gradientWorkspaceBytes(*best, 1) == 0)
    return success();
  attentionBytes = 0;
  FailureOr<bool> done = planWith(1);
  if (failed(done) || !*done)
    return done;
  return fillWithGathers();
}

LogicalResult PlanFitter::fillWithGathers() {
  // Packing changes with what it packs, and workspaces come later: how much less the schedule may take is
  // found by halving.
  int64_t most = options.memory, least = std::max<int64_t>(1, 2 * getArena() - most);
  for (int step = 0; step < kMostHalvings; ++step) {
    int64_t middle = least + (most - least) / 2;
    FailureOr<bool> done = planWith(middle);
    if (failed(done))
      return failure();
    (*done ? least : most) = middle;
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
  PlanFitter fitter(module, *from, options, run);
  if (failed(fitter.plan()))
    return failure();
  if (!fitter.fits() && *from == Phase::Step && reduceEachMicroStep(module)) {
    addChoice(module, "reducing gradients once per step would take " + ::ds::formatBytes(fitter.getArena()) +
                          ", the limit is " + ::ds::formatBytes(options.memory));
    if (failed(fitter.plan()))
      return failure();
  }
  if (!fitter.fits() && failed(fitter.planWithoutCudnn()))
    return failure();
  OwningOpRef<ModuleOp> best = fitter.takeBest();
  module.getBodyRegion().takeBody(best->getBodyRegion());
  module->setAttrs((*best)->getAttrDictionary());
  return success();
}
