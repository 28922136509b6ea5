//===- StepPlanner.cpp - One step: chosen, then placed -------------------------------===//
#include "StepPlanner.h"

#include "PlanBuffers.h"
#include "StepSimulation.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/LateUpdates.h"
#include "ds/Passes/LibraryTable.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

/// Times that a step is placed.
static constexpr int kMostPlaces = 3;
/// A share of the limit that is not left free where time was given up for memory.
static constexpr double kMuchLeft = 0.03;
/// A share of the step's time that is worth another segment, and memory of the host.
static constexpr double kWorthLate = 0.01;
/// Times the memory that is live by need in a plan that none of its kind comes down to the memory from. What
/// is needed is the same whatever is held by choice, but for the order of some commands behind reductions.
static constexpr double kOutOfReach = 1.02;
/// Times the memory that is expected of a choice of which no plan fits. Where nothing fits, what is placed
/// has taken up to 9.4 % less than what was chosen (GPT-2 124M, 1856 samples of 1024 tokens in 79.4 GiB).
static constexpr double kBeyondHope = 1.15;

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

bool PlacedStep::has(ChoiceOf kind) const {
  return llvm::any_of(choices, [&](const OpenChoice &choice) { return choice.kind == kind; });
}

/// Notes what `placed` lacks within `memory`.
static void findLack(PlacedStep &placed, int64_t memory) {
  for (func::FuncOp func : getSegments(*placed.planned)) {
    std::vector<int64_t> live;
    for (auto [index, command] : llvm::enumerate(getComputeCommands(func))) {
      auto call = dyn_cast<CallOp>(command);
      std::optional<rt::AttentionPieces> least;
      if (!call || !lacksWorkspace(call) || !(least = cudnnPieces(call, 1)))
        continue;
      if (live.empty())
        live = getLiveBytes(func, {});
      ++placed.slowCalls;
      placed.lackBytes = std::max(placed.lackBytes, int64_t(least->workspaceBytes) - (memory - live[index]));
    }
  }
}

FailureOr<PlacedStep> StepPlanner::place(const ChosenStep &chosen, const PlacementRequest &request,
                                         bool late) {
  ++places;
  PlacedStep placed;
  placed.form = chosen.form;
  placed.choices = chosen.choices;
  placed.planned = chosen.resident.get().clone();
  placed.request = request;
  if (options.lateUpdates == LateUpdates::Chosen)
    placed.resident = chosen.resident.get().clone();
  PipelineOptions with = options;
  if (late)
    with.lateUpdates = LateUpdates::Always;
  const Phase reached = std::max(from, Phase::Resident);
  auto build = [&](OpPassManager &manager) {
    buildPipelines(manager, reached, Phase::Planned, with, {.placement = request});
  };
  if (failed(run(build, *placed.planned)))
    return failure();
  ArenaOp arena = ArenaOp::lookup(*placed.planned, Space::Device);
  placed.arenaBytes = static_cast<int64_t>(arena.getBytes());
  placed.liveBytes = static_cast<int64_t>(arena.getLowerBound());
  if (memory)
    findLack(placed, *memory);
  return placed;
}

/// Whether `a` is the faster that fits, else the smaller. Other kernels for attention's gradient take many
/// times as long.
FailureOr<bool> StepPlanner::isBetter(const PlacedStep &a, const PlacedStep &b) const {
  if (fits(a) != fits(b))
    return fits(a);
  if (!fits(a))
    return a.arenaBytes < b.arenaBytes;
  FailureOr<double> ofA = predictSeconds(*a.planned), ofB = predictSeconds(*b.planned);
  if (failed(ofA) || failed(ofB))
    return failure();
  return *ofA < *ofB;
}

/// Places `chosen`, and puts it in the place of `best` where it is better.
LogicalResult StepPlanner::tryPlace(const ChosenStep &chosen, const PlacementRequest &request,
                                    PlacedStep &best) {
  FailureOr<PlacedStep> placed = place(chosen, request);
  if (failed(placed))
    return failure();
  FailureOr<bool> better = isBetter(*placed, best);
  if (failed(better))
    return failure();
  if (*better)
    best = std::move(*placed);
  return success();
}

/// Bytes as a limit: as little as can be where there are none.
static MemoryLimit limitOf(int64_t bytes) { return MemoryLimit(std::max<int64_t>(1, bytes)); }

/// Chooses once more within `limit`, how losses are made as well, and places that.
LogicalResult StepPlanner::chooseAnew(const ChosenStep &chosen, MemoryLimit limit,
                                      const PlacementRequest &request, PlacedStep &best) {
  FailureOr<ChosenStep> next = chooseLoss(chosen.form.reducesInEach, {.memory = limit});
  if (failed(next))
    return failure();
  next->choices = chosen.choices;
  return tryPlace(*next, request, best);
}

