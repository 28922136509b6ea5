//===- PlanFitter.cpp - One step planned until it fits ------------------------------===//
//
// What is kept of the forward is chosen before there are buffers, by an estimate of what is live (the passes
// of phase resident). The plan that is made of it shows by how much the estimate was off. Where it does not
// fit because of that, or leaves much of the memory free while time was given up for it, what is kept is
// chosen once more with that much less or more, and buffers are placed again; at last as little is kept as
// can be.
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
//===---------------------------------------------------------------------------===//
#include "PlanFitter.h"

#include "PlanBuffers.h"
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/LibraryTable.h"
#include "ds/Passes/Phases.h"

#include <limits>

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

/// What `planned` lacks within `memory`.
static Lack findLack(ModuleOp planned, int64_t memory) {
  Lack lack;
  for (func::FuncOp func : getSegments(planned)) {
    std::vector<int64_t> live;
    for (auto [index, command] : llvm::enumerate(getComputeCommands(func))) {
      auto call = dyn_cast<CallOp>(command);
      std::optional<rt::AttentionPieces> least;
      if (!call || !lacksWorkspace(call) || !(least = cudnnPieces(call, 1)))
        continue;
      if (live.empty())
        live = getLiveBytes(func, {});
      ++lack.calls;
      lack.bytes = std::max(lack.bytes, int64_t(least->workspaceBytes) - (memory - live[index]));
    }
  }
  return lack;
}

/// Changes what is asked of `module` while a plan is looked for.
static void changeSearch(ModuleOp module, function_ref<void(PlanSearch &)> change) {
  changeDecisions(module, [&](Decisions &decisions) {
    PlanSearch search = decisions.search.value_or(PlanSearch());
    change(search);
    decisions.search = search == PlanSearch() ? std::nullopt : std::optional(search);
  });
}

static std::optional<int64_t> limit(int64_t bytes) { return bytes > 0 ? std::optional(bytes) : std::nullopt; }

OwningOpRef<ModuleOp> PlanFitter::takeBest() {
  changeSearch(*best, [](PlanSearch &search) {
    search.residentBytes = search.streamBytes = search.workspaceBytes = std::nullopt;
  });
  return std::move(best);
}

bool PlanFitter::isOutOfReach() const { return double(findLeastLive(*best)) > kOutOfReach * double(memory); }

LogicalResult PlanFitter::makeSharded(ModuleOp step, Phase from) {
  sharded = step.clone();
  reached = std::max(from, Phase::Fused);
  return run([&](OpPassManager &manager) { buildPipelines(manager, from, Phase::Fused, options); },
             *sharded);
}

LogicalResult PlanFitter::makeBuffers(int64_t forResident) {
  const bool isChosen = bool(resident);
  buffers = isChosen ? std::move(resident) : OwningOpRef<ModuleOp>(sharded->clone());
  changeSearch(*buffers, [&](PlanSearch &search) { search.residentBytes = limit(forResident); });
  auto build = [&](OpPassManager &manager) {
    if (!isChosen)
      buildPipelines(manager, reached, Phase::Resident, options);
    buildBufferPipeline(manager, options);
  };
  return success(reached == Phase::Scheduled || succeeded(run(build, *buffers)));
}

FailureOr<Outcome> PlanFitter::planWith(int64_t forGathers, int64_t forWorkspaces) {
  OwningOpRef<ModuleOp> copy = buffers->clone();
  changeSearch(*copy, [&](PlanSearch &search) {
    search.streamBytes = limit(forGathers);
    search.workspaceBytes = limit(forWorkspaces);
  });
  auto build = [&](OpPassManager &manager) {
    if (reached != Phase::Scheduled)
      buildStreamPipeline(manager, options);
    buildPlanPipeline(manager);
  };
  if (failed(run(build, *copy)))
    return failure();
  const int64_t arena = arenaBytes(*copy);
  auto live = static_cast<int64_t>(ArenaOp::lookup(*copy, Space::Device).getLowerBound());
  const Lack lack = memory > 0 ? findLack(*copy, memory) : Lack{};
  if (!best || (isTooLarge(arena) ? arena < getArena() : !fits() || lack.calls <= bestLacks)) {
    best = std::move(copy);
    bestLacks = lack.calls;
  }
  return Outcome{isTooLarge(arena) ? arena - memory : 0, live, lack};
}

FailureOr<bool> PlanFitter::fitWorkspaces(Outcome outcome, int64_t &forWorkspaces) {
  const bool canShrink = gradientWorkspaceBytes(*best, getMachine(*best).attentionBytes) > 0;
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
  int64_t forResident = memory, lastPlanned = 0;
  for (int round = 0;; ++round) {
    if (failed(makeBuffers(forResident)))
      return failure();
    const Expected expected(*buffers);
    FailureOr<Outcome> outcome = planWith(memory, memory);
    if (failed(outcome) || reached >= Phase::Resident || memory == 0)
      return outcome;
    if (fits() && !outcome->fits()) // what more memory was tried with: the plan before stays
      return Outcome{};
    if (outcome->fits() && outcome->lack.calls > expected.slowCalls && forResident > 1) {
      const bool isLast = round + 1 >= kMostRounds || !expected.fits;
      forResident = isLast ? 1 : std::max<int64_t>(1, forResident - (round + 1) * outcome->lack.bytes);
      continue;
    }
    const int64_t planned = outcome->excess > 0 ? memory + outcome->excess : getArena();
    const int64_t off = planned - expected.bytes, left = memory - planned;
    bool isMuchLeft = double(left) > kMuchLeft * double(memory);
    if (outcome->fits() ? round > 0 || !expected.hasPaid || !isMuchLeft : !expected.fits)
      return outcome;
    // Off by as much again; but the last choice is the least that there is. Where keeping less changed
    // nothing, the peak is elsewhere, and only that may help.
    const bool isElsewhere =
        outcome->excess > 0 && std::abs(double(planned - lastPlanned)) < kSame * double(planned);
    const bool isLast = round + 1 >= kMostRounds || isElsewhere;
    lastPlanned = planned;
    forResident = isLast ? 1 : std::max<int64_t>(1, memory - off);
  }
}

LogicalResult PlanFitter::plan(ModuleOp step, Phase from) {
  if (failed(makeSharded(step, from)))
    return failure();
  int64_t forGathers = memory, forWorkspaces = memory;
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
  int64_t forWorkspaces = memory;
  FailureOr<Outcome> outcome = planWith(/*forGathers=*/1, forWorkspaces);
  // Of these buffers less cannot be live.
  if (failed(outcome) || outcome->fits() || findLeastLive(*best) > memory)
    return outcome;
  return fitWorkspaces(*outcome, forWorkspaces);
}
