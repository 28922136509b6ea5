//===- StepForms.cpp - The forms of a step, and what is chosen of each ---------------===//
//
// Pieces of a loss change what stands in a step from phase step on, and so does reducing gradients in each
// micro-step. How losses are made is part of what is chosen with all else that memory holds, on the step that
// has them whole; where pieces are chosen, the step is made in them, and the choice made once more.
//
//===---------------------------------------------------------------------------------===//
#include "StepPlanner.h"

#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

/// A share of a step's time that is worth another choice, or another plan.
static constexpr double kWorthTime = 0.002;
/// A share of the peak that smaller pieces are worth where nothing fits.
static constexpr double kWorthMemory = 0.01;

bool ChosenStep::hasPaid() const {
  double more = 0;
  for (const RecomputedKind &kind : residency.again)
    more += std::max(0.0, kind.moreSeconds);
  return residency.hostValues > 0 || more > kWorthTime * residency.expectedSeconds;
}

bool ChosenStep::isBetterThan(const ChosenStep &other) const {
  if (residency.fits != other.residency.fits)
    return residency.fits;
  return residency.fits ? residency.expectedSeconds < other.residency.expectedSeconds
                        : residency.expectedBytes < other.residency.expectedBytes;
}

StepPlanner::StepPlanner(ModuleOp module, Phase from, const PipelineOptions &options, RunPipeline run)
    : module(module), from(from), options(options), run(run), memory(getMachine(module).memory.device) {}

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

FailureOr<ModuleOp> StepPlanner::fusedOf(StepForm form) {
  if (auto known = forms.find(form); known != forms.end())
    return *known->second;
  OwningOpRef<ModuleOp> made = module.clone();
  // Pieces that the configuration asks for have as many rows as each loss says itself.
  const bool isAsked = getTraining(module).lossChunks > 0;
  const PlanRequest request{.losses = !form.loss.rows ? LossWord::Whole
                                      : isAsked       ? LossWord::Shapes
                                                      : LossRows(*form.loss.rows),
                            .reducesInEach = form.reducesInEach};
  auto build = [&](OpPassManager &manager) { buildPipelines(manager, from, Phase::Fused, options, request); };
  if (from < Phase::Fused && failed(run(build, *made)))
    return failure();
  return *(forms[form] = std::move(made));
}

