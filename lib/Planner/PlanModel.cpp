//===- PlanModel.cpp - From the model to the plan, with losses whole or in pieces ---===//
//
// Pieces of logits cost time and may lower the peak, unless another moment of the step needs more. Where
// memory is free they buy nothing; where it is not, something else may cost less. So how losses are made is
// part of what is chosen with all else that takes a step's memory, on the whole step in phase resident,
// before there are buffers. Pieces change what stands in the step from phase step on: where they are chosen
// the step is made anew from the model, once, and planned.
//
// Where a reader is to be told what pieces save, the plan of the other kind is made as well, as the model's
// with `loss_chunks` set to it: 1, or the pieces that were offered. It is compared and thrown away.
//
// The choice rests on an estimate of what is live. Where that is so near the memory that whole losses may fit
// after all, they are planned first. A plan that does not fit, or only by giving up more than was expected,
// shows by how much the estimate was off: the choice is repeated with so much less or more memory, and
// planned if it is another.
//
//===---------------------------------------------------------------------------===//
#include "ds/Planner/PlanModel.h"
#include "Expected.h"
#include "StepSimulation.h"
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

/// What is live in the end was never less than this share of what was expected of phase resident.
static constexpr double kLeastOfExpected = 0.84;
/// A share of the peak that smaller pieces are worth where nothing fits.
static constexpr double kWorthMemory = 0.01;
/// Plans that are made until one is as it was expected.
static constexpr int kMostPlans = 3;

namespace {

/// How losses are to be made, and what is expected of that.
struct LossChoice {
  int64_t rows = 0; ///< of a piece; 0: whole
  bool fits = true;
  double seconds = 0;            ///< of a step
  std::vector<LossOffer> pieces; ///< that losses offer, the largest first

  /// What is known of pieces of `rows`; null where they are not offered.
  const LossOffer *find(int64_t rows) const {
    auto found = llvm::find_if(pieces, [&](const LossOffer &each) { return each.rows == rows; });
    return found == pieces.end() ? nullptr : &*found;
  }
  /// The smallest pieces, of which most is saved.
  const LossOffer &smallest() const { return pieces.back(); }
  /// Rows of the largest pieces that save as much as the smallest do, but for a share of `bytes`: more pieces
  /// would cost time, and an op each.
  int64_t rowsThatSaveMost(int64_t bytes) const {
    const double enough = double(smallest().savedBytes) - kWorthMemory * double(bytes);
    for (const LossOffer &each : pieces)
      if (double(each.savedBytes) >= enough)
        return each.rows;
    return smallest().rows;
  }
  /// Whether pieces of `rows` should lower the peak below that of pieces of `last`, or of whole losses where
  /// that is 0.
  bool savesMore(int64_t rows, int64_t last) const {
    return find(rows)->savedBytes > (last == 0 ? 0 : find(last)->savedBytes);
  }
  /// Rows of the largest pieces of less than `rows`, or of all where that is 0; the smallest where there are
  /// none.
  int64_t nextBelow(int64_t rows) const {
    for (const LossOffer &each : pieces)
      if (rows == 0 || each.rows < rows)
        return each.rows;
    return smallest().rows;
  }
};

/// Plans one model.
class LossPlanner {
public:
  /// `model` is in phase model, and planned in the end.
  LossPlanner(ModuleOp model, const PipelineOptions &options, RunPipeline run)
      : model(model), memory(limitOf(model)), options(options), run(run) {}

  /// Takes the fastest plan that fits of those that it makes, else the smallest.
  LogicalResult planOpen();
  /// Plans losses in the pieces that the configuration says, and tells what they should save.
  LogicalResult planGiven();

private:
  FailureOr<bool> makeWhole();
  FailureOr<OwningOpRef<ModuleOp>> makeStep(const PlanSearch &search);
  FailureOr<LossChoice> choose(int64_t wanted);
  void keepChosen(OwningOpRef<ModuleOp> resident);
  FailureOr<bool> mayBeWhole(const LossChoice &choice);
  FailureOr<ModuleOp> planWhole();
  FailureOr<ModuleOp> planPieces(int64_t rows);
  FailureOr<ModuleOp> planWith(int64_t rows) { return rows == 0 ? planWhole() : planPieces(rows); }
  FailureOr<std::optional<LossChoice>> chooseAfter(ModuleOp planned, int64_t rows);
  bool isAsExpected(ModuleOp planned, const LossChoice &choice) const;
  bool isLeast(ModuleOp planned, const LossChoice &choice) const;
  bool fits(ModuleOp planned) const { return memory == 0 || arenaBytes(planned) <= memory; }
  FailureOr<double> secondsOf(ModuleOp planned) const { return predictSeconds(planned); }
  FailureOr<bool> isBetter(ModuleOp a, ModuleOp b) const;
  FailureOr<OwningOpRef<ModuleOp>> planAs(int64_t chunks);
  FailureOr<LossOutcome> compare(ModuleOp best, bool isWhole, const LossOffer &expected);
  LogicalResult finish(const LossChoice &choice);

