//===- RematerializeCheap.cpp - Backward computes again what memory is too dear for ==//
//
// What backward reads of the forward lives through the rest of it. Elementwise and index ops cost little
// where they are fused into what reads them, and a kernel where a product does. Which values are kept, and
// which recomputed from them, is chosen together with all else that takes the step's memory
// (ResidencyModel.h): what costs time is recomputed where memory does not hold it, and what saves most bytes
// for a second first.
//
//===----------------------------------------------------------------------------===//
#include "DescribeResidency.h"
#include "HostActivations.h"
#include "Recomputer.h"
#include "ResidencyModel.h"
#include "Support/VerifyPhases.h"
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Training.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Threading.h"

namespace mlir::ds {
#define GEN_PASS_DEF_REMATERIALIZECHEAP
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// Two narrow values a layer: what enters a block of a transformer, and what stands between its halves.
static constexpr int64_t kFirstStride = 2;
/// With fewer groups than this the whole forward would be recomputed at once.
static constexpr int64_t kFewestGroups = 3;

namespace {

/// Recomputes in `func` what `plan` does not keep, and makes its `regions` again.
LogicalResult rematerialize(func::FuncOp func, OpenRegions &regions, const ResidencyModel &model,
                            const analysis::ResidencyPlan &plan) {
  const DenseSet<Value> onHost = model.findOnHost(func, plan);
  recomputeInBackward(func, regions, model.findKept(func, plan));
  keepOnHost(func, onHost);
  return regions.close();
}

struct RematerializeCheap : mlir::ds::impl::RematerializeCheapBase<RematerializeCheap> {
  using RematerializeCheapBase::RematerializeCheapBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, getArgument(), Phase::Fused)))
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>())
      if (SegmentAttr::of(func) && failed(verifyWork(func)))
        return signalPassFailure();
    FailureOr<::ds::cost::Rates> rates = readRates(module);
    if (failed(rates))
      return signalPassFailure();
    TrainingOptions training = getTraining(module);
    openRegions();
    if (failed(verifyDemands(module, training.recompute)))
      return signalPassFailure();
    if (keepsActivations && training.offload.activations == OffloadOptions::Activations::Chosen)
      training.offload.activations = OffloadOptions::Activations::Kept;
    StepDescriptions described(module, open, *rates);
    descriptions = &described;
    std::optional<Choice> choice = chooseToFit(*rates, training);
    if (!choice)
      return signalPassFailure();
    const auto &[model, plan, groupValues] = *choice;
    Residency residency = describeResidency(*model, plan);
    residency.groupValues = groupValues;
    changeDecisions(module, [&](Decisions &decisions) { decisions.residency = std::move(residency); });
    if (remarks)
      remarkRecompute(*model, plan);
    for (auto [state, stay] : model->findStays(plan))
      cast<StateOp>(SymbolTable::lookupSymbolIn(module, state)).setStay(stay);
    auto close = [&, &model = model, &plan = plan](auto &segment) {
      return rematerialize(segment.first, segment.second, *model, plan);
    };
    if (failed(failableParallelForEach(&getContext(), open, close)))
      return signalPassFailure();
    setPhase(module, Phase::Resident);
  }

  /// A problem and its solution.
  struct Choice {
    std::unique_ptr<ResidencyModel> model;
    analysis::ResidencyPlan plan;
    std::optional<int64_t> groupValues = {}; ///< as Residency has it
  };
  void openRegions();
  OpenSegments open;                        ///< while the choice is made
  StepDescriptions *descriptions = nullptr; ///< of those
  std::optional<Choice> chooseToFit(const ::ds::cost::Rates &rates, const TrainingOptions &training);
  std::optional<Choice> choose(const ::ds::cost::Rates &rates, const TrainingOptions &training,
                               bool isNothingAhead);
  std::optional<Choice> solve(const ::ds::cost::Rates &rates, const OffloadOptions &offload,
                              const RecomputePlan &recompute, bool isNothingAhead);
};

} // namespace

void RematerializeCheap::openRegions() {
  open.clear();
  for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
    SegmentAttr segment = SegmentAttr::of(func);
    if (segment && !func.isExternal() && !segment.does(Work::Evaluation))
      open.insert({func, OpenRegions(func.getBody().front())});
  }
}

