//===- PlanModel.cpp - From a model to the plan ---------------------------------------===//
#include "ds/Planner/PlanModel.h"

#include "StepPlanner.h"
#include "StepSimulation.h"
#include "ds/Passes/Phases.h"

using namespace mlir;
using namespace mlir::ds;

/// Puts `planned` in the place of `module`.
static LogicalResult replace(ModuleOp module, FailureOr<OwningOpRef<ModuleOp>> planned) {
  if (failed(planned))
    return failure();
  module.getBodyRegion().takeBody((*planned)->getBodyRegion());
  module->setAttrs((**planned)->getAttrDictionary());
  return success();
}

/// Says in `planned`, a plan of `planner` that tells what pieces of losses are expected to save, what they do
/// by the plan of the other kind.
static LogicalResult compareLosses(StepPlanner &planner, ModuleOp planned) {
  std::optional<LossSplit> split = getDecisions(planned).lossSplit;
  if (!split || !split->outcome)
    return success();
  const bool isWhole = split->outcome->isRefused;
  FailureOr<OwningOpRef<ModuleOp>> made = planner.plan(isWhole ? LossForm{split->rows} : LossForm());
  if (failed(made))
    return failure();
  FailureOr<double> ofThis = predictSeconds(planned), ofOther = predictSeconds(**made);
  if (failed(ofThis) || failed(ofOther))
    return failure();
  auto bytesOf = [](ModuleOp of) { return int64_t(ArenaOp::lookup(of, Space::Device).getBytes()); };
  const int sign = isWhole ? 1 : -1;
  split->outcome = LossOutcome{sign * (bytesOf(planned) - bytesOf(**made)), sign * (*ofOther - *ofThis),
                               /*isExpected=*/false, isWhole};
  changeDecisions(planned, [&](Decisions &decisions) { decisions.lossSplit = split; });
  return success();
}

LogicalResult mlir::ds::planModel(ModuleOp module, const PipelineOptions &options, RunPipeline run) {
  FailureOr<Phase> from = phaseOf(module);
  if (failed(from) || *from == Phase::Planned)
    return from;
  StepPlanner planner(module, *from, options, run);
  FailureOr<OwningOpRef<ModuleOp>> planned = planner.plan();
  if (succeeded(planned) && *from == Phase::Model && options.comparesLosses && !options.givesUp &&
      failed(compareLosses(planner, **planned)))
    return failure();
  return replace(module, std::move(planned));
}

FailureOr<int64_t> mlir::ds::expectLeast(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                                         LeastForm &form) {
  return StepPlanner(module, Phase::Model, options, run).expectLeast(form);
}

LogicalResult mlir::ds::planLeast(ModuleOp module, const PipelineOptions &options, RunPipeline run,
                                  const LeastForm &form) {
  StepPlanner planner(module, Phase::Model, options, run);
  return replace(module, planner.planLeast(form));
}
