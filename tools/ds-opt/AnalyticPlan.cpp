//===- AnalyticPlan.cpp - ds-opt as a planner by rules -----------------------------------===//
#include "AnalyticPlan.h"

#include "CommandLine/Notes.h"
#include "CommandLine/Target.h"
#include "Model.h"
#include "Output.h"
#include "Pictures.h"
#include "PlanInputs.h"
#include "ds/Import/HfShape.h"
#include "ds/Planner/AnalyticQueries.h"
#include "ds/Planner/AnalyticTimeline.h"
#include "ds/Planner/AutoPlan.h"
#include "ds/Planner/QueryText.h"
#include "ds/Report/Throughput.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <utility>

using namespace ds;
using namespace ds::opt;
using namespace ds::planner;

Result<config::Cluster> ds::opt::clusterFor(Options &options) {
  const std::string name = options.clusterName();
  if (name.empty())
    return config::builtinCluster("cpu");
  Result<config::Cluster> cluster = config::readCluster(name);
  if (!cluster)
    return Error{cluster.error().code, "--cluster: " + cluster.error().message, cluster.error().hint};
  const bool isRead = std::exchange(options.isClusterRead, true); // plans of other ranks keep theirs
  if (!options.ranksGiven && !isRead)
    options.ranks = cluster->devices().value_or(1);
  if (Status status = config::checkRanksFit(*cluster, options.ranks); !status)
    return status.error();
  if (options.ranks > 1)
    cluster->device.contextBytes += cluster->device.communicatorBytes;
  constexpr uint64_t kMost = uint64_t{1} << 60;
  if (options.memory > 0)
    cluster->device.memoryBytes =
        static_cast<int64_t>(std::min(options.memory, kMost)) + cluster->device.contextBytes;
  if (!isRead) {
    const auto limit = static_cast<double>(cluster->device.memoryBytes - cluster->device.contextBytes);
    cluster->device.memoryBytes -= static_cast<int64_t>(options.margin * limit);
  }
  return cluster;
}

/// What the configuration asks for and the rules leave out, a line each.
static std::vector<std::string> notCounted(const config::Config &config) {
  // What programs do not have yet and rules do.
  const llvm::StringRef counted[] = {"tensor_parallel",          "pipeline",     "sequence_parallel_size",
                                     "activation_checkpointing", "data_types",   "zero_optimization.offload_",
                                     "zero_optimization.stage",  "bf16.enabled", "fp16.enabled"};
  std::vector<std::string> notes;
  for (const config::Refusal &refusal : config::refusedForProgram(config))
    if (llvm::none_of(counted,
                      [&](llvm::StringRef key) { return llvm::StringRef(refusal.key).starts_with(key); }))
      notes.push_back(refusal.key + " = " + refusal.value + " is not counted by rules");
  using Kind = config::Optimizer::Kind;
  if (config.optimizer.kind != Kind::Adam && config.optimizer.kind != Kind::AdamW)
    notes.push_back("optimizer " + config.optimizer.name + " is counted as Adam, with two moments");
  return notes;
}

Result<AnalyticCase> ds::opt::readAnalyticCase(const Options &options, const config::Config &config,
                                               const config::Cluster &cluster) {
  Result<HfShape> model = readHfShape(hfRequest(options, config));
  if (!model)
    return model.error();
  // A search has yet to choose the micro-batch: an input says how long samples are.
  if (options.planChoice.empty() && model->batch != config.batch.micro)
    return Error{
        ExitCode::Invalid,
        "--input: dimension 0 is " + std::to_string(model->batch) + ", but the configured micro-batch is " +
            std::to_string(config.batch.micro),
        "make them equal: train_micro_batch_size_per_gpu counts the samples of one micro-step on one "
        "rank"};
  AnalyticCase what{modelName(options.input),
                    model->shape,
                    cost::planFromConfig(config),
                    cost::Rates(cluster),
                    model->positions,
                    notCounted(config),
                    ""};
  if (options.basis == "rules" && config::refusedForProgram(config).empty())
    what.notes.push_back("rules estimate: every key has its pass, and without --basis rules the plan is the "
                         "program's");
  if (!options.entry.empty())
    what.notes.push_back("--entry " + options.entry + " is not counted by rules: its logits take " +
                         formatBytes(4 * model->batch * model->shape.vocab) + " of a device");
  if (!options.quiet)
    addNotes(model->notices);
  what.plan.flashAttention = model->fusedAttention;
  what.plan.joinsLoss = cluster.device.architecture.starts_with("sm_"); // ds-join-loss
  if (estimateMemory(what.shape, what.plan, cluster).lacksWorkspace)
    what.notes.push_back("gradients of attention are computed in f32 by the runtime's own kernels: cuDNN's "
                         "workspace does not fit");
  if (cluster.device.peakFlops[what.plan.dtype] <= 0 && what.plan.dtype != config::DType::F32)
    what.notes.push_back("the device has no unit for this element type: its rate is that of fp32");
  return what;
}

