//===- StagedModel.cpp - Models that come cut into stages ---------------------------===//
#include "StagedModel.h"

#include "ds/Dialect/Stages.h"

using namespace ds;
using namespace ds::opt;
using mlir::ds::DsDialect;

/// The facts that stages share.
static constexpr llvm::StringLiteral kShared[] = {DsDialect::kTrainingAttr, DsDialect::kMachineAttr};

/// Refuses a stage that says something else of `name` than the first does; saying nothing is to agree.
static Status checkAlike(llvm::ArrayRef<mlir::ModuleOp> stages, llvm::StringRef name,
                         const Options &options) {
  for (mlir::ModuleOp stage : stages) {
    mlir::ModuleOp first = stages.front();
    if (!stage->hasAttr(name) || stage->getAttr(name) == first->getAttr(name))
      continue;
    mlir::InFlightDiagnostic error = stage.emitOpError("expects the ")
                                     << name << " of the first stage, but has another";
    error.attachNote(first.getLoc()) << "the first stage is here";
    error.report();
    return Error{ExitCode::Invalid, options.input + ": its stages are not trained alike",
                 "say " + name.str() + " of the first stage alone"};
  }
  return {};
}

Status ds::opt::checkStages(mlir::ModuleOp module, const Options &options) {
  if (!mlir::ds::hasStages(module))
    return {};
  auto refuse = [&](const std::string &what) {
    return Error{
        ExitCode::Invalid, what + ": " + options.input + " is cut into stages already",
        "stages say themselves how they are trained: start from the whole model, or change the stages"};
  };
  if (!options.config.empty())
    return refuse("--config " + options.config);
  if (!options.sets.empty())
    return refuse("--set " + options.sets.front());
  if (const std::string question = options.question(); !question.empty())
    return refuse(question);
  llvm::SmallVector<mlir::ModuleOp> stages = mlir::ds::getStages(module);
  for (llvm::StringRef name : kShared)
    if (Status status = checkAlike(stages, name, options); !status)
      return status;
  return {};
}

void ds::opt::shareFacts(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::ModuleOp> stages = mlir::ds::getStages(module);
  for (mlir::ModuleOp stage : llvm::drop_begin(stages))
    for (llvm::StringRef name : kShared)
      if (mlir::Attribute fact = stages.front()->getAttr(name))
        stage->setAttr(name, fact);
}