  ModuleOp model;
  const int64_t memory;                ///< bytes that a plan must fit; 0: no limit
  OwningOpRef<ModuleOp> step;          ///< with whole losses, which say what they offer
  OwningOpRef<ModuleOp> sharded;       ///< the same
  OwningOpRef<ModuleOp> chosenWhole;   ///< the same in phase resident, where its memory asks for no pieces
  OwningOpRef<ModuleOp> whole, pieces; ///< plans; of those in pieces the best
  int64_t rows = 0;                    ///< of `pieces`
  const PipelineOptions &options;
  RunPipeline run;
};

} // namespace

/// Says of `module` what is asked for beyond its configuration.
static void setSearch(ModuleOp module, std::optional<PlanSearch> search) {
  changeDecisions(module, [&](Decisions &decisions) { decisions.search = search; });
}

/// The step of a copy of the model, of which `search` says how its losses are to be made.
FailureOr<OwningOpRef<ModuleOp>> LossPlanner::makeStep(const PlanSearch &search) {
  OwningOpRef<ModuleOp> made = model.clone();
  setSearch(*made, search);
  if (failed(run(buildStepPipeline, *made)))
    return failure();
  return made;
}

/// Makes the whole step. False where no loss of it offers pieces.
FailureOr<bool> LossPlanner::makeWhole() {
  FailureOr<OwningOpRef<ModuleOp>> made = makeStep({.offersLoss = true});
  if (failed(made))
    return failure();
  step = std::move(*made);
  bool offers = step->walk([](CrossEntropyOp loss) {
                      return loss.getPieceRows() ? WalkResult::interrupt() : WalkResult::advance();
                    })
                    .wasInterrupted();
  if (!offers)
    return false;
  sharded = step->clone();
  auto build = [&](OpPassManager &manager) {
    buildPipelines(manager, Phase::Step, Phase::Fused, options);
  };
  if (failed(run(build, *sharded)))
    return failure();
  return true;
}

/// Keeps `resident`, whose losses stay whole, as if that had not been open.
void LossPlanner::keepChosen(OwningOpRef<ModuleOp> resident) {
  changeDecisions(*resident, [](Decisions &decisions) {
    decisions.residency->loss.reset();
    decisions.search.reset();
  });
  chosenWhole = std::move(resident);
}

/// What a memory of `wanted` bytes asks for; 0: no limit.
FailureOr<LossChoice> LossPlanner::choose(int64_t wanted) {
  OwningOpRef<ModuleOp> copy = sharded->clone();
  changeDecisions(*copy, [&](Decisions &decisions) {
    decisions.search->residentBytes = wanted > 0 ? std::optional(wanted) : std::nullopt;
  });
  if (failed(run([&](OpPassManager &manager) { buildResidentPipeline(manager, options); }, *copy)))
    return failure();
  LossChoice choice;
  const Expected expected(*copy);
  choice.seconds = expected.seconds;
  choice.fits = expected.fits;
  const std::optional<LossResidency> losses = getDecisions(*copy).residency->loss;
  if (!losses)
    return choice;
  choice.pieces = losses->pieces;
  choice.rows = losses->rows;
  if (choice.rows == 0 && wanted == memory)
    keepChosen(std::move(copy));
  return choice;
}

/// Whether whole losses are to be planned first: they were chosen, or may fit in spite of it. Where nothing
/// is expected to fit, the plan of what takes least says first by how much that is off.
FailureOr<bool> LossPlanner::mayBeWhole(const LossChoice &choice) {
  if (choice.rows == 0 || !choice.fits)
    return choice.rows == 0;
  FailureOr<LossChoice> other = choose(static_cast<int64_t>(double(memory) / kLeastOfExpected));
  if (failed(other))
    return failure();
  return other->rows == 0;
}

