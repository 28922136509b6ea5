//===- CheckOptions.cpp - What a command line is refused for -----------------------===//
#include "CheckOptions.h"

#include "ds/Codegen/CompileCuda.h"
#include "ds/Runtime/Formats/Outputs.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

using namespace ds;
using namespace ds::opt;

Status ds::opt::checkOptions(const Options &options) {
  if (options.inputKind() == InputKind::HfConfig && options.loss == "mse")
    return Error{ExitCode::Invalid,
                 "--loss mse: a model from config.json has the cross-entropy of its tokens",
                 "leave --loss out"};
  if (options.target != "cpu")
    if (Result<std::string> processor = mlir::ds::findCudaProcessor(options.target); !processor)
      return processor.error();
  if (!options.loss.empty() && options.loss != "cross_entropy" && options.loss != "mse")
    return Error{ExitCode::Usage, "--loss expects cross_entropy or mse, but got '" + options.loss + "'", ""};
  if (options.weights != "archive" && options.weights != "none")
    return Error{ExitCode::Usage, "--weights expects archive or none, but got '" + options.weights + "'", ""};
  if (options.asksForPictures() && options.emit == Emit::Ir)
    return Error{ExitCode::Usage, "--plan-html and --memviz are of a plan, which --emit=ir does not make",
                 "write --emit=plan"};
  if (options.emit == Emit::Program && options.output == "-")
    return Error{ExitCode::Usage, "--emit=program needs an output file", "add -o model.dsx"};
  return {};
}

Status ds::opt::checkPasses(mlir::DialectRegistry &registry) {
  mlir::MLIRContext context(registry);
  mlir::PassManager manager(&context);
  if (failed(mlir::MlirOptMainConfig::createFromCLOptions().setupPassPipeline(manager)) ||
      manager.begin() == manager.end())
    return {};
  return Error{ExitCode::Usage,
               "passes that are named run on MLIR as it is, not with --config, --set, --emit or a question",
               "run them on what --emit=ir -o FILE.mlir writes"};
}

Status ds::opt::checkKeys(const Options &options, const config::Config &config) {
  Status status = config::checkForProgram(config);
  if (status)
    return status;
  Error error = status.error();
  const bool isConfig = options.inputKind() == InputKind::HfConfig;
  if (!isConfig)
    error.hint = "drop the key; of a model's config.json, with --cluster NAME, rules plan it";
  else if (options.cluster.empty())
    error.hint = "drop the key, or name a machine: with --cluster NAME, as 4x-rtx3090, rules plan it";
  else if (options.emit == Emit::Program || options.emit == Emit::Ir)
    error.hint = "drop the key, or leave --emit out: rules plan it";
  else
    error.hint = "drop the key, or leave --basis program out: rules plan it";
  return error;
}

Status ds::opt::checkFiles(const Options &options) {
  std::vector<rt::FileArgument> inputs = {{"INPUT", options.input == "-" ? "/dev/stdin" : options.input}};
  std::vector<rt::FileArgument> outputs;
  auto add = [](std::vector<rt::FileArgument> &files, const char *option, const std::string &path) {
    if (!path.empty() && path != "-")
      files.push_back({option, path});
  };
  add(inputs, "--config", options.config);
  add(inputs, "--cluster", options.cluster);
  add(outputs, "-o", options.output);
  add(outputs, "the weights beside -o,", options.weightsOutput());
  add(outputs, "--plan-json", options.planJson);
  add(outputs, "--plan-html", options.planHtml);
  add(outputs, "--memviz", options.memviz);
  add(outputs, "--trace", options.trace);
  return rt::checkOutputs(std::move(inputs), std::move(outputs));
}