/// Whether the configuration of `module`, in phase `from` and of which `fused` is a form, leaves it open to
/// reduce gradients once a step, and that takes more memory.
static bool mayReduceInEach(ModuleOp module, Phase from, ModuleOp fused) {
  const TrainingOptions training = getTraining(module);
  return from <= Phase::Step && MeshOp::countSampleRanks(fused) > 1 && training.accumulation > 1 &&
         training.sharding.stage == 1 && !training.sharding.reduceEachMicroStep;
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// Chooses of `form` what `request` asks for.
FailureOr<ChosenStep> StepPlanner::choose(StepForm form, const ResidencyRequest &request) {
  FailureOr<ModuleOp> fused = fusedOf(form);
  if (failed(fused))
    return failure();
  ChosenStep chosen;
  chosen.form = form;
  chosen.resident = fused->clone();
  if (from >= Phase::Resident)
    return chosen;
  auto build = [&](OpPassManager &manager) { buildResidentPipeline(manager, options, request); };
  if (failed(run(build, *chosen.resident)))
    return failure();
  chosen.residency = *getDecisions(*chosen.resident).residency;
  changeDecisions(*chosen.resident, [](Decisions &decided) { decided.residency->loss.reset(); }); // of forms
  return chosen;
}

/// Rows of the largest pieces that save as much as the smallest do, but for a share of `bytes`: more pieces
/// would cost time, and an op each.
static int64_t rowsThatSaveMost(ArrayRef<LossOffer> pieces, int64_t bytes) {
  const double enough = double(pieces.back().savedBytes) - kWorthMemory * double(bytes);
  return llvm::find_if(pieces, [&](const LossOffer &each) { return double(each.savedBytes) >= enough; })
      ->rows;
}

/// Whether what `chosen`, which has some of `pieces`, lacks of `limit` is what the smallest are expected to
/// save beside those.
static bool lacksSmallest(const ChosenStep &chosen, ArrayRef<LossOffer> pieces,
                          std::optional<int64_t> limit) {
  const LossOffer &taken =
      *llvm::find_if(pieces, [&](const LossOffer &each) { return each.rows == chosen.form.loss.rows; });
  return limit && chosen.residency.expectedBytes - *limit <= pieces.back().savedBytes - taken.savedBytes;
}

/// What becomes of `joint`, which would have the loss in pieces: those, smaller ones where they do not fit,
/// or the whole loss after all where it is better. Where nothing fits `joint` has the smallest pieces, of
/// which there may be thousands; a few large ones hold about as little, and smaller ones are made only if
/// what they are expected to save beside those is what is lacking.
FailureOr<ChosenStep> StepPlanner::choosePieces(ChosenStep joint, const ResidencyRequest &request) {
  const Residency expected = joint.residency;
  const bool reducesInEach = joint.form.reducesInEach;
  const std::vector<LossOffer> &pieces = expected.loss->pieces;
  const LossForm form{expected.fits ? expected.loss->rows : rowsThatSaveMost(pieces, expected.expectedBytes)};
  FailureOr<ChosenStep> best = choose({form, reducesInEach}, request);
  if (failed(best))
    return failure();
  const bool isAsExpected =
      best->residency.fits == expected.fits &&
      (!expected.fits || best->residency.expectedSeconds <= (1 + kWorthTime) * expected.expectedSeconds);
  SmallVector<LossForm> others;
  if (!best->residency.fits && expected.fits)
    others.push_back({rowsThatSaveMost(pieces, best->residency.expectedBytes)});
  if (!best->residency.fits && !expected.fits &&
      lacksSmallest(*best, pieces, bytesWithin(request.memory, module)))
    others.push_back({pieces.back().rows});
  if (!isAsExpected)
    others.push_back(LossForm()); // whole
  for (LossForm another : others) {
    if (another == form)
      continue;
    FailureOr<ChosenStep> other = choose({another, reducesInEach}, request);
    if (failed(other))
      return failure();
    if (other->isBetterThan(*best))
      best = std::move(other);
  }
  return best;
}

/// Chooses of whole losses in what pieces they would better be made, where that is open, with all else.
FailureOr<ChosenStep> StepPlanner::chooseOpen(bool reducesInEach, const ResidencyRequest &request) {
  ResidencyRequest open = request;
  open.opensLosses = from == Phase::Model && getTraining(module).lossChunks != 1;
  FailureOr<ChosenStep> joint = choose({LossForm(), reducesInEach}, open);
  if (succeeded(joint) && open.opensLosses && joint->residency.loss)
    loss = joint->residency.loss;
  return joint;
}

/// The best choice of a form whose losses are as that asks for.
FailureOr<ChosenStep> StepPlanner::chooseLoss(bool reducesInEach, const ResidencyRequest &request) {
  if (lossForm)
    return choose({*lossForm, reducesInEach}, request);
  FailureOr<ChosenStep> joint = chooseOpen(reducesInEach, request);
  const int64_t chunks = getTraining(module).lossChunks;
  if (failed(joint) || from != Phase::Model || chunks == 1 || !joint->residency.loss)
    return joint;
  if (chunks == 0)
    return loss->rows ? choosePieces(std::move(*joint), request) : std::move(joint);
  return choose({{loss->pieces.back().rows}, reducesInEach}, request); // in which pieces, `loss_chunks` says
}

FailureOr<int64_t> StepPlanner::expectLeast(LeastForm &form) {
  FailureOr<ChosenStep> chosen = chooseOpen(/*reducesInEach=*/false, {.memory = MemoryWord::Least});
  if (failed(chosen))
    return failure();
  const Residency &residency = chosen->residency;
  form = {std::nullopt, residency.groupValues ? RecomputedGroups(*residency.groupValues) : GroupWord::None};
  if (loss && getTraining(module).lossChunks > 0)
    form.lossRows = loss->pieces.back().rows;
  else if (loss && loss->rows)
    form.lossRows = rowsThatSaveMost(loss->pieces, residency.expectedBytes);
  return residency.expectedBytes;
}

FailureOr<ChosenStep> StepPlanner::chooseForm() {
  FailureOr<ChosenStep> once = chooseLoss(/*reducesInEach=*/false, {});
  if (failed(once) || from >= Phase::Resident || !memory ||
      !mayReduceInEach(module, from, *forms.begin()->second) || (once->residency.fits && !once->hasPaid()))
    return once;
  const std::optional<LossResidency> ofOnce = loss;
  FailureOr<ChosenStep> each = chooseLoss(/*reducesInEach=*/true, {});
  if (failed(each))
    return failure();
  if (!each->isBetterThan(*once)) {
    loss = ofOnce;
    return once;
  }
  if (once->residency.fits) {
    each->choices.push_back(
        {.kind = ChoiceOf::OnceSlower,
         .percent = 100 * (once->residency.expectedSeconds / each->residency.expectedSeconds - 1)});
    return each;
  }
  FailureOr<PlacedStep> tooLarge = place(*once, {}); // to the byte
  if (failed(tooLarge))
    return failure();
  each->choices.push_back(
      {.kind = ChoiceOf::OnceTooLarge, .bytes = tooLarge->arenaBytes, .limitBytes = *memory});
  return each;
}
