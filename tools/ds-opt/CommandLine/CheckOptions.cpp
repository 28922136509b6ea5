//===- CheckOptions.cpp - What a command line is refused for -----------------------===//
#include "CheckOptions.h"

#include "AdapterOptions.h"
#include "ds/Codegen/CompileCuda.h"
#include "ds/Runtime/Files/Outputs.h"
#include "ds/Runtime/Formats/SafeTensors.h"
#include "ds/Support/WeightsMark.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/FileSystem.h"

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
  if (!options.entry.empty() && options.entry != "logits")
    return Error{ExitCode::Usage, "--entry expects logits, but got '" + options.entry + "'", ""};
  if (options.pricePerHour && !options.tokens)
    return Error{ExitCode::Usage, "--price-per-hour is of a run of --tokens, and none is given",
                 "add --tokens N, the tokens that the whole run trains on"};
  if (options.weights != "archive" && options.weights != "none")
    return Error{ExitCode::Usage, "--weights expects archive or none, but got '" + options.weights + "'", ""};
  if (Result<std::optional<AdapterRequest>> adapters = adapterRequest(options); !adapters)
    return adapters.error();
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

/// Refuses to replace a file that ds-opt has not written: nobody has named it on the command line.
static Status checkReplaced(const std::string &weights) {
  llvm::sys::fs::file_status status;
  if (weights.empty() || llvm::sys::fs::status(weights, status, /*follow=*/false))
    return {}; // none is there
  if (Result<rt::SafeTensorsFile> file = rt::SafeTensorsFile::open(weights))
    for (const rt::MetadataEntry &entry : file->metadata())
      if (entry.key == kWeightsWriterKey && entry.value == kWeightsWriter)
        return {};
  return Error{ExitCode::Usage,
               "the weights beside -o, '" + weights + "': ds-opt has not written the file that is there",
               "give -o another name, move the file, or write no weights with --weights none"};
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
  if (Status status = rt::checkOutputs(std::move(inputs), std::move(outputs)); !status)
    return status;
  return checkReplaced(options.weightsOutput());
}
