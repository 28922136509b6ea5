//===- PlanToFit.cpp - Plans again where the first plan does not fit --------------===//
//
// What is kept of the forward is chosen before there are buffers, by an estimate of what is live (the passes
// of phase resident). The plan that is made of it shows by how much the estimate was off. Where it does not
// fit because of that, or leaves much of the memory free while time was given up for it, what is kept is
// chosen once more with that much less or more, and buffers are made again; at last as little is kept as can
// be.
//
// How much memory gathers may fill, and how much attention's gradient has for its pieces, is decided by what
// is live beside them. What the packing takes beyond that is known only once it is made: where a plan does
// not fit because of it, the same buffers are put on their streams once more, with so much less. That can
// help only where what the buffers need fits: where it does not, the first plan is the answer.
//
// What is kept is chosen with a place for what cuDNN needs for attention's gradient. Where the packing leaves
// none, other kernels compute it, which take many times as long: then what is kept is chosen again with so
// much less, too.
//
// One decision comes earlier: whether a rank keeps gradients whole until the end of a step. It is taken back
// where no plan fits with it.
//
// What is copied to the host costs time by where its copies stand, of which the choice knows an estimate. So
// where activations may go there, two narrower choices are planned as well, and the simulated steps decide:
// a plan with every mechanism is never slower than one with recomputation alone, or with the host alone.
//
//===---------------------------------------------------------------------------===//
#include "PlanBuffers.h"
#include "StepSimulation.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/LibraryTable.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/Residency.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/TrainingAttr.h"
#include "ds/Planner/PlanModel.h"
#include "ds/Support/Format.h"

#include <limits>
#include <utility>

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

/// Plans that give back what the packing of the one before took too much.
static constexpr int kMostRounds = 3;

/// A share of the limit that is not left free where time was given up for memory.
static constexpr double kMuchLeft = 0.03;
/// Times the memory that is live by need in a plan that none of its kind comes down to the memory from. What
/// is needed is the same whatever is held by choice, but for the order of some commands behind reductions.
static constexpr double kOutOfReach = 1.02;
/// A share by which peaks differ that are the same.
static constexpr double kSame = 1e-3;
/// A share of the step that is worth another choice.
static constexpr double kWorthTime = 0.002;

/// The device's arena of a planned module.
static ArenaOp arenaOf(ModuleOp module) { return ArenaOp::lookup(module, Space::Device); }

namespace {

/// Gradients of attention for which cuDNN has no workspace.
struct Lack {
  int64_t calls = 0;
  int64_t bytes = 0; ///< that one of them is short of, at most
};

/// What became of a plan.
struct Outcome {
  int64_t excess = 0; ///< bytes of the arena beyond the limit
  int64_t live = 0;   ///< most bytes that are live at once
  Lack lack = {};     ///< of what cuDNN needs for attention

  bool fits() const { return excess == 0; }
  /// A limit of what is live with which the next plan should fit, if the packing loses as much again.
  int64_t tighten(int64_t limit) const { return std::max<int64_t>(1, std::min(limit, live) - excess); }
};

/// What was expected when it was chosen what to keep of the forward.
struct Expected {
  explicit Expected(ModuleOp module) {
    auto residency = module->getAttrOfType<DictionaryAttr>(kResidencyAttr);
    if (!residency)
      return;
    bytes = residency.getAs<IntegerAttr>("expected_bytes").getInt();
    hasChoice = residency.getAs<BoolAttr>("fits").getValue();
    slowCalls = residency.getAs<IntegerAttr>("attention_in_f32").getInt();
    double more = 0;
    for (auto group : residency.getAs<ArrayAttr>("again").getAsRange<DictionaryAttr>())
      more += std::max(0.0, group.getAs<FloatAttr>("more_seconds").getValueAsDouble());
    hasPaid = more > kWorthTime * residency.getAs<FloatAttr>("expected_seconds").getValueAsDouble();
  }

  int64_t bytes = 0;
  bool hasChoice = false; ///< less could have been kept; it is not known to save memory
  bool hasPaid = false;   ///< time was given up for memory
  int64_t slowCalls = 0;  ///< gradients of attention that are to do without cuDNN
};

/// Plans copies of one step.
class PlanFitter {
public:
  /// `resident`, if there is one: what is to be planned first, in phase resident.
  PlanFitter(const PipelineOptions &options, RunPipeline run, OwningOpRef<ModuleOp> resident)
      : options(options), run(run), resident(std::move(resident)) {}

