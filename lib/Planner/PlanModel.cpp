//===- PlanModel.cpp - From the model to the plan, with the loss whole or split --===//
//
// Chunks of logits cost time and may lower the peak, unless another moment of the step needs more. Where
// memory is free they buy nothing. Which of the two to plan, an estimate says that is made of both before
// there are buffers (phase resident, where all that takes memory is chosen together). Only where what memory
// holds is within the error of the estimate are both planned, one beside the other, for neither depends on
// the other.
//
//===---------------------------------------------------------------------------===//
#include "ds/Planner/PlanModel.h"
#include "StepSimulation.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/Residency.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/TrainingAttr.h"

#include "mlir/IR/Diagnostics.h"

#include <atomic>
#include <thread>

using namespace mlir;
using namespace mlir::ds;

/// The arena of a planned module.
static int64_t arenaOf(ModuleOp module) {
  return static_cast<int64_t>(ArenaOp::lookup(module, Space::Device).getBytes());
}

/// Asks for a loss in one piece.
static void keepLossWhole(ModuleOp module) {
  Builder builder(module.getContext());
  NamedAttrList keys;
  if (auto given = module->getAttrOfType<DictionaryAttr>(DsDialect::kTrainingAttr))
    keys.append(given.getValue());
  keys.set("loss_chunks", builder.getI64IntegerAttr(1));
  module->setAttr(DsDialect::kTrainingAttr, builder.getDictionaryAttr(keys.getAttrs()));
}

/// Model to step.
static LogicalResult makeStep(ModuleOp module, RunPipeline run) {
  return run([](OpPassManager &manager) { buildStepPipeline(manager); }, module);
}

/// What is live in the end was never less or more than these shares of what was expected of phase resident.
static constexpr double kLeastOfExpected = 0.84, kMostOfExpected = 1.1;

namespace {

/// What speaks for a plan, or for what is expected of it.
struct Figures {
  Figures() = default;
  Figures(ModuleOp module, const ::ds::cost::Rates &rates)
      : bytes(arenaOf(module)), seconds(predictStep(module, rates, 0).stepSeconds.value_or(0)) {}

  bool fits(int64_t memory) const { return memory == 0 || bytes <= memory; }
  /// Whether a plan of such an estimate surely fits, or may fit.
  bool surelyFits(int64_t memory) const {
    return memory == 0 || double(bytes) * kMostOfExpected <= double(memory);
  }
  bool mayFit(int64_t memory) const {
    return memory == 0 || double(bytes) * kLeastOfExpected <= double(memory);
  }

  int64_t bytes = 0;
  double seconds = 0;
};

/// A step with its losses split, and the same with whole ones.
struct BothSteps {
  ModuleOp split, whole;
};

} // namespace

/// Does `work` with both at once, the whole one on a thread of its own and without a word: what is wrong with
/// it is wrong with both.
static LogicalResult doBoth(BothSteps steps, function_ref<LogicalResult(ModuleOp)> work) {
  LogicalResult other = failure();
  std::atomic<std::thread::id> silent{};
  ScopedDiagnosticHandler handler(steps.split.getContext(), [&](Diagnostic &) {
    return success(std::this_thread::get_id() == silent.load());
  });
  std::thread thread([&] {
    silent = std::this_thread::get_id();
    other = work(steps.whole);
  });
  LogicalResult done = work(steps.split);
  thread.join();
  return success(succeeded(done) && succeeded(other));
}

/// What is expected of a plan of `step` before there are buffers.
static FailureOr<Figures> expect(ModuleOp step, const PipelineOptions &options, RunPipeline run) {
  OwningOpRef<ModuleOp> copy = step.clone();
  if (failed(
          run([&](OpPassManager &manager) { buildPipelines(manager, Phase::Step, Phase::Resident, options); },
              *copy)))
    return failure();
  auto residency = (*copy)->getAttrOfType<DictionaryAttr>(kResidencyAttr);
  Figures figures;
  figures.bytes = residency.getAs<IntegerAttr>("expected_bytes").getInt();
  figures.seconds = residency.getAs<FloatAttr>("expected_seconds").getValueAsDouble();
  return figures;
}

