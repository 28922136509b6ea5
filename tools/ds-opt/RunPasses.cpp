//===- RunPasses.cpp - What ds-opt shares with mlir-opt ----------------------------===//
#include "RunPasses.h"

#include "CommandLine/InputGuard.h"
#include "CommandLine/LineErrors.h"
#include "Model.h"
#include "Output.h"
#include "ds/Codegen/CompileKernels.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Pipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

using namespace ds;
using namespace ds::opt;

void ds::opt::registerEverything(mlir::DialectRegistry &registry) {
  registry.insert<mlir::ds::DsDialect, mlir::func::FuncDialect>();
  mlir::ds::registerCodegenDialects(registry);
  mlir::ds::registerRates(registry);
  mlir::ds::registerDsPasses();
  mlir::ds::registerPipelines();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerSymbolDCEPass();
}

ExitCode ds::opt::runPasses(int argc, char **argv, const Options &options, mlir::DialectRegistry &registry) {
  mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects())
    return succeeded(mlir::MlirOptMain(argc, argv, options.input, options.output, registry))
               ? ExitCode::Ok
               : ExitCode::Invalid;
  const bool isWhole = config.inputSplitMarker().empty() && !config.shouldVerifyDiagnostics();
  if (isWhole && !config.shouldAllowUnregisteredDialects())
    if (Status status = guardText(options.input, registry); !status)
      return complain(status.error());
  auto buffer = readNamed(options.input);
  if (!buffer)
    return complain({ExitCode::Io, options.input + ": " + buffer.getError().message(), "check the path"});
  std::string text;
  llvm::raw_string_ostream stream(text);
  bool isDone = succeeded(mlir::MlirOptMain(stream, std::move(*buffer), registry, config));
  // What failed for one part of a split input is printed for the others, but no file is made of it.
  if (isDone || options.output == "-")
    if (Status status = writeText(options.output, text); !status)
      return complain(status.error());
  return isDone ? ExitCode::Ok : ExitCode::Invalid;
}