//===----------------------------------------------------------------------===//
// Plans that fit
//===----------------------------------------------------------------------===//

/// A limit with which a plan should fit, if the packing loses as much again as in `placed`.
static MemoryLimit tighten(const PlacedStep &placed, int64_t memory) {
  return limitOf(std::min(memory, placed.liveBytes) - (placed.arenaBytes - memory));
}

/// As little is held as can be, of what is chosen and then of what runs ahead, unless what is needed whatever
/// is held is beyond the memory.
LogicalResult StepPlanner::shrink(const ChosenStep &chosen, PlacedStep &best) {
  std::optional<ChosenStep> least;
  while (places < kMostPlaces && !fits(best)) {
    if (double(findLeastLive(*best.planned)) > kOutOfReach * double(*memory))
      return success();
    const bool isLast = places + 1 == kMostPlaces;
    if (isLast && from < Phase::Resident && chosen.residency.fits) {
      FailureOr<ChosenStep> next = choose(best.form, {.memory = MemoryWord::Least});
      if (failed(next))
        return failure();
      least = std::move(*next);
      least->choices = best.choices;
    }
    PlacementRequest request{.streams = MemoryWord::Least};
    if (gradientWorkspaceBytes(*best.planned, getMachine(*best.planned).attentionBytes) > 0)
      request.workspaces = tighten(best, *memory);
    if (failed(tryPlace(least ? *least : chosen, request, best)))
      return failure();
  }
  return success();
}

/// Places the choice of the form of `chosen` within `limit` that has nothing on the host, or no
/// products recomputed, and puts it in the place of `best` where it is better. Returns by how much the choice
/// was off; 0 where nothing of that kind fits.
FailureOr<int64_t> StepPlanner::tryNarrower(const ChosenStep &chosen, ChoiceOf kind, MemoryLimit limit,
                                            PlacedStep &best) {
  FailureOr<ChosenStep> narrower =
      choose(chosen.form, {.memory = limit,
                           .keepsActivations = kind == ChoiceOf::NothingOnHost,
                           .recomputesCalls = kind != ChoiceOf::NoProductsRecomputed});
  if (failed(narrower) || !narrower->residency.fits)
    return failed(narrower) ? FailureOr<int64_t>(failure()) : 0;
  narrower->choices = chosen.choices;
  narrower->choices.push_back({.kind = kind});
  FailureOr<PlacedStep> placed = place(*narrower, {});
  FailureOr<bool> better = failed(placed) ? FailureOr<bool>(failure()) : isBetter(*placed, best);
  if (failed(better))
    return failure();
  const int64_t off = placed->arenaBytes - narrower->residency.expectedBytes;
  if (*better)
    best = std::move(*placed);
  return off;
}

/// What is copied to the host takes time and memory by where its copies stand, of which the choice knows an
/// estimate that is `off` in `best`. So two narrower choices are placed as well, so that a plan with every
/// mechanism is not slower than one with recomputation alone, or with the host alone. Without the host little
/// is unknown: where nothing has fitted, that comes last.
LogicalResult StepPlanner::narrow(const ChosenStep &chosen, int64_t off, PlacedStep &best) {
  const int64_t budget = *memory - (fits(best) ? 0 : off);
  FailureOr<int64_t> more = tryNarrower(chosen, ChoiceOf::NoProductsRecomputed, limitOf(budget), best);
  if (failed(more))
    return failure();
  const bool isClose = *more > 0 && fits(best) && !best.has(ChoiceOf::NoProductsRecomputed);
  if (places < kMostPlaces && isClose && *more < budget)
    return tryNarrower(chosen, ChoiceOf::NoProductsRecomputed, limitOf(budget - *more), best);
  if (places >= kMostPlaces)
    return success();
  return tryNarrower(chosen, ChoiceOf::NothingOnHost, limitOf(*memory), best);
}

