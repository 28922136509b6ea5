//===- PlanInputs.cpp - What a plan was asked for with ----------------------------===//
//
// What steers a plan most comes first and is always there; then the keys of the configuration that have no
// default value and do not speak for nothing. Two plans that agree in all of it, in their model and their
// machine are the same plan.
//
//===---------------------------------------------------------------------------===//
#include "PlanInputs.h"

#include "ds/Cost/Search.h"
#include "ds/Dialect/Training.h"
#include "ds/Import/HfShape.h"
#include "ds/Planner/AnalyticReport.h"
#include "ds/Support/Format.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace ds;
using namespace ds::opt;
using report::PlanInput;

namespace {
/// What every plan says, by rules and of programs.
struct Basics {
  int64_t microBatch = 1, accumulation = 1, dataRanks = 1, zeroStage = 0;
  std::string precision;
};
} // namespace

/// `text` as JSON.
static llvm::json::Value textValue(llvm::StringRef text) { return llvm::json::fixUTF8(text); }

static void addJson(std::vector<PlanInput> &inputs, const char *name, llvm::json::Value value) {
  inputs.push_back({name, llvm::formatv("{0}", value).str()});
}

static void addTexts(std::vector<PlanInput> &inputs, const char *name,
                     const std::vector<std::string> &texts) {
  llvm::json::Array list;
  for (const std::string &text : texts)
    list.push_back(textValue(text));
  if (!list.empty())
    addJson(inputs, name, std::move(list));
}

static std::vector<PlanInput> spellBasics(const Basics &basics) {
  std::vector<PlanInput> inputs;
  addJson(inputs, "train_batch_size", basics.microBatch * basics.accumulation * basics.dataRanks);
  addJson(inputs, "train_micro_batch_size_per_gpu", basics.microBatch);
  addJson(inputs, "gradient_accumulation_steps", basics.accumulation);
  addJson(inputs, "zero_optimization.stage", basics.zeroStage);
  addJson(inputs, "precision", textValue(basics.precision));
  return inputs;
}

/// The length of samples where a config.json gives it; the inputs as they were given elsewhere.
static void addShapes(std::vector<PlanInput> &inputs, const Options &options, int64_t microBatch) {
  if (options.inputKind() == InputKind::HfConfig)
    if (Result<HfShape> model = readHfShape({options.input, options.inputs, microBatch})) {
      addJson(inputs, "sequence_length", model->shape.seq);
      return;
    }
  addTexts(inputs, "inputs", options.inputs);
}

/// The keys that are not at their defaults, but for those that the basics say and those that steer nothing;
/// with `isOnlySet` of those that `--set` gave.
static void addSettings(std::vector<PlanInput> &inputs, const config::Config &config,
                        bool isOnlySet = false) {
  const llvm::StringRef said[] = {"train_batch_size",
                                  "train_micro_batch_size_per_gpu",
                                  "gradient_accumulation_steps",
                                  "zero_optimization.stage",
                                  "bf16.enabled",
                                  "fp16.enabled"};
  for (const config::Setting &setting : config.settings) {
    bool steers =
        setting.status == config::KeyStatus::Honoured || setting.status == config::KeyStatus::Refused;
    bool counts = !isOnlySet || setting.origin == config::Origin::Set;
    if (setting.changed && steers && counts && !llvm::is_contained(said, setting.key))
      inputs.push_back({setting.key, setting.value});
  }
}

std::vector<PlanInput> ds::opt::inputsOfRules(const Options &options, const config::Config &config) {
  const cost::ParallelPlan plan = cost::planFromConfig(config);
  std::vector<PlanInput> inputs =
      spellBasics({plan.microBatch, plan.accumulation, plan.dp, plan.zeroStage, planner::spell(plan.dtype)});
  addShapes(inputs, options, plan.microBatch);
  addSettings(inputs, config);
  return inputs;
}

/// "bf16", or "bf16 autocast" where parameters keep their type.
static std::string spellPrecision(const mlir::ds::PrecisionOptions &precision) {
  config::DType dtype = precision.compute == mlir::ds::FloatKind::BF16  ? config::DType::BF16
                        : precision.compute == mlir::ds::FloatKind::F16 ? config::DType::F16
                                                                        : config::DType::F32;
  return std::string(planner::spell(dtype)) + (precision.autocast ? " autocast" : "");
}

std::vector<PlanInput> ds::opt::inputsOfProgram(const Model &model, const Options &options,
                                                const config::Config &config, uint32_t threads) {
  const mlir::ds::TrainingOptions training = mlir::ds::getTraining(model.facts());
  std::vector<PlanInput> inputs = spellBasics({config.batch.micro, training.accumulation,
                                               mlir::ds::MeshOp::countSampleRanks(model.facts()),
                                               training.sharding.stage, spellPrecision(training.precision)});
  addShapes(inputs, options, config.batch.micro);
  addSettings(inputs, config, /*isOnlySet=*/model.hasOwnTraining);
  addTexts(inputs, "no_decay", training.noDecay);
  if (!options.loss.empty())
    addJson(inputs, "loss", textValue(options.loss));
  if (training.givesLogits)
    addJson(inputs, "entry", "logits");
  if (options.target == "cpu")
    addJson(inputs, "threads_per_rank", static_cast<int64_t>(threads));
  return inputs;
}

/// "3 ranks"
static std::string countOf(int64_t number, const char *noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string ds::opt::describeBare(const Options &options, const config::Config &config,
                                  const report::PlanReport &report) {
  std::string text = report.model + ": " + formatExact(report.parameters) + " parameters";
  std::string length;
  if (Result<HfShape> model = readHfShape(hfRequest(options, config))) {
    const cost::ModelShape &shape = model->shape;
    text += ", " + countOf(shape.layers, "layer") + " of width " + std::to_string(shape.hidden) + ", " +
            countOf(shape.heads, "head") + ", a vocabulary of " + formatExact(shape.vocab) + ", " +
            formatExact(model->positions) + " positions";
    length = " of " + countOf(shape.seq, "token");
  }
  return text + "\nassumed: a step of " + countOf(config.batch.global, "sample") + length + " on " +
         countOf(config.mesh.ranks, "rank") + ", fp32, " + config.optimizer.name +
         "; --config ds_config.json says how it is trained, --cluster NAME on what\n\n";
}