  /// Plans `step`, which is in phase `from`, with as much memory for gathers and for pieces of attention as
  /// fits.
  LogicalResult plan(ModuleOp step, Phase from);
  /// The same of a plan that holds as little as can be.
  LogicalResult planLeast(ModuleOp step, Phase from);
  bool fits() const { return !isTooLarge(getArena()); }
  int64_t getArena() const { return static_cast<int64_t>(arenaOf(*best).getBytes()); }
  OwningOpRef<ModuleOp> takeBest() { return std::move(best); }

private:
  bool isTooLarge(int64_t bytes) const { return options.memory > 0 && bytes > options.memory; }
  /// Whether what the best plan's buffers need is beyond the memory, whatever is held by choice beside them.
  bool isOutOfReach() const { return double(findLeastLive(*best)) > kOutOfReach * double(options.memory); }
  /// Brings `step` to what one rank does, of which no memory has decided anything yet.
  LogicalResult makeSharded(ModuleOp step, Phase from);
  /// Brings that to buffers in issue order, with so much for what is kept of the forward.
  LogicalResult makeBuffers(int64_t forResident);
  /// Makes buffers, more than once where the first choice of what to keep was off, and plans them.
  FailureOr<Outcome> planResident();
  /// Plans them with so much for gathers and for workspaces.
  FailureOr<Outcome> planWith(int64_t forGathers, int64_t forWorkspaces);
  /// Finds workspaces with which a plan fits that holds nothing by choice, from what became of such a plan
  /// with `forWorkspaces`. True where there are such.
  FailureOr<bool> fitWorkspaces(Outcome outcome, int64_t &forWorkspaces);

  const PipelineOptions &options;
  RunPipeline run;
  OwningOpRef<ModuleOp> resident; ///< until it is planned
  OwningOpRef<ModuleOp> sharded, buffers;
  Phase reached = Phase::Model; ///< of `sharded`: a later one where the step came so
  OwningOpRef<ModuleOp> best;   ///< of those that fit with the fewest lacks the last, else the smallest
  int64_t bestLacks = 0;
};

} // namespace

/// What `planned` lacks within `memory`.
static Lack findLack(ModuleOp planned, int64_t memory) {
  Lack lack;
  for (func::FuncOp func : getSegments(planned)) {
    std::vector<int64_t> live;
    for (auto [index, command] : llvm::enumerate(getComputeCommands(func))) {
      auto call = dyn_cast<CallOp>(command);
      std::optional<rt::AttentionPieces> least;
      if (!call || !isCallOf(call, rt::LibraryFn::AttentionBackward) || !lacksWorkspace(call) ||
          !(least = cudnnPieces(call, 1)))
        continue;
      if (live.empty())
        live = getLiveBytes(func, {});
      ++lack.calls;
      lack.bytes = std::max(lack.bytes, int64_t(least->workspaceBytes) - (memory - live[index]));
    }
  }
  return lack;
}

LogicalResult PlanFitter::makeSharded(ModuleOp step, Phase from) {
  sharded = step.clone();
  reached = std::max(from, Phase::Sharded);
  return run([&](OpPassManager &manager) { buildPipelines(manager, from, Phase::Sharded, options); },
             *sharded);
}

LogicalResult PlanFitter::makeBuffers(int64_t forResident) {
  const bool isChosen = bool(resident);
  buffers = isChosen ? std::move(resident) : OwningOpRef<ModuleOp>(sharded->clone());
  PipelineOptions used = options;
  used.residentMemory = forResident;
  auto build = [&](OpPassManager &manager) {
    if (!isChosen)
      buildPipelines(manager, reached, Phase::Resident, used);
    buildBufferPipeline(manager, options);
  };
  return success(reached == Phase::Scheduled || succeeded(run(build, *buffers)));
}

FailureOr<Outcome> PlanFitter::planWith(int64_t forGathers, int64_t forWorkspaces) {
  OwningOpRef<ModuleOp> copy = buffers->clone();
  PipelineOptions used = options;
  used.memory = forGathers;
  used.workspaceMemory = forWorkspaces;
  auto build = [&](OpPassManager &manager) {
    if (reached != Phase::Scheduled)
      buildStreamPipeline(manager, used);
    buildPlanPipeline(manager, used);
  };
  if (failed(run(build, *copy)))
    return failure();
  auto arena = static_cast<int64_t>(arenaOf(*copy).getBytes());
  auto live = static_cast<int64_t>(arenaOf(*copy).getLowerBound());
  const Lack lack = options.memory > 0 ? findLack(*copy, options.memory) : Lack{};
  if (!best || (isTooLarge(arena) ? arena < getArena() : !fits() || lack.calls <= bestLacks)) {
    best = std::move(copy);
    bestLacks = lack.calls;
  }
  return Outcome{isTooLarge(arena) ? arena - options.memory : 0, live, lack};
}

