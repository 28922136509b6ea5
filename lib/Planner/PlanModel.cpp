//===- PlanModel.cpp - From the model to the plan, with losses whole or in pieces ---===//
//
// Pieces of logits cost time and may lower the peak, unless another moment of the step needs more. Where
// memory is free they buy nothing; where it is not, something else may cost less. So how losses are made is
// part of what is chosen with all else that takes a step's memory, on the whole step in phase resident,
// before there are buffers. Pieces change what stands in the step from phase step on: where they are chosen
// the step is made anew from the model, once, and planned.
//
// The choice rests on an estimate of what is live. Where that is so near the memory that whole losses may fit
// after all, they are planned first. A plan that does not fit, or only by giving up more than was expected,
// shows by how much the estimate was off: the choice is made again with so much less or more memory, and
// planned if it is another.
//
//===---------------------------------------------------------------------------===//
#include "ds/Planner/PlanModel.h"
#include "Expected.h"
#include "StepSimulation.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/Residency.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/TrainingAttr.h"

using namespace mlir;
using namespace mlir::ds;

/// What is live in the end was never less than this share of what was expected of phase resident.
static constexpr double kLeastOfExpected = 0.84;
/// A share of the peak that smaller pieces are worth where nothing fits.
static constexpr double kWorthMemory = 0.01;
/// Plans that are made until one is as it was expected.
static constexpr int kMostPlans = 3;

/// Of an entry of `pieces` in ds.residency.
static int64_t rowsOf(DictionaryAttr pieces) { return pieces.getAs<IntegerAttr>("rows").getInt(); }
static int64_t savedBytes(DictionaryAttr pieces) { return pieces.getAs<IntegerAttr>("saved_bytes").getInt(); }

namespace {

/// How losses are to be made, and what is expected of that.
struct LossChoice {
  int64_t rows = 0; ///< of a piece; 0: whole
  bool fits = true;
  double seconds = 0; ///< of a step
  ArrayAttr pieces;   ///< as ds.residency has them; null: losses offer none

  /// What is known of pieces of `rows`.
  DictionaryAttr describe(int64_t rows) const {
    for (auto each : pieces.getAsRange<DictionaryAttr>())
      if (rowsOf(each) == rows)
        return each;
    return {};
  }
  /// The smallest pieces, of which most is saved.
  DictionaryAttr smallest() const { return cast<DictionaryAttr>(pieces.getValue().back()); }
  /// Rows of the largest pieces that save as much as the smallest do, but for a share of `bytes`: more pieces
  /// would cost time, and an op each.
  int64_t rowsThatSaveMost(int64_t bytes) const {
    const double enough = double(savedBytes(smallest())) - kWorthMemory * double(bytes);
    for (auto each : pieces.getAsRange<DictionaryAttr>())
      if (double(savedBytes(each)) >= enough)
        return rowsOf(each);
    return rowsOf(smallest());
  }
  /// Whether pieces of `rows` should lower the peak below that of pieces of `last`, or of whole losses where
  /// that is 0.
  bool savesMore(int64_t rows, int64_t last) const {
    return savedBytes(describe(rows)) > (last == 0 ? 0 : savedBytes(describe(last)));
  }
  /// Rows of the largest pieces of less than `rows`, or of all where that is 0; the smallest where there are
  /// none.
  int64_t nextBelow(int64_t rows) const {
    for (auto each : pieces.getAsRange<DictionaryAttr>())
      if (rows == 0 || rowsOf(each) < rows)
        return rowsOf(each);
    return rowsOf(smallest());
  }
};

/// Plans one model.
class LossPlanner {
public:
  /// `model` is in phase model, and planned in the end.
  LossPlanner(ModuleOp model, const PipelineOptions &options, RunPipeline run)
      : model(model), options(options), run(run) {}

