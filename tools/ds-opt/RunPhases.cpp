//===- RunPhases.cpp - A module from phase to phase ----------------------------------===//
#include "RunPhases.h"

#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Stages.h"
#include "ds/Passes/FailureReasons.h"
#include "ds/Passes/Phases.h"
#include "ds/Planner/PlanModel.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace ds;
using namespace ds::opt;

mlir::LogicalResult ds::opt::runPipeline(llvm::function_ref<void(mlir::OpPassManager &)> build,
                                         mlir::ModuleOp target) {
  mlir::PassManager manager(target.getContext());
  if (failed(mlir::applyPassManagerCLOptions(manager)))
    return mlir::failure();
  mlir::applyDefaultTimingPassManagerCLOptions(manager);
  // Phases are verified at their borders, and ops once, in the end: behind each pass that is a tenth of the
  // time. Passes that are named on the command line are all verified.
  manager.enableVerifier(false);
  mlir::ds::addFailureReasons(manager);
  build(manager);
  return manager.run(target);
}

/// Runs the pipelines from the phase that `module`, one stage or a model of one piece, is in up to the one
/// that is asked for. A module that comes in a later phase than model is checked first.
static Status runStagePhases(mlir::ModuleOp module, mlir::ds::Phase phase, const Error &failed,
                             const mlir::ds::PipelineOptions &options) {
  using mlir::ds::Phase;
  mlir::FailureOr<Phase> from = mlir::ds::phaseOf(module);
  if (mlir::failed(from))
    return failed;
  if (*from > phase)
    return Error{ExitCode::Invalid,
                 "the module is in phase " + mlir::ds::stringifyPhase(*from).str() + ", which comes after " +
                     mlir::ds::stringifyPhase(phase).str(),
                 "nothing leads back: start from the model, or ask for a later phase"};
  auto verify = [&](mlir::OpPassManager &manager) { mlir::ds::buildVerifier(manager, *from); };
  if (*from != Phase::Model && mlir::failed(runPipeline(verify, module)))
    return failed;
  auto build = [&](mlir::OpPassManager &manager) {
    mlir::ds::buildPipelines(manager, *from, phase, options);
  };
  mlir::LogicalResult done = phase == Phase::Planned ? mlir::ds::planModel(module, options, runPipeline)
                                                     : runPipeline(build, module);
  if (mlir::failed(done) || mlir::failed(mlir::verify(module)))
    return failed;
  if (options.givesUp && phase == Phase::Planned && *mlir::ds::phaseOf(module) < phase)
    return Error{ExitCode::DoesNotFit, "what is chosen of the step is far from fitting", ""};
  return {};
}

/// Cuts a model that comes in one piece into the stages of its mesh. False with a diagnostic where it has
/// none.
static bool cutStages(mlir::ModuleOp module, const mlir::ds::PipelineOptions &options) {
  const mlir::ds::MeshShape shape = mlir::ds::getMeshShape(module);
  mlir::FailureOr<mlir::ds::Phase> from = mlir::ds::phaseOf(module);
  if (mlir::ds::hasStages(module) || shape.mesh.size(shape.stages) == 1 || mlir::failed(from) ||
      *from != mlir::ds::Phase::Model)
    return true; // what is wrong with the phase is said by whoever works on it
  auto build = [&](mlir::OpPassManager &manager) { mlir::ds::buildCutPipeline(manager, options.partition); };
  return mlir::succeeded(runPipeline(build, module));
}

Status ds::opt::runPhases(mlir::ModuleOp module, const std::string &name,
                          const mlir::ds::PipelineOptions &options) {
  using mlir::ds::Phase;
  std::optional<Phase> phase = mlir::ds::symbolizePhase(name);
  if (!phase)
    return Error{ExitCode::Usage,
                 "--phase expects model, step, sharded, fused, resident, scheduled or planned, but got '" +
                     name + "'",
                 ""};
  const Error failed{ExitCode::Invalid, "the model could not be brought to phase " + name,
                     "the diagnostics above say where"};
  auto runOnStages = [&](Phase reached) {
    auto build = [&](mlir::OpPassManager &manager) { mlir::ds::buildStagesPipeline(manager, reached); };
    return !mlir::ds::hasStages(module) || mlir::succeeded(runPipeline(build, module));
  };
  if (!cutStages(module, options) || !runOnStages(Phase::Model))
    return failed;
  for (mlir::ModuleOp stage : mlir::ds::getStages(module))
    if (Status status = runStagePhases(stage, *phase, failed, options); !status)
      return status;
  return runOnStages(*phase) ? Status() : failed;
}