FailureOr<bool> PlanFitter::fitWorkspaces(Outcome outcome, int64_t &forWorkspaces) {
  const bool canShrink = gradientWorkspaceBytes(*best, options.attentionBytes) > 0;
  int64_t last = std::numeric_limits<int64_t>::max();
  // Where less for them does not lower what is live, they are not at the peak.
  for (int round = 1; round < kMostRounds && canShrink && !outcome.fits() && outcome.live < last; ++round) {
    last = outcome.live;
    forWorkspaces = outcome.tighten(forWorkspaces);
    FailureOr<Outcome> next = planWith(/*forGathers=*/1, forWorkspaces);
    if (failed(next))
      return failure();
    outcome = *next;
  }
  return outcome.fits();
}

FailureOr<Outcome> PlanFitter::planResident() {
  int64_t forResident = options.memory, lastPlanned = 0;
  for (int round = 0;; ++round) {
    if (failed(makeBuffers(forResident)))
      return failure();
    const Expected expected(*buffers);
    FailureOr<Outcome> outcome = planWith(options.memory, options.memory);
    if (failed(outcome) || reached >= Phase::Resident || options.memory == 0)
      return outcome;
    if (fits() && !outcome->fits()) // what more memory was tried with: the plan before stays
      return Outcome{};
    if (outcome->fits() && outcome->lack.calls > expected.slowCalls && forResident > 1) {
      const bool isLast = round + 1 >= kMostRounds || !expected.hasChoice;
      forResident = isLast ? 1 : std::max<int64_t>(1, forResident - (round + 1) * outcome->lack.bytes);
      continue;
    }
    const int64_t planned = outcome->excess > 0 ? options.memory + outcome->excess : getArena();
    const int64_t off = planned - expected.bytes, left = options.memory - planned;
    bool isMuchLeft = double(left) > kMuchLeft * double(options.memory);
    if (outcome->fits() ? round > 0 || !expected.hasPaid || !isMuchLeft : !expected.hasChoice)
      return outcome;
    // Off by as much again; but the last choice is the least that there is. Where keeping less changed
    // nothing, the peak is elsewhere, and only that may help.
    const bool isElsewhere =
        outcome->excess > 0 && std::abs(double(planned - lastPlanned)) < kSame * double(planned);
    const bool isLast = round + 1 >= kMostRounds || isElsewhere;
    lastPlanned = planned;
    forResident = isLast ? 1 : std::max<int64_t>(1, options.memory - off);
  }
}