  /// Takes the fastest plan that fits of those that it makes, else the smallest.
  LogicalResult planOpen();
  /// Plans losses in the pieces that the configuration says, and tells what they should save.
  LogicalResult planGiven();

private:
  FailureOr<bool> makeWhole();
  FailureOr<OwningOpRef<ModuleOp>> makeStep(StringRef key, Attribute value);
  FailureOr<LossChoice> choose(int64_t memory);
  void keepChosen(OwningOpRef<ModuleOp> resident);
  FailureOr<bool> mayBeWhole(const LossChoice &choice);
  FailureOr<ModuleOp> planWhole();
  FailureOr<ModuleOp> planPieces(int64_t rows);
  FailureOr<ModuleOp> planWith(int64_t rows) { return rows == 0 ? planWhole() : planPieces(rows); }
  FailureOr<std::optional<LossChoice>> chooseAfter(ModuleOp planned, int64_t rows);
  bool isAsExpected(ModuleOp planned, const LossChoice &choice) const;
  bool isLeast(ModuleOp planned, const LossChoice &choice) const;
  bool fits(ModuleOp planned) const { return options.memory == 0 || arenaBytes(planned) <= options.memory; }
  FailureOr<double> secondsOf(ModuleOp planned) const { return predictSeconds(planned, options.cluster); }
  FailureOr<bool> isBetter(ModuleOp a, ModuleOp b) const;
  LogicalResult finish(const LossChoice &choice);

  ModuleOp model;
  OwningOpRef<ModuleOp> step;          ///< with whole losses, which say what they offer
  OwningOpRef<ModuleOp> sharded;       ///< the same
  OwningOpRef<ModuleOp> chosenWhole;   ///< the same in phase resident, where its memory asks for no pieces
  OwningOpRef<ModuleOp> whole, pieces; ///< plans; of those in pieces the best
  int64_t rows = 0;                    ///< of `pieces`
  const PipelineOptions &options;
  RunPipeline run;
};

} // namespace

/// The step of a copy of the model, of which `key` says how its losses are to be made.
FailureOr<OwningOpRef<ModuleOp>> LossPlanner::makeStep(StringRef key, Attribute value) {
  OwningOpRef<ModuleOp> made = model.clone();
  (*made)->setAttr(key, value);
  if (failed(run([](OpPassManager &manager) { buildStepPipeline(manager); }, *made)))
    return failure();
  return made;
}

/// Makes the whole step. False where no loss of it offers pieces.
FailureOr<bool> LossPlanner::makeWhole() {
  FailureOr<OwningOpRef<ModuleOp>> made = makeStep(kOffersLossAttr, UnitAttr::get(model.getContext()));
  if (failed(made))
    return failure();
  step = std::move(*made);
  bool offers = step->walk([](CrossEntropyOp loss) {
                      return loss->hasAttr(kLossRowsAttr) ? WalkResult::interrupt() : WalkResult::advance();
                    })
                    .wasInterrupted();
  if (!offers)
    return false;
  sharded = step->clone();
  auto shard = [&](OpPassManager &manager) { buildShardPipeline(manager, options); };
  if (failed(run(shard, *sharded)))
    return failure();
  return true;
}

/// Keeps `resident`, whose losses stay whole, as if that had not been open.
void LossPlanner::keepChosen(OwningOpRef<ModuleOp> resident) {
  NamedAttrList entries((*resident)->getAttrOfType<DictionaryAttr>(kResidencyAttr));
  entries.erase("loss");
  (*resident)->setAttr(kResidencyAttr, entries.getDictionary(model.getContext()));
  (*resident)->removeAttr(kOffersLossAttr);
  chosenWhole = std::move(resident);
}

/// What `memory` asks for.
FailureOr<LossChoice> LossPlanner::choose(int64_t memory) {
  PipelineOptions used = options;
  used.memory = memory;
  OwningOpRef<ModuleOp> copy = sharded->clone();
  if (failed(run([&](OpPassManager &manager) { buildResidentPipeline(manager, used); }, *copy)))
    return failure();
  LossChoice choice;
  auto residency = (*copy)->getAttrOfType<DictionaryAttr>(kResidencyAttr);
  const Expected expected(*copy);
  choice.seconds = expected.seconds;
  choice.fits = expected.fits;
  auto losses = residency.getAs<DictionaryAttr>("loss");
  if (!losses)
    return choice;
  choice.pieces = losses.getAs<ArrayAttr>("pieces");
  choice.rows = losses.getAs<IntegerAttr>("rows").getInt();
  if (choice.rows == 0 && memory == options.memory)
    keepChosen(std::move(copy));
  return choice;
}