/// The refusal of a plan that does not fit, with the cheapest change.
static Error doesNotFit(const Options &options, const AnalyticCase &what,
                        const std::vector<report::PlanChoice> &changes) {
  const config::Cluster &cluster = what.rates.cluster();
  cost::MemoryEstimate memory = estimateMemory(what.shape, what.plan, cluster);
  auto spell = [](double bytes) { return formatBytes(static_cast<int64_t>(std::min(bytes, 9e18))); };
  auto of = [&](double needed, int64_t limit) { return spell(needed) + " of " + formatBytes(limit); };
  std::string message = what.model + " does not fit " + cluster.name + ": a rank's peak is " +
                        spell(memory.peakBytes()) + ", and the limit " + spellLimit(cluster);
  if (memory.host.bytes() > 0)
    message += "; a host keeps " + of(memory.host.bytes(), cluster.host.memoryBytes);
  if (memory.storage.bytes() > 0)
    message += "; its storage " + of(memory.storage.bytes(), cluster.nvme.bytes);
  std::string hint = !options.wantsChanges ? "without --changes=none what would fit is looked for"
                     : changes.empty()
                         ? "no four changes of ZeRO stage, micro-batch, recomputation, offload and ranks "
                           "make it fit: --plan auto also splits layers"
                         : "the cheapest change that fits: " + changes.front().change;
  return {ExitCode::DoesNotFit, message, hint};
}

/// --plan auto: the configuration of the fastest plan, and a line that says what it takes and what says so.
/// The line is on stdout, unless the configuration is.
static Status writeAutoConfig(const Options &options, const config::Config &config, const AnalyticCase &what,
                              const ConfigPlanner &planner) {
  AutoQuestion question{what, {}, config.settings, options.basis != "rules", options.basis != "program"};
  question.space.ranks = config.mesh.ranks;
  question.space.globalBatch = config.batch.global;
  question.space.fixed = what.plan;
  Result<AutoAnswer> answer = findAutoPlan(question, planner);
  if (!answer)
    return answer.error();
  if (Status status = writeText(options.output, configOf(question, *answer)); !status)
    return status;
  std::string line = spellAnswer(question, *answer);
  report::PlanReport run; // as far as a run is made of it
  run.world = config.mesh.ranks;
  run.tokensPerStep = config.batch.global * what.shape.seq;
  run.run = options.run();
  const double seconds = answer->program ? answer->program->seconds : answer->chosen.seconds;
  if (std::string spelt = report::spellRun(run, seconds); !spelt.empty())
    line += "; " + spelt;
  if (options.margin > 0)
    line +=
        llvm::formatv("; {0:P0} of the memory are left free (--margin {1})", options.margin, options.margin);
  if (options.output != "-")
    return writeText("-", options.output + ": " + line + "\n");
  llvm::errs() << "note: " << line << "\n";
  return {};
}

/// The report with its inputs, with what the command line asks of other plans, and with the changes that make
/// it fit.
static report::PlanReport makeAnsweredReport(const Options &options, const config::Config &config,
                                             const AnalyticCase &what) {
  report::PlanReport report = makeAnalyticReport(what);
  report.inputs = inputsOfRules(options, config);
  addStoragePaths(report, config.zero);
  report.isPlanningOnly = isPlanningOnly(what.rates.cluster());
  report.run = options.run();
  if (options.whatIf) {
    report.whatIf = choicesOf(whatIf(what.shape, what.plan, what.rates));
    markBest(report.whatIf);
  }
  if (options.maxBatch)
    report.maxBatch = largestMicroBatch(what.shape, what.plan, what.rates.cluster());
  if (options.maxSeq)
    report.maxSeq = longestSequence(what.shape, what.plan, what.rates.cluster());
  if (!everyStageFits(what) && options.wantsChanges) {
    report.changes = choicesOf(changesThatFit(what.shape, what.plan, what.rates));
    if (std::optional<report::PlanChoice> shorter = shorterSamples(what)) // another job, so it comes last
      report.changes.push_back(*shorter);
  }
  return report;
}

/// --what-if, --max-batch and --max-seq, in this order. DoesNotFit where no batch or no sequence does.
static Status printQueries(const Options &options, const AnalyticCase &what,
                           const report::PlanReport &report) {
  std::string text = what.model + " on " + what.rates.cluster().name + ": " + spellPlan(what.plan) +
                     ", limit " + formatBytes(report.memoryLimit) + "\n";
  if (options.whatIf)
    text += printWhatIf(report);
  text += printLargest(report, " (config.json has " + std::to_string(what.positions) + " positions)");
  if (Status status = writeText(options.output, text); !status)
    return status;
  return someFit(report) ? Status() : doesNotFit(options, what, report.changes);
}

Status ds::opt::answerByRules(const Options &options, const config::Config &config,
                              const config::Cluster &cluster, const std::string &reason,
                              const ConfigPlanner &planner) {
  Result<AnalyticCase> what = readAnalyticCase(options, config, cluster);
  if (!what)
    return what.error();
  what->reason = reason;
  if (!options.planChoice.empty())
    return writeAutoConfig(options, config, *what, planner);
  if (Status status = checkPlan(what->shape, what->plan); !status)
    return status;
  report::PlanReport report = makeAnsweredReport(options, config, *what);
  if (!options.planJson.empty())
    if (Status status = writeText(options.planJson, report::printPlanJson(report)); !status)
      return status;
  if (options.asksForPictures())
    if (Status status = writePictures(options, report, makeAnalyticTimelines(*what, report)); !status)
      return status;
  if (!options.question().empty())
    return printQueries(options, *what, report);
  std::string peaks = options.explainPeak ? explainPeaks(report) : "";
  if (Status status =
          writeText(options.output, printAnalyticText(*what, report) + printChanges(report) + peaks);
      !status)
    return status;
  return everyStageFits(*what) ? Status() : doesNotFit(options, *what, report.changes);
}