FailureOr<ModuleOp> LossPlanner::planWhole() {
  // From where it was chosen; but ZeRO 1 may have to divide gradients otherwise after all.
  const TrainingOptions training = getTraining(*step);
  const bool mayChange = !sharded || training.sharding.stage == 1;
  whole = mayChange ? step->clone() : sharded->clone();
  setSearch(*whole, std::nullopt);
  if (failed(planToFit(*whole, options, run, mayChange ? nullptr : std::move(chosenWhole))))
    return failure();
  return *whole;
}

FailureOr<ModuleOp> LossPlanner::planPieces(int64_t chosen) {
  FailureOr<OwningOpRef<ModuleOp>> made = makeStep({.lossRows = chosen});
  if (failed(made) || failed(planToFit(**made, options, run)))
    return failure();
  FailureOr<bool> isWorse = pieces ? isBetter(*pieces, **made) : FailureOr<bool>(false);
  if (failed(isWorse))
    return failure();
  if (!*isWorse)
    pieces = std::move(*made), rows = chosen;
  return *pieces;
}

/// Whether `planned` fits, and without giving up more than `choice` did.
bool LossPlanner::isAsExpected(ModuleOp planned, const LossChoice &choice) const {
  return fits(planned) && (memory == 0 || choice.fits) &&
         Expected(planned).seconds <= (1 + kWorthTime) * choice.seconds &&
         getTraining(planned) == getTraining(*step);
}

/// Whether `planned`, which does not fit, has what takes least already.
bool LossPlanner::isLeast(ModuleOp planned, const LossChoice &choice) const {
  return !fits(planned) && !choice.fits && choice.rows > 0 &&
         !choice.savesMore(choice.rowsThatSaveMost(arenaBytes(planned)), choice.rows);
}

/// What is chosen with as much more or less memory as `planned`, which has pieces of `last`, shows the
/// estimate to be off. Nothing where that is no other plan, or not worth one.
FailureOr<std::optional<LossChoice>> LossPlanner::chooseAfter(ModuleOp planned, int64_t last) {
  const int64_t off = arenaBytes(planned) - Expected(planned).bytes;
  FailureOr<LossChoice> choice = choose(std::max<int64_t>(1, memory - off));
  if (failed(choice))
    return failure();
  // What does not fit needs smaller pieces, whatever is expected of them.
  const bool isSmaller = choice->rows > 0 && (last == 0 || choice->rows < last);
  if (!fits(planned) && !isSmaller)
    choice->rows = choice->fits ? choice->nextBelow(last) : choice->rowsThatSaveMost(arenaBytes(planned));
  const bool isFaster = choice->seconds < (1 - kWorthTime) * Expected(planned).seconds;
  if (choice->rows == last || (choice->rows == 0 && whole) || (fits(planned) && !isFaster))
    return std::optional<LossChoice>();
  if (!fits(planned) && choice->rows > 0 && !choice->savesMore(choice->rows, last)) // its peak is elsewhere
    return std::optional<LossChoice>();
  return std::optional(*choice);
}

LogicalResult LossPlanner::planOpen() {
  FailureOr<bool> offers = makeWhole();
  if (failed(offers))
    return failure();
  LossChoice known;
  if (!*offers)
    return failed(planWhole()) ? failure() : finish(known);
  FailureOr<LossChoice> first = choose(memory);
  if (failed(first))
    return failure();
  known = *first;
  FailureOr<bool> isWhole = mayBeWhole(known);
  if (failed(isWhole))
    return failure();
  LossChoice choice = known;
  if (*isWhole)
    choice.rows = 0;
  for (int count = 0; count < kMostPlans; ++count) {
    FailureOr<ModuleOp> planned = planWith(choice.rows);
    if (failed(planned))
      return failure();
    if (choice.pieces.empty() || isAsExpected(*planned, choice) || isLeast(*planned, choice))
      break;
    FailureOr<std::optional<LossChoice>> next = chooseAfter(*planned, choice.rows);
    if (failed(next))
      return failure();
    if (!*next)
      break;
    choice = **next;
  }
  return finish(known);
}

LogicalResult LossPlanner::planGiven() {
  FailureOr<bool> offers = makeWhole();
  if (failed(offers))
    return failure();
  FailureOr<LossChoice> choice = *offers ? choose(memory) : FailureOr<LossChoice>(LossChoice());
  // In which pieces, `loss_chunks` says.
  if (failed(choice) || failed(planPieces(choice->pieces.empty() ? 0 : choice->smallest().rows)))
    return failure();
  return finish(*choice);
}

