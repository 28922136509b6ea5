//===- Basis.cpp - What a plan rests on -------------------------------------------===//
#include "Basis.h"

#include "ds/Import/HfShape.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace ds;
using namespace ds::opt;

/// Whether rules are to answer a question.
static bool asksRules(const Options &options) {
  if (!options.planChoice.empty())
    return true;
  return !options.question().empty() && options.inputKind() == InputKind::HfConfig &&
         options.basis != "program";
}

/// Refuses what has no meaning without a cluster.
static Status checkCluster(const Options &options) {
  if (!options.cluster.empty())
    return {};
  if (asksRules(options))
    return Error{ExitCode::Usage, options.question() + " needs a cluster",
                 "add --cluster FILE or NAME, for example --cluster 4x-rtx3090"};
  if (options.basis == "rules")
    return Error{ExitCode::Usage, "--basis rules needs a cluster",
                 "add --cluster FILE or NAME, for example --cluster 4x-rtx3090"};
  return {};
}

/// Refuses questions and rules for models that rules cannot read.
static Status checkModel(const Options &options) {
  if (options.inputKind() == InputKind::HfConfig)
    return {};
  if (!options.planChoice.empty())
    return Error{ExitCode::Invalid,
                 options.input + ": --plan auto is answered by rules, from the sizes in a config.json",
                 "give the model's config.json, or compare this model's plans with --what-if"};
  if (options.inputKind() == InputKind::Mlir && (options.maxBatch || options.maxSeq))
    return Error{ExitCode::Invalid,
                 options.input + ": " + (options.maxBatch ? "--max-batch" : "--max-seq") +
                     " needs a model whose inputs can change, and MLIR has its shapes already",
                 "give the TorchScript archive or the config.json that it was made from"};
  if (options.basis == "rules")
    return Error{ExitCode::Invalid, options.input + ": --basis rules plans models from config.json alone",
                 "give the model's config.json, or leave --basis out"};
  return {};
}

Status ds::opt::checkPlanner(const Options &options) {
  if (!options.planChoice.empty() && options.planChoice != "auto")
    return Error{ExitCode::Usage, "--plan expects auto, but got '" + options.planChoice + "'", ""};
  if (!llvm::is_contained({"auto", "rules", "program"}, options.basis))
    return Error{ExitCode::Usage, "--basis expects auto, rules or program, but got '" + options.basis + "'",
                 ""};
  if (Status status = checkCluster(options); !status)
    return status;
  if (Status status = checkModel(options); !status)
    return status;
  if (options.basis == "program" && !options.planChoice.empty())
    return Error{ExitCode::Usage, "--plan auto is answered by rules, and --basis program forbids them",
                 "leave --basis out"};
  bool wantsProgram = options.emit == Emit::Ir || options.emit == Emit::Program;
  if (wantsProgram && !options.question().empty())
    return Error{ExitCode::Usage, options.question() + " compares plans, and gives no IR and no program",
                 "leave --emit out"};
  if (wantsProgram && options.basis == "rules")
    return Error{ExitCode::Usage, "rules give no IR and no program",
                 "leave --emit out, or ask for --basis program"};
  if (!options.planChoice.empty() && (!options.planJson.empty() || options.asksForPictures()))
    return Error{ExitCode::Usage,
                 "--plan auto writes a ds_config.json, and no plan for --plan-json or pictures",
                 "plan the file that it writes with --config"};
  return {};
}

/// Whether a program of the model is small enough to be built unasked.
static Result<Basis> chooseBySize(const Options &options, const config::Config &config) {
  Result<HfShape> model = readHfShape(options.input, options.inputs, config.batch.micro);
  if (!model) // building it answers, or tells what is wrong with it
    return Basis{true, "rules do not cover the model"};
  int64_t functions = std::min<int64_t>(config.batch.accumulation, 3);
  int64_t layers = model->shape.layers * functions;
  std::string count = std::to_string(model->shape.layers) + " layers in " + std::to_string(functions) +
                      (functions == 1 ? " micro-step function" : " micro-step functions");
  std::string limit = std::to_string(kMostLayersBuilt);
  if (layers > kMostLayersBuilt)
    return Basis{false, count + ", and programs of more than " + limit +
                            " layers are not built unasked: --basis program builds it"};
  return Basis{true, "every key has its pass, and " + count + " are at most " + limit};
}

Result<Basis> ds::opt::chooseBasis(const Options &options, const config::Config &config) {
  if (options.cluster.empty())
    return Basis{};
  if (asksRules(options))
    return Basis{false, "questions about many plans"};
  if (options.basis != "auto")
    return Basis{options.basis == "program", "--basis " + options.basis};
  if (options.inputKind() != InputKind::HfConfig)
    return Basis{true, "rules read no other models than config.json"};
  if (options.emit == Emit::Ir || options.emit == Emit::Program)
    return Basis{true, "rules give no IR and no program"};
  std::vector<config::Refusal> refusals = config::refusedForProgram(config);
  if (!refusals.empty())
    return Basis{false, refusals.front().key + " = " + refusals.front().value + " has no pass yet"};
  return chooseBySize(options, config);
}