std::optional<RematerializeCheap::Choice> RematerializeCheap::solve(const ::ds::cost::Rates &rates,
                                                                    const OffloadOptions &offload,
                                                                    const RecomputePlan &recompute,
                                                                    bool isNothingAhead) {
  auto model = std::make_unique<ResidencyModel>(
      getOperation(), descriptions->of(recompute), rates,
      ResidencyLimits{bytesWithin(memory, getOperation()), maxReuseElements, maxLiveElements,
                      prefetchElements, uint64_t(getMachine(getOperation()).attentionBytes), offload, losses,
                      isNothingAhead});
  std::vector<bool> isGathered;
  for (const ResidencyChoice &choice : model->choices)
    isGathered.push_back(bool(choice.state));
  ::ds::Result<analysis::ResidencyPlan> plan =
      apart ? analysis::solveInTurn(model->problem, isGathered) : analysis::solveResidency(model->problem);
  std::optional<std::string> fault =
      plan ? analysis::check(*plan, model->problem) : std::optional(plan.error().message);
  if (fault) {
    getOperation().emitError("the choice of what is kept is wrong: ") << *fault;
    return std::nullopt;
  }
  return Choice{std::move(model), std::move(*plan),
                recompute.kind == RecomputePlan::Kind::Groups ? std::optional(recompute.stride)
                                                              : std::nullopt};
}

/// Whether `a` is the better choice: it fits, takes less time, and where neither fits less memory.
static bool isBetter(const analysis::ResidencyPlan &a, const analysis::ResidencyPlan &b) {
  if (a.fits != b.fits)
    return a.fits;
  return a.fits ? a.seconds < b.seconds : a.peakBytes[0] < b.peakBytes[0];
}

/// What is demanded. Else cheap ops alone where they are enough; else all between two borders, which come
/// further apart until what is kept fits, and beside it what cuDNN needs for attention. What may go to the
/// host competes with all of that.
std::optional<RematerializeCheap::Choice> RematerializeCheap::choose(const ::ds::cost::Rates &rates,
                                                                     const TrainingOptions &training,
                                                                     bool isNothingAhead) {
  const RecomputeOptions &demanded = training.recompute;
  auto solveFor = [&](RecomputePlan recompute) {
    return solve(rates, training.offload, recompute, isNothingAhead);
  };
  if (!demanded.isOpen())
    return solveFor({RecomputePlan::Kind::Demanded, 1, demanded});
  if (std::optional<int64_t> asked = groups.getNumber())
    return solveFor({RecomputePlan::Kind::Groups, *asked});
  std::optional<Choice> best = solveFor({});
  if (!best || !calls || groups.is(GroupWord::None))
    return best;
  // What pieces of a loss cost, layers that are recomputed may not.
  const std::optional<size_t> ofLosses = best->model->findLosses();
  const bool usesPieces = ofLosses && best->plan.ways[*ofLosses] > 0;
  const bool usesHost = training.offload.activations == OffloadOptions::Activations::Chosen &&
                        best->model->usesHost(best->plan);
  auto isEnough = [](const Choice &choice) {
    return choice.plan.fits && choice.model->countSlowAttention(choice.plan) == 0;
  };
  if (isEnough(*best) && !usesHost && !usesPieces)
    return best;
  for (int64_t stride = kFirstStride;; stride *= 2) {
    std::optional<Choice> other = solveFor({RecomputePlan::Kind::Groups, stride});
    if (!other)
      return std::nullopt;
    bool isLast = isEnough(*other) || stride * kFewestGroups > other->model->getNumGroups();
    if (isBetter(other->plan, best->plan))
      best = std::move(other);
    if (isLast)
      return best;
  }
}

/// What collectives have under way gives way where memory is short: the passes that place them let compute
/// wait for each. So where nothing fits beside that, the choice is made without it, unless it is the same.
std::optional<RematerializeCheap::Choice> RematerializeCheap::chooseToFit(const ::ds::cost::Rates &rates,
                                                                          const TrainingOptions &training) {
  if (memory.is(MemoryWord::Least))
    return choose(rates, training, /*isNothingAhead=*/true);
  std::optional<Choice> choice = choose(rates, training, /*isNothingAhead=*/false);
  if (!choice || choice->plan.fits || !choice->model->mayBeAhead())
    return choice;
  return choose(rates, training, /*isNothingAhead=*/true);
}