/// Improves `best`, the plan of `chosen` as it was chosen first.
LogicalResult StepPlanner::placeAgain(const ChosenStep &chosen, PlacedStep &best) {
  const Residency &residency = chosen.residency;
  const bool isOpen = from < Phase::Resident && residency.fits;
  const int64_t off = best.arenaBytes - residency.expectedBytes, left = *memory - best.arenaBytes;
  const bool mayMove = getTraining(module).offload.activations == OffloadOptions::Activations::Chosen;
  if (!fits(best)) {
    const int64_t beyond = std::max(off, -left);
    const MemoryLimit tight = tighten(best, *memory);
    LogicalResult again = !isOpen   ? success()
                          : mayMove ? narrow(chosen, beyond, best)
                                    : chooseAnew(chosen, limitOf(*memory - beyond), {tight, tight}, best);
    return failed(again) ? failure() : shrink(chosen, best);
  }
  if (isOpen && best.slowCalls > residency.attentionInF32)
    return chooseAnew(chosen, limitOf(*memory - best.lackBytes), {}, best);
  if (!isOpen || !chosen.hasPaid())
    return success();
  if (double(left) > kMuchLeft * double(*memory) && off < 0 &&
      failed(chooseAnew(chosen, limitOf(*memory - off), {}, best)))
    return failure();
  return mayMove ? narrow(chosen, off, best) : success();
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

/// Bytes of the host that `planned` takes.
static int64_t hostBytes(ModuleOp planned) {
  ArenaOp arena = ArenaOp::lookup(planned, Space::Host);
  return arena ? static_cast<int64_t>(arena.getBytes()) : 0;
}

/// The share of the step of `planned` in which nothing but the host's cores computes: late updates save less.
static FailureOr<double> shareOfHost(ModuleOp planned) {
  FailureOr<::ds::cost::Rates> rates = readRates(planned);
  if (failed(rates))
    return failure();
  StepSimulation step = simulateStep(planned, *rates);
  double seconds = step.sum([](const SegmentSimulation &each) { return each.simulation.seconds; });
  double host = step.sum([](const SegmentSimulation &each) { return each.simulation.exposedHostSeconds; });
  return seconds > 0 ? host / seconds : 0;
}

/// Places `best` with the host's updates left to the next step, and takes that where it fits the host as well
/// and the step is shorter by more than it takes to tell. What is held on the device is chosen by then: late
/// updates run before any activation is.
LogicalResult StepPlanner::chooseUpdates(PlacedStep &best) {
  if (!best.resident || !isForCuda(module) || from > Phase::Resident || !fits(best) || places >= kMostPlaces)
    return success();
  FailureOr<double> share = shareOfHost(*best.planned);
  if (failed(share) || *share < kWorthLate)
    return success(succeeded(share));
  ChosenStep chosen;
  chosen.form = best.form;
  chosen.choices = best.choices;
  chosen.resident = std::move(best.resident);
  FailureOr<PlacedStep> late = place(chosen, best.request, /*late=*/true);
  if (failed(late))
    return failure();
  const std::optional<int64_t> host = getMachine(module).memory.host;
  if (!getRotated(*late->planned) || !fits(*late) || (host && hostBytes(*late->planned) > *host))
    return success();
  FailureOr<double> ofLate = predictSeconds(*late->planned), ofBest = predictSeconds(*best.planned);
  if (failed(ofLate) || failed(ofBest))
    return failure();
  if (*ofLate < (1 - kWorthLate) * *ofBest)
    best = std::move(*late);
  return success();
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

/// Says in the plan of `placed`, whose losses offer `loss`, what was chosen beside what its passes say.
static void describe(const PlacedStep &placed, const std::optional<LossResidency> &loss) {
  changeDecisions(*placed.planned, [&](Decisions &decisions) {
    llvm::append_range(decisions.choices, placed.choices);
    if (!loss || loss->pieces.empty())
      return;
    const std::optional<int64_t> rows = placed.form.loss.rows;
    const bool isWhole = !rows;
    auto offer =
        llvm::find_if(loss->pieces, [&](const LossOffer &each) { return isWhole || each.rows == rows; });
    const LossOffer &offered = isWhole || offer == loss->pieces.end() ? loss->pieces.back() : *offer;
    decisions.lossSplit =
        LossSplit{offered.chunks, offered.rows,
                  LossOutcome{offered.savedBytes, offered.moreSeconds, /*isExpected=*/true, isWhole}};
  });
}

FailureOr<OwningOpRef<ModuleOp>> StepPlanner::plan(std::optional<LossForm> asked) {
  lossForm = asked;
  loss.reset();
  places = 0;
  FailureOr<ChosenStep> chosen = chooseForm();
  if (failed(chosen))
    return failure();
  if (options.givesUp && memory && from < Phase::Resident && !chosen->residency.fits &&
      double(chosen->residency.expectedBytes) > kBeyondHope * double(*memory))
    return std::move(chosen->resident);
  FailureOr<PlacedStep> best = place(*chosen, {});
  if (failed(best) || (memory && failed(placeAgain(*chosen, *best))) || failed(chooseUpdates(*best)))
    return failure();
  describe(*best, loss);
  return std::move(best->planned);
}

FailureOr<OwningOpRef<ModuleOp>> StepPlanner::planLeast(const LeastForm &form) {
  FailureOr<ChosenStep> chosen =
      choose({{form.lossRows}, false}, {.memory = MemoryWord::Least, .groups = form.groups});
  if (failed(chosen))
    return failure();
  FailureOr<PlacedStep> best = place(*chosen, {.streams = MemoryWord::Least});
  if (failed(best))
    return failure();
  // Of these buffers less cannot be live.
  if (memory && findLeastLive(*best->planned) <= *memory && failed(shrink(*chosen, *best)))
    return failure();
  return std::move(best->planned);
}
