//===- Basis.cpp - What a plan rests on -------------------------------------------===//
#include "Basis.h"

#include "ds/Import/HfShape.h"

#include "llvm/ADT/STLExtras.h"

using namespace ds;
using namespace ds::opt;

/// Whether rules have a part in the answer to a question.
static bool asksRules(const Options &options) {
  if (!options.planChoice.empty())
    return true;
  return !options.question().empty() && options.inputKind() == InputKind::HfConfig &&
         options.basis != "program";
}

/// Refuses what has no meaning without a cluster.
static Status checkCluster(const Options &options) {
  if (!options.clusterName().empty())
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
                 options.input + ": --plan auto searches by rules, from the sizes in a config.json",
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

/// Chooses for a model of which a part is trained. Rules count all parameters as trained.
static Result<Basis> chooseForPart(const Options &options, const config::Config &config) {
  const std::string part = options.partOption();
  auto refuse = [&](const std::string &what, const std::string &hint) {
    return Error{ExitCode::Invalid,
                 what + " plans by rules, which count all parameters as trained, but " + part +
                     " trains a part of them",
                 hint};
  };
  if (!options.planChoice.empty())
    return refuse("--plan auto",
                  "compare plans of the program itself with --what-if, or ask for --max-batch");
  if (options.basis == "rules")
    return refuse("--basis rules", "leave --basis out: the program itself is planned");
  const std::vector<config::Refusal> refusals = config::refusedForProgram(config);
  if (!refusals.empty() && options.basis == "auto")
    return refuse(refusals.front().key + " = " + refusals.front().value,
                  "drop the key: the program itself is planned then");
  return Basis{true, "rules count all parameters as trained, and " + part + " trains a part of them"};
}

Result<Basis> ds::opt::chooseBasis(const Options &options, const config::Config &config) {
  if (options.clusterName().empty())
    return Basis{};
  if (!options.partOption().empty())
    return chooseForPart(options, config);
  if (!options.planChoice.empty())
    return Basis{false, "a search through many plans"};
  if (options.basis != "auto")
    return Basis{options.basis == "program", "--basis " + options.basis};
  if (options.inputKind() != InputKind::HfConfig)
    return Basis{true, "rules read no other models than config.json"};
  if (options.emit == Emit::Ir || options.emit == Emit::Program)
    return Basis{true, "rules give no IR and no program"};
  if (Result<HfShape> model = readHfShape({options.input, options.inputs, config.batch.micro});
      model && !model->whyNoProgram.empty())
    return Basis{false, model->whyNoProgram};
  std::vector<config::Refusal> refusals = config::refusedForProgram(config);
  if (!refusals.empty())
    return Basis{false, refusals.front().key + " = " + refusals.front().value + " has no pass yet"};
  if (config.mesh.pp > 1 && !options.question().empty())
    return Basis{false, "questions about stages of a pipeline are answered by rules"};
  return Basis{true, "every key has its pass", /*isRanked=*/config.mesh.pp == 1};
}