/// Puts what `from` holds into `module`.
static void take(ModuleOp module, ModuleOp from) {
  module.getBodyRegion().takeBody(from.getBodyRegion());
  module->setAttrs(from->getAttrDictionary());
}

/// Says what the chunks of `module` save and cost beside whole losses.
static void noteChunks(ModuleOp module, DictionaryAttr chunks, const Figures &ofSplit, const Figures &ofWhole,
                       bool isWhole, bool isExpected) {
  Builder builder(module.getContext());
  NamedAttrList entries(chunks);
  entries.set("saved_bytes", builder.getI64IntegerAttr(ofWhole.bytes - ofSplit.bytes));
  entries.set("more_seconds", builder.getF64FloatAttr(ofSplit.seconds - ofWhole.seconds));
  entries.set("refused", builder.getBoolAttr(isWhole));
  entries.set("expected", builder.getBoolAttr(isExpected));
  module->setAttr(kLossChunksAttr, entries.getDictionary(module.getContext()));
}

/// Plans both steps and leaves in `module`, which is the split one, the faster that fits, else the smaller.
static LogicalResult planBoth(ModuleOp module, ModuleOp whole, DictionaryAttr chunks,
                              const PipelineOptions &options, RunPipeline run) {
  FailureOr<::ds::cost::Rates> rates = readRates(module, options.cluster);
  if (failed(rates) ||
      failed(doBoth({module, whole}, [&](ModuleOp step) { return planToFit(step, options, run); })))
    return failure();
  Figures ofSplit(module, *rates), ofWhole(whole, *rates);
  bool splitFits = ofSplit.fits(options.memory), wholeFits = ofWhole.fits(options.memory);
  bool isWhole = splitFits != wholeFits ? wholeFits
                 : wholeFits            ? ofWhole.seconds <= ofSplit.seconds
                                        : ofWhole.bytes <= ofSplit.bytes;
  if (isWhole)
    take(module, whole);
  noteChunks(module, chunks, ofSplit, ofWhole, isWhole, /*isExpected=*/false);
  return success();
}

/// Plans the step of `module`, whose losses are split, or `whole`, which is the same with whole ones.
static LogicalResult planEither(ModuleOp module, ModuleOp whole, bool isOpen, const PipelineOptions &options,
                                RunPipeline run) {
  auto chunks = module->getAttrOfType<DictionaryAttr>(kLossChunksAttr);
  Figures ofSplit, ofWhole;
  auto learn = [&](ModuleOp step) -> LogicalResult {
    FailureOr<Figures> expected = expect(step, options, run);
    if (succeeded(expected))
      (step == module ? ofSplit : ofWhole) = *expected;
    return expected;
  };
  if (failed(doBoth({module, whole}, learn)))
    return failure();
  const int64_t memory = options.memory;
  // Chunks of which nothing is expected are no way to fit; nor is a time that they would not cost.
  bool isSmaller = ofSplit.bytes < ofWhole.bytes, isSlower = ofSplit.seconds >= ofWhole.seconds;
  bool isWhole = isOpen && isSlower && (ofWhole.surelyFits(memory) || !isSmaller);
  if (isOpen && !isWhole && (ofWhole.mayFit(memory) || !isSmaller))
    return planBoth(module, whole, chunks, options, run);
  if (isWhole)
    take(module, whole);
  if (failed(planToFit(module, options, run)))
    return failure();
  noteChunks(module, chunks, ofSplit, ofWhole, isWhole, /*isExpected=*/true);
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
  OwningOpRef<ModuleOp> whole = module.clone();
  if (failed(makeStep(module, run)))
    return failure();
  auto chunks = module->getAttrOfType<DictionaryAttr>(kLossChunksAttr);
  if (!chunks)
    return planToFit(module, options, run);
  keepLossWhole(*whole);
  {
    ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
    if (failed(makeStep(*whole, run)))
      return failure();
  }
  return planEither(module, *whole, /*isOpen=*/training->lossChunks == 0, options, run);
}
