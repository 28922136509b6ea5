//===- Proposal.cpp - Another setting of the same command line --------------------===//
#include "ds/Planner/Proposal.h"

#include "ds/Planner/AnalyticReport.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>

using namespace ds;
using namespace ds::planner;

Proposal::Proposal(const PlanSettings &settings, const config::Config &config)
    : settings(settings), optimizerHome(config.zero.offloadOptimizer.device),
      parameterHome(config.zero.offloadParam.device) {
  choice.zeroStage = config.zero.stage;
  choice.microBatch = config.batch.micro;
  choice.accumulation = config.batch.accumulation;
  bool isOfLayers = config.pipeline.activationCheckpointInterval > 0;
  choice.recompute = config.activationCheckpointing.selective                 ? "attention"
                     : isOfLayers || config.activationCheckpointing.demands() ? "all"
                                                                              : "none";
  choice.optimizerHome = spell(optimizerHome);
}

void Proposal::set(const std::string &key, int64_t value, bool named) {
  settings.sets.push_back(key + "=" + std::to_string(value));
  if (named)
    choice.change += (choice.change.empty() ? "" : " and ") + key + " = " + std::to_string(value);
}

void Proposal::setStage(int64_t stage) {
  choice.zeroStage = stage;
  set("zero_optimization.stage", stage);
  if (stage != 3 && parameterHome != config::Home::Device) // which only stage 3 gathers
    setParameterHome(config::Home::Device);
}

void Proposal::setHome(const std::string &block, config::Home home) {
  const std::string name = home == config::Home::Device ? "none" : spell(home);
  settings.sets.push_back(block + ".device=\"" + name + "\"");
  if (home == config::Home::Nvme) // whoever runs it names a directory of theirs
    settings.sets.push_back(block + ".nvme_path=\"/local_nvme\"");
  choice.change += (choice.change.empty() ? "" : " and ") + block + ".device = \"" + name + "\"";
}

void Proposal::setOptimizerHome(config::Home home) {
  optimizerHome = home;
  choice.optimizerHome = spell(home);
  setHome("zero_optimization.offload_optimizer", home);
}

void Proposal::setParameterHome(config::Home home) {
  parameterHome = home;
  setHome("zero_optimization.offload_param", home);
}

void Proposal::setRecompute(const std::string &recompute) {
  if (choice.recompute == recompute)
    return;
  if (choice.recompute != "none")
    for (const char *off : {"number_checkpoints=\"auto\"", "partition_activations=false",
                            "cpu_checkpointing=false", "granularity=\"full\"", "layers=[]", "ops=[]"})
      settings.sets.push_back(std::string("activation_checkpointing.") + off);
  settings.sets.push_back("pipeline.activation_checkpoint_interval=" +
                          std::string(recompute == "all" ? "1" : "0"));
  if (recompute == "attention")
    settings.sets.push_back("activation_checkpointing.granularity=\"selective\"");
  choice.recompute = recompute;
}

/// Parts of "x=4x128xi64" behind the name: sizes, then the element type.
static llvm::SmallVector<llvm::StringRef> partsOf(llvm::StringRef input) {
  llvm::SmallVector<llvm::StringRef> parts;
  input.split('=').second.split(parts, 'x');
  return parts;
}

std::vector<int64_t> ds::planner::sizesOfInput(const std::string &input) {
  std::vector<int64_t> sizes;
  llvm::SmallVector<llvm::StringRef> parts = partsOf(input);
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_back())
    if (int64_t size; part.getAsInteger(10, size) || size < 1 || part.starts_with("0"))
      return {};
    else
      sizes.push_back(size);
  return sizes;
}

void Proposal::resizeInputs(unsigned index, int64_t from, int64_t to) {
  for (std::string &input : settings.inputs) {
    std::vector<int64_t> sizes = sizesOfInput(input);
    if (index >= sizes.size() || sizes[index] != from)
      continue;
    std::string size = std::to_string(to);
    llvm::SmallVector<llvm::StringRef> parts = partsOf(input);
    parts[index] = size;
    input = llvm::StringRef(input).split('=').first.str() + "=" + llvm::join(parts, "x");
  }
}

void Proposal::resizeMicroBatch(int64_t micro) {
  int64_t before = choice.microBatch;
  choice.microBatch = micro;
  set("train_micro_batch_size_per_gpu", micro);
  set("gradient_accumulation_steps", choice.accumulation, /*named=*/false);
  resizeInputs(0, before, micro);
}

void Proposal::setMicroBatch(int64_t micro) {
  choice.accumulation = choice.microBatch * choice.accumulation / micro;
  resizeMicroBatch(micro);
}

void Proposal::growMicroBatch(int64_t micro) {
  resizeMicroBatch(micro);
  // All that the file says of the batch has to agree: the whole follows from the parts.
  settings.sets.push_back("train_batch_size=\"auto\"");
}

void Proposal::take(const report::PlanReport &report) {
  for (const report::RankPlan &rank : report.ranks) {
    choice.deviceBytes = std::max(choice.deviceBytes, rank.deviceArena);
    choice.hostBytes = std::max(choice.hostBytes, rank.hostArena);
    choice.nvmeBytes = std::max(choice.nvmeBytes, rank.nvmeArena);
  }
  choice.stepSeconds = report.predicted.stepSeconds;
  choice.fits = report.fits();
  if (report.host)
    choice.hostBytes = report.host->nodeBytes;
}

Status Proposal::plan(const PlanFunction &planner) {
  Result<report::PlanReport> report = planner(settings);
  if (!report)
    return report.error();
  take(*report);
  return {};
}