/// Whether whole losses are to be planned first: they were chosen, or may fit in spite of it. Where nothing
/// is expected to fit, the plan of what takes least says first by how much that is off.
FailureOr<bool> LossPlanner::mayBeWhole(const LossChoice &choice) {
  if (choice.rows == 0 || !choice.fits)
    return choice.rows == 0;
  FailureOr<LossChoice> other = choose(static_cast<int64_t>(double(options.memory) / kLeastOfExpected));
  if (failed(other))
    return failure();
  return other->rows == 0;
}

FailureOr<ModuleOp> LossPlanner::planWhole() {
  // From where it was chosen; but ZeRO 1 may have to divide gradients otherwise after all.
  FailureOr<TrainingOptions> training = readTrainingAttr(*step);
  if (failed(training))
    return failure();
  const bool mayChange = !sharded || training->sharding.stage == 1;
  whole = mayChange ? step->clone() : sharded->clone();
  (*whole)->removeAttr(kOffersLossAttr);
  if (failed(planToFit(*whole, options, run, mayChange ? nullptr : std::move(chosenWhole))))
    return failure();
  return *whole;
}

FailureOr<ModuleOp> LossPlanner::planPieces(int64_t chosen) {
  FailureOr<OwningOpRef<ModuleOp>> made =
      makeStep(kLossRowsAttr, Builder(model.getContext()).getI64IntegerAttr(chosen));
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
  auto trainingOf = [](ModuleOp module) { return module->getAttr(DsDialect::kTrainingAttr); };
  return fits(planned) && (options.memory == 0 || choice.fits) &&
         Expected(planned).seconds <= (1 + kWorthTime) * choice.seconds &&
         trainingOf(planned) == trainingOf(*step);
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
  FailureOr<LossChoice> choice = choose(std::max<int64_t>(1, options.memory - off));
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
  FailureOr<LossChoice> first = choose(options.memory);
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
    if (!choice.pieces || isAsExpected(*planned, choice) || isLeast(*planned, choice))
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
  FailureOr<LossChoice> choice = *offers ? choose(options.memory) : FailureOr<LossChoice>(LossChoice());
  // In which pieces, `loss_chunks` says.
  if (failed(choice) || failed(planPieces(choice->pieces ? rowsOf(choice->smallest()) : 0)))
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

/// Puts the best plan in the model's place, and says there what pieces save and cost: as plans have it where
/// both kinds were made, else as it is expected.
LogicalResult LossPlanner::finish(const LossChoice &choice) {
  FailureOr<bool> isWhole = whole && pieces ? isBetter(*whole, *pieces) : FailureOr<bool>(bool(whole));
  if (failed(isWhole))
    return failure();
  ModuleOp best = *isWhole ? *whole : *pieces;
  if (DictionaryAttr expected =
          choice.pieces ? pieces ? choice.describe(rows) : choice.smallest() : nullptr) {
    Builder builder(model.getContext());
    NamedAttrList entries(expected);
    const bool areBoth = whole && pieces;
    if (areBoth) {
      FailureOr<double> ofWhole = secondsOf(*whole), ofPieces = secondsOf(*pieces);
      if (failed(ofWhole) || failed(ofPieces))
        return failure();
      entries.set("saved_bytes", builder.getI64IntegerAttr(arenaBytes(*whole) - arenaBytes(*pieces)));
      entries.set("more_seconds", builder.getF64FloatAttr(*ofPieces - *ofWhole));
    }
    entries.set("refused", builder.getBoolAttr(*isWhole));
    entries.set("expected", builder.getBoolAttr(!areBoth));
    best->setAttr(kLossChunksAttr, entries.getDictionary(model.getContext()));
  }
  best->removeAttr(kLossRowsAttr);
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
  FailureOr<TrainingOptions> training = readTrainingAttr(module);
  if (failed(training))
    return failure();
  if (training->lossChunks != 1)
    return training->lossChunks == 0 ? LossPlanner(module, options, run).planOpen()
                                     : LossPlanner(module, options, run).planGiven();
  auto makeStep = [](OpPassManager &manager) { buildStepPipeline(manager); };
  return failed(run(makeStep, module)) ? failure() : planToFit(module, options, run);
}
