//===- StagedModel.cpp - Models that come cut into stages ---------------------------===//
#include "StagedModel.h"

#include "ds/Dialect/Stages.h"

using namespace ds;
using namespace ds::opt;
using mlir::ds::DsDialect;

namespace {
/// A fact of the whole step, which each stage's module may say.
struct Fact {
  llvm::StringLiteral name;
  mlir::Attribute (*get)(mlir::ModuleOp);
  void (*set)(mlir::ModuleOp, mlir::Attribute);
};
} // namespace

/// The facts that stages share.
static constexpr Fact kShared[] = {
    {DsDialect::kTrainingAttr, [](mlir::ModuleOp stage) { return stage->getAttr(DsDialect::kTrainingAttr); },
     [](mlir::ModuleOp stage, mlir::Attribute fact) { stage->setAttr(DsDialect::kTrainingAttr, fact); }},
    {DsDialect::kMachineAttr, [](mlir::ModuleOp stage) { return stage->getAttr(DsDialect::kMachineAttr); },
     [](mlir::ModuleOp stage, mlir::Attribute fact) { stage->setAttr(DsDialect::kMachineAttr, fact); }}};

/// Refuses a stage that says another fact than the first does; saying nothing is to agree.
static Status checkAlike(llvm::ArrayRef<mlir::ModuleOp> stages, const Fact &fact, const Options &options) {
  for (mlir::ModuleOp stage : stages) {
    mlir::ModuleOp first = stages.front();
    if (!fact.get(stage) || fact.get(stage) == fact.get(first))
      continue;
    mlir::InFlightDiagnostic error = stage.emitOpError("expects the ")
                                     << fact.name << " of the first stage, but has another";
    error.attachNote(first.getLoc()) << "the first stage is here";
    error.report();
    return Error{ExitCode::Invalid, options.input + ": its stages are not trained alike",
                 "say " + fact.name.str() + " of the first stage alone"};
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
  for (const Fact &fact : kShared)
    if (Status status = checkAlike(stages, fact, options); !status)
      return status;
  return {};
}

void ds::opt::shareFacts(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::ModuleOp> stages = mlir::ds::getStages(module);
  for (mlir::ModuleOp stage : llvm::drop_begin(stages))
    for (const Fact &fact : kShared)
      if (mlir::Attribute told = fact.get(stages.front()))
        fact.set(stage, told);
}