LogicalResult PlanFitter::plan(ModuleOp step, Phase from) {
  if (failed(makeSharded(step, from)))
    return failure();
  int64_t forGathers = options.memory, forWorkspaces = options.memory;
  FailureOr<Outcome> outcome = planResident();
  if (failed(outcome) || outcome->fits() || isOutOfReach())
    return outcome;
  // Nothing kept or ahead by choice: if that does not fit either, no schedule does.
  FailureOr<Outcome> least = planWith(/*forGathers=*/1, forWorkspaces);
  if (failed(least))
    return failure();
  FailureOr<bool> fits = fitWorkspaces(*least, forWorkspaces);
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

LogicalResult PlanFitter::planLeast(ModuleOp step, Phase from) {
  if (failed(makeSharded(step, from)) || failed(makeBuffers(/*forResident=*/1)))
    return failure();
  int64_t forWorkspaces = options.memory;
  FailureOr<Outcome> outcome = planWith(/*forGathers=*/1, forWorkspaces);
  // Of these buffers less cannot be live.
  if (failed(outcome) || outcome->fits() || findLeastLive(*best) > options.memory)
    return outcome;
  return fitWorkspaces(*outcome, forWorkspaces);
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

/// Plans `module` by one choice of what is kept, as `plan` does; what was left open of the step may be taken
/// back.
static LogicalResult planBy(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                            LogicalResult (PlanFitter::*plan)(ModuleOp, Phase),
                            OwningOpRef<ModuleOp> resident = {}) {
  FailureOr<Phase> from = phaseOf(module);
  if (failed(from))
    return failure();
  PlanFitter fitter(options, run, std::move(resident));
  if (failed((fitter.*plan)(module, *from)))
    return failure();
  if (!fitter.fits() && *from == Phase::Step && reduceEachMicroStep(module)) {
    addChoice(module, "reducing gradients once per step would take " + ::ds::formatBytes(fitter.getArena()) +
                          ", the limit is " + ::ds::formatBytes(options.memory));
    if (failed((fitter.*plan)(module, *from)))
      return failure();
  }
  OwningOpRef<ModuleOp> best = fitter.takeBest();
  module.getBodyRegion().takeBody(best->getBodyRegion());
  module->setAttrs((*best)->getAttrDictionary());
  return success();
}

//===----------------------------------------------------------------------===//
// Narrower choices
//===----------------------------------------------------------------------===//

namespace {
/// A choice of what is kept with fewer mechanisms than the configuration leaves open.
struct Narrowing {
  StringRef name;
  bool usesHost, repeatsCalls;
};
constexpr Narrowing kNarrowings[] = {{"nothing on the host", false, true},
                                     {"no products made again", true, false}};
} // namespace

/// Whether it is open in `module`, which is not planned yet, what of its activations goes to the host.
static bool mayMoveActivations(ModuleOp module, Phase phase) {
  FailureOr<TrainingOptions> training = readTrainingAttr(module);
  return phase < Phase::Resident && succeeded(training) &&
         training->offload.activations == OffloadOptions::Activations::Chosen;
}

/// Whether the plan has anything on the host, or made again for time.
static bool hasGivenUp(ModuleOp planned) {
  auto residency = planned->getAttrOfType<DictionaryAttr>(kResidencyAttr);
  return residency && (residency.getAs<IntegerAttr>("host_values").getInt() > 0 || Expected(planned).hasPaid);
}

/// Leaves activations on the device.
static void keepActivations(ModuleOp module) {
  Builder builder(module.getContext());
  NamedAttrList keys(module->getAttrOfType<DictionaryAttr>(DsDialect::kTrainingAttr));
  NamedAttrList offload(cast<DictionaryAttr>(keys.get("offload")));
  offload.set("activations", builder.getStringAttr("keep"));
  keys.set("offload", builder.getDictionaryAttr(offload.getAttrs()));
  module->setAttr(DsDialect::kTrainingAttr, builder.getDictionaryAttr(keys.getAttrs()));
}

/// Plans `step` by narrower choices as well, and leaves in `module`, which is its plan by all mechanisms, the
/// fastest that fits.
static LogicalResult takeFastest(ModuleOp module, ModuleOp step, const PipelineOptions &options,
                                 RunPipeline run) {
  FailureOr<::ds::cost::Rates> rates = readRates(module, options.cluster);
  if (failed(rates))
    return failure();
  const Attribute training = module->getAttr(DsDialect::kTrainingAttr);
  auto judge = [&](ModuleOp planned) { // what does not fit comes last, the smallest first
    const auto bytes = static_cast<int64_t>(arenaOf(planned).getBytes());
    return std::pair(std::max<int64_t>(0, bytes - options.memory),
                     predictStep(planned, *rates, 0).stepSeconds.value_or(0));
  };
  auto best = judge(module);
  for (const Narrowing &narrowing : kNarrowings) {
    OwningOpRef<ModuleOp> other = step.clone();
    if (!narrowing.usesHost)
      keepActivations(*other);
    PipelineOptions used = options;
    used.repeatsCalls = narrowing.repeatsCalls;
    if (failed(planBy(*other, used, run, &PlanFitter::plan)))
      return failure();
    auto judged = judge(*other);
    if (judged >= best)
      continue;
    best = judged;
    module.getBodyRegion().takeBody((*other)->getRegion(0));
    module->setAttrs((*other)->getAttrDictionary());
    module->setAttr(DsDialect::kTrainingAttr, training);
    addChoice(
        module,
        ("of what forward may keep, make again or have on the host, a narrower choice is the fastest: " +
         Twine(narrowing.name))
            .str());
  }
  return success();
}

LogicalResult mlir::ds::planToFit(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                                  OwningOpRef<ModuleOp> resident) {
  FailureOr<Phase> from = phaseOf(module);
  if (failed(from))
    return failure();
  const bool isOpen = options.memory > 0 && mayMoveActivations(module, *from);
  OwningOpRef<ModuleOp> step = isOpen ? module.clone() : ModuleOp();
  if (failed(planBy(module, options, run, &PlanFitter::plan, std::move(resident))))
    return failure();
  return isOpen && hasGivenUp(module) ? takeFastest(module, *step, options, run) : success();
}

LogicalResult mlir::ds::planStepLeast(ModuleOp step, const PipelineOptions &options, RunPipeline run) {
  return planBy(step, options, run, &PlanFitter::planLeast);
}
