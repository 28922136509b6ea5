//===- PlanModel.cpp - From the model to the plan, with the loss whole or split --===//
//
// Whether chunks of logits lower the peak is for the plan to say: another moment of the step may need more.
// A model whose loss is split is planned with the loss whole as well, beside the other plan, for neither
// depends on the other. The difference is reported, and where the choice is open the smaller plan is taken.
//
//===---------------------------------------------------------------------------===//
#include "ds/Planner/PlanModel.h"
#include "StepSimulation.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Phases.h"
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

/// Plans `step`, and on a thread of its own `model`, without a word: what is wrong with it is wrong with
/// both.
static LogicalResult planBoth(ModuleOp step, ModuleOp model, const PipelineOptions &options,
                              RunPipeline run) {
  LogicalResult other = failure();
  std::atomic<std::thread::id> silent{};
  ScopedDiagnosticHandler handler(
      model.getContext(), [&](Diagnostic &) { return success(std::this_thread::get_id() == silent.load()); });
  std::thread thread([&] {
    silent = std::this_thread::get_id();
    other = success(succeeded(makeStep(model, run)) && succeeded(planToFit(model, options, run)));
  });
  LogicalResult planned = planToFit(step, options, run);
  thread.join();
  return success(succeeded(planned) && succeeded(other));
}

namespace {
/// What speaks for a plan.
struct Figures {
  Figures(ModuleOp module, const ::ds::cost::Rates &rates, int64_t memory)
      : arena(arenaOf(module)), seconds(predictStep(module, rates, 0).stepSeconds.value_or(0)),
        fits(memory == 0 || arena <= memory) {}

  /// Memory that is freed may have been filled with gathered parameters, which shortens the step.
  bool isBetterThan(const Figures &other) const {
    if (fits != other.fits)
      return fits;
    return arena != other.arena ? arena < other.arena : seconds < other.seconds;
  }

  int64_t arena;
  double seconds;
  bool fits;
};
} // namespace

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
  FailureOr<::ds::cost::Rates> rates = readRates(module, options.cluster);
  if (failed(rates) || failed(planBoth(module, *whole, options, run)))
    return failure();
  Figures ofChunks(module, *rates, options.memory), ofWhole(*whole, *rates, options.memory);
  bool isOpen = training->lossChunks == 0, isWhole = isOpen && !ofChunks.isBetterThan(ofWhole);
  Builder builder(module.getContext());
  NamedAttrList entries(chunks);
  entries.set("saved_bytes", builder.getI64IntegerAttr(ofWhole.arena - ofChunks.arena));
  entries.set("more_seconds", builder.getF64FloatAttr(ofChunks.seconds - ofWhole.seconds));
  entries.set("refused", builder.getBoolAttr(isWhole));
  if (isWhole) {
    module.getBodyRegion().takeBody(whole->getBodyRegion());
    module->setAttrs((*whole)->getAttrDictionary());
  }
  module->setAttr(kLossChunksAttr, entries.getDictionary(module.getContext()));
  return success();
}