/// Whether plan `a` is the faster that fits, else the smaller; of equals it is.
FailureOr<bool> LossPlanner::isBetter(ModuleOp a, ModuleOp b) const {
  if (fits(a) != fits(b))
    return fits(a);
  if (!fits(a))
    return arenaBytes(a) <= arenaBytes(b);
  FailureOr<double> ofA = secondsOf(a), ofB = secondsOf(b);
  if (failed(ofA) || failed(ofB))
    return failure();
  return *ofA <= *ofB;
}

/// The plan of the model whose configuration says in how many chunks losses are made.
FailureOr<OwningOpRef<ModuleOp>> LossPlanner::planAs(int64_t chunks) {
  OwningOpRef<ModuleOp> made = model.clone();
  TrainingOptions training = getTraining(*made);
  training.lossChunks = chunks;
  if (failed(setTraining(*made, training)) || failed(run(buildStepPipeline, *made)) ||
      failed(planToFit(*made, options, run)))
    return failure();
  return made;
}

/// What pieces save and cost beside whole losses, of which `best` is the plan that was chosen: to the byte
/// where both are planned, else as `expected`.
FailureOr<LossOutcome> LossPlanner::compare(ModuleOp best, bool isWhole, const LossOffer &expected) {
  LossOutcome outcome{expected.savedBytes, expected.moreSeconds, /*isExpected=*/true, isWhole};
  OwningOpRef<ModuleOp> made;
  if (options.comparesLosses) {
    for (OwningOpRef<ModuleOp> *done : {&step, &sharded, &chosenWhole}) // all is planned that they are for
      *done = OwningOpRef<ModuleOp>();
    FailureOr<OwningOpRef<ModuleOp>> planned = planAs(isWhole ? expected.chunks : 1);
    if (failed(planned))
      return failure();
    made = std::move(*planned);
  }
  ModuleOp other = made ? *made : isWhole ? (pieces ? *pieces : ModuleOp()) : (whole ? *whole : ModuleOp());
  if (!other)
    return outcome;
  FailureOr<double> ofBest = secondsOf(best), ofOther = secondsOf(other);
  if (failed(ofBest) || failed(ofOther))
    return failure();
  const int sign = isWhole ? 1 : -1;
  outcome.savedBytes = sign * (arenaBytes(best) - arenaBytes(other));
  outcome.moreSeconds = sign * (*ofOther - *ofBest);
  outcome.isExpected = false;
  return outcome;
}

/// Puts the best plan in the model's place, and says there what pieces save and cost.
LogicalResult LossPlanner::finish(const LossChoice &choice) {
  FailureOr<bool> isWhole = whole && pieces ? isBetter(*whole, *pieces) : FailureOr<bool>(bool(whole));
  if (failed(isWhole))
    return failure();
  ModuleOp best = *isWhole ? *whole : *pieces;
  const LossOffer *expected = choice.pieces.empty() ? nullptr
                              : pieces              ? choice.find(rows)
                                                    : &choice.smallest();
  std::optional<LossSplit> split;
  if (expected) {
    FailureOr<LossOutcome> outcome = compare(best, *isWhole, *expected);
    if (failed(outcome))
      return failure();
    split = LossSplit{expected->chunks, expected->rows, *outcome};
  }
  changeDecisions(best, [&](Decisions &decisions) {
    if (split)
      decisions.lossSplit = split;
    decisions.search.reset();
  });
  model.getBodyRegion().takeBody(best.getBodyRegion());
  model->setAttrs(best->getAttrDictionary());
  return success();
}

LogicalResult mlir::ds::planModel(ModuleOp module, const PipelineOptions &options, RunPipeline run) {
  FailureOr<Phase> from = phaseOf(module);
  if (failed(from))
    return failure();
  if (*from != Phase::Model)
    return *from == Phase::Planned ? success() : planToFit(module, options, run);
  const TrainingOptions training = getTraining(module);
  if (training.lossChunks != 1)
    return training.lossChunks == 0 ? LossPlanner(module, options, run).planOpen()
                                    : LossPlanner(module, options, run).planGiven();
  return failed(run(buildStepPipeline, module)) ? failure() : planToFit(module, options, run);
}
