//===- Output.cpp - What ds-opt writes -------------------------------------------===//
#include "Output.h"

#include "AnalyticPlan.h"
#include "CommandLine/Notes.h"
#include "Kernels.h"
#include "Pictures.h"
#include "PlanInputs.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/LowerToProgram.h"
#include "ds/Passes/ProductChoices.h"
#include "ds/Planner/PlanSummary.h"
#include "ds/Planner/ProgramQueries.h"
#include "ds/Planner/QueryText.h"
#include "ds/Report/PlanReport.h"
#include "ds/Runtime/Files/AtomicFile.h"
#include "ds/Runtime/Program/HostNeeds.h"
#include "ds/Runtime/Program/ProgramFile.h"
#include "ds/Support/Messages.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <algorithm>
#include <cmath>
#include <unistd.h>

using namespace ds;
using namespace ds::opt;
using namespace ds::planner;

Status ds::opt::writeText(const std::string &path, const std::string &text) {
  tellNotes();
  if (path != "-")
    return rt::writeFileAtomically(path, text);
  llvm::outs() << text;
  return finishStandardOutput();
}

Status ds::opt::finishStandardOutput() {
  llvm::raw_fd_ostream &out = llvm::outs();
  out.flush();
  if (!out.has_error())
    return {};
  const std::error_code code = out.error();
  out.clear_error(); // told here, once
  return Error{ExitCode::Io, "cannot write to standard output: " + code.message(),
               "name a file with -o, or free space where the output goes"};
}

Status ds::opt::writeIr(const Model &model, const Options &options) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  model.module.get()->print(stream);
  stream << "\n";
  return writeText(options.output, text);
}

/// Whether the program rounds fp32 factors to tf32.
static bool usesTf32(const Options &options, const config::Config &config) {
  return config.allowTf32 && options.target != "cpu";
}

/// What a process takes beyond its arenas: a line of its own, for no plan decides it.
static void addBeyondArenas(report::PlanReport &report, const Options &options, const ProgramCase &what) {
  const config::Cluster &cluster = what.rates.cluster();
  const char *name = options.target == "cpu"
                         ? "memory of the process beyond the arenas (code, stacks, libraries)"
                         : "device memory beyond the arenas (context, modules, handles of libraries)";
  const bool hasCommunicators = options.ranks > 1 && cluster.device.communicatorBytes > 0;
  const std::string source =
      std::string("device.context_bytes") + (hasCommunicators ? " and device.communicator_bytes" : "");
  for (report::RankPlan &rank : report.ranks)
    rank.memory.push_back(
        {name, "device", cluster.device.contextBytes, source + " of " + cluster.name, /*beyondArenas=*/true});
}

/// What the host of a GPU has of a rank's program. The process itself is not counted.
static void addHostMemory(report::PlanReport &report, const rt::Program &program) {
  if (program.target == "cpu")
    return;
  auto add = [&](const char *name, const char *where, uint64_t bytes, const std::string &source) {
    for (report::RankPlan &rank : report.ranks)
      if (bytes > 0)
        rank.memory.push_back({name, where, static_cast<int64_t>(bytes), source, /*beyondArenas=*/true});
  };
  const char *pinned = "host, page-locked";
  add("staging of inputs", pinned, rt::inputStagingBytes(program),
      "a place for each input of each micro-step: " + std::to_string(program.inputs.size()) + " x " +
          std::to_string(program.accumulation));
  add("marks of streams", pinned, rt::markBytes(program),
      "one for each stream: " + std::to_string(program.streams.size()));
  add("copy of a state", "host", rt::largestPartBytes(program),
      "the largest one, while states get their first values or are saved");
}

void ds::opt::addStoragePaths(report::PlanReport &report, const config::Zero &zero) {
  for (report::RankPlan &rank : report.ranks) {
    const bool isSplit = zero.parameterPath() != zero.statePath();
    const int64_t parameters = isSplit ? rank.nvmeParameters : 0;
    for (const auto &[path, bytes] :
         {std::pair(zero.statePath(), rank.nvmeArena - parameters), {zero.parameterPath(), parameters}})
      if (bytes > 0 && !path.empty())
        rank.nvmePaths.push_back({path, bytes});
  }
}

/// Of one rank's device, in the type that products are in; 0 without a cluster that describes it.
static double peakFlops(const Options &options, const ProgramCase &what) {
  if (options.clusterName().empty())
    return 0;
  const config::Precision &precision = what.config.precision;
  const config::DType dtype =
      precision.autocast ? precision.autocastDtype.value_or(config::DType::BF16) : precision.model;
  return cost::peakFlops(what.rates.cluster(), dtype);
}

report::PlanReport ds::opt::makeReport(const Model &model, const Options &options, const ProgramCase &what) {
  report::PlanReport report = mlir::ds::summarizePlan(*model.module, what.rates);
  report.model = modelName(options.input);
  report.world = what.config.mesh.ranks;
  report.inputs = inputsOfProgram(model, options, what.config, what.threads);
  report.memoryLimit = static_cast<int64_t>(options.memory);
  report.hostLimit = mlir::ds::getMachine(model.facts()).memory.host.value_or(0);
  report.peakFlops = peakFlops(options, what);
  report.run = options.run();
  report.hostsFit = mlir::ds::hostsHold(report, what.rates.cluster(), /*isShared=*/options.target == "cpu");
  addStoragePaths(report, what.config.zero);
  addBeyondArenas(report, options, what);
  for (mlir::ModuleOp stage : mlir::ds::getStages(*model.module))
    for (const mlir::ds::ProductChoice &choice : mlir::ds::productChoices(stage))
      report.products.push_back({choice.product, choice.form, choice.calls, choice.seconds});
  report.target = report.programTarget = options.target;
  report.programTargetReason = what.choices.target.reason;
  report.isPlanningOnly = what.choices.target.isPlanningOnly;
  if (report.isPlanningOnly)
    report.notes.push_back(what.choices.target.reason);
  report.tf32 = usesTf32(options, what.config);
  if (report.tf32)
    report.notes.push_back("products of fp32 factors keep 10 bits of their fractions (tf32); the predicted "
                           "step has them at the rate of fp32");
  else if (what.config.allowTf32)
    report.notes.push_back("allow_tf32 changes nothing on the CPU, which multiplies in fp32");
  if (what.config.fastAttention && options.target == "cpu")
    report.notes.push_back("attention fast changes nothing on the CPU, where two runs are equal to the bit");
  if (options.target != "cpu")
    report.notes.push_back("workspaces of products are budgets within which cuBLASLt chooses its algorithms");
  report.cluster = what.rates.cluster().name;
  report.basisReason = what.choices.basis.reason;
  if (options.cluster.empty()) {
    if (!options.clusterName().empty())
      report.clusterReason = "--target " + options.target + " stands for it where no --cluster is given";
    return report;
  }
  report.target = report.cluster;
  if (options.target == "cpu")
    report.notes.push_back("workspaces are those of the CPU's libraries with " +
                           std::to_string(what.threads) + " threads");
  return report;
}

Status ds::opt::checkTokens(const report::PlanReport &report) {
  if (!report.run || report.tokensPerStep > 0)
    return {};
  return Error{ExitCode::Invalid,
               "--tokens: " + report.model + " reads no tokens: none of its inputs is a matrix of integers",
               "leave --tokens out: the plan has the seconds of a step"};
}

/// Writes what is asked for beside the plan's text.
static Status writeViews(const Model &model, const Options &options, const ProgramCase &what,
                         const report::PlanReport &report) {
  if (!options.planJson.empty())
    if (Status status = writeText(options.planJson, report::printPlanJson(report)); !status)
      return status;
  if (!options.asksForPictures())
    return {};
  std::vector<report::PlanTimeline> timelines;
  for (mlir::ModuleOp stage : mlir::ds::getStages(*model.module)) {
    timelines.push_back(mlir::ds::timelineOfPlan(stage, what.rates));
    timelines.back().title = report.model + " for " + report.target;
    if (mlir::ds::hasStages(*model.module))
      timelines.back().title += ", stage " + std::to_string(timelines.size() - 1);
  }
  return writePictures(options, report, timelines);
}

/// How the program drives its storage; more than a disk could make use of counts as that.
static rt::StorageSettings storageSettings(const config::Config &config) {
  constexpr int64_t kMostBlock = int64_t(1) << 30, kMostRequests = 1024;
  const auto requests = [=](int64_t count) { return static_cast<uint32_t>(std::min(count, kMostRequests)); };
  rt::StorageSettings settings;
  settings.path = config.zero.statePath();
  if (config.zero.parameterPath() != settings.path)
    settings.parameterPath = config.zero.parameterPath();
  settings.blockBytes = static_cast<uint64_t>(std::min(config.aio.blockSize, kMostBlock));
  settings.queueDepth = requests(config.aio.queueDepth);
  settings.parallelism = requests(config.aio.intraOpParallelism);
  settings.singleSubmit = config.aio.singleSubmit;
  settings.overlapEvents = config.aio.overlapEvents;
  return settings;
}

/// What the program's runs are to tell.
static rt::WatchSettings watchSettings(const config::Watch &from) {
  auto monitor = [](const config::Monitor &each) {
    return each.enabled ? std::optional(rt::MonitorSettings{each.outputPath, each.jobName}) : std::nullopt;
  };
  rt::WatchSettings watch;
  watch.stepsPerPrint = static_cast<uint64_t>(from.stepsPerPrint);
  watch.tensorboard = monitor(from.tensorboard);
  watch.csv = monitor(from.csv);
  watch.comms = from.comms;
  const config::Profiler &profiler = from.profiler;
  constexpr int64_t kMost = INT32_MAX;
  if (profiler.enabled)
    watch.profile = rt::ProfileSettings{
        static_cast<uint64_t>(profiler.step), static_cast<int32_t>(std::min(profiler.depth, kMost)),
        static_cast<uint32_t>(std::min(profiler.top, kMost)), profiler.detailed, profiler.output};
  return watch;
}

/// Writes the program and, beside it, the weights that came with the model.
static Status writeProgramFiles(Model &model, const Options &options, const config::Config &config,
                                rt::Program &program) {
  tellNotes();
  if (Status status = addKernels(model, options, program); !status)
    return status;
  program.configText = config::summarizeConfig(config);
  program.storage = storageSettings(config);
  program.watch = watchSettings(config.watch);
  const std::string weights = options.weightsOutput();
  if (!weights.empty())
    program.weightsFile = llvm::sys::path::filename(weights).str();
  program.planHash = rt::hashPlan(program);
  if (Status status = rt::writeProgram(program, options.output); !status)
    return status;
  if (weights.empty())
    return {};
  if (const int error = model.weights.keep(weights))
    return Error{ExitCode::Io, weights + ": " + llvm::sys::StrError(error),
                 "check that the directory is writable"};
  return {};
}

/// Prints the answers. DoesNotFit where the answer is that no batch and no sequence fits.
static Status writeAnswers(const Options &options, const ProgramCase &what,
                           const report::PlanReport &report) {
  if (Status status = writeText(options.output, printQueries(options, report, what.rules() != nullptr));
      !status)
    return status;
  return someFit(report) ? Status() : report::doesNotFit(report);
}

/// Threads of the host stream: a share of a CPU rank's, or of what a device has of its host's cores.
static uint32_t hostThreads(const Options &options, const ProgramCase &what) {
  const config::Cluster &cluster = what.rates.cluster();
  int64_t cores = what.threads;
  if (options.target != "cpu")
    cores =
        cluster.host.cores / std::max<int64_t>(1, std::min(what.config.mesh.ranks, cluster.devicesPerNode));
  return std::max<uint32_t>(1, std::ceil(what.config.zero.offloadOptimizer.cpuAdamCores * double(cores)));
}

/// What the machine of `what` has beside its devices. The memory of a CPU's rank is its host's.
static Elsewhere elsewhere(const Options &options, const ProgramCase &what) {
  const config::Cluster &cluster = what.rates.cluster();
  return {options.target != "cpu" && cluster.host.memoryBytes > 0, cluster.nvme.bytes > 0};
}

/// A plan's tables need so many columns; on a narrower terminal, and behind them, lines are broken at words.
static constexpr size_t kLeastWidth = 60, kIndent = 4;

/// What would make a plan fit that does not, where the options ask for it.
static void addChanges(const Options &options, const ProgramCase &what, report::PlanReport &report) {
  if (report.fits() || !options.wantsChanges)
    return;
  if (what.planAgain)
    if (std::optional<std::string> note = noteEarlyUpdates(options, what.config, what.planAgain, report))
      report.notes.push_back(*note);
  if (what.planIfFits)
    if (std::optional<report::PlanChoice> change =
            changeOfProgram(options, what.config, what.planIfFits, elsewhere(options, what),
                            what.rules() ? expectByRules(*what.rules(), report, options) : planner::Expect()))
      report.changes.push_back(*change);
  const bool isFound = !report.changes.empty();
  if (what.rules())
    llvm::append_range(report.changes, changesWithoutPass(*what.rules(), report));
  if (what.planIfFits && !isFound) { // another job, so it comes last
    std::optional<int64_t> longest;
    if (what.rules())
      longest = longestSequence(what.rules()->shape, what.rules()->plan, what.rules()->rates.cluster());
    if (std::optional<report::PlanChoice> shorter =
            planner::shorterSamples(options, what.config, what.planIfFits, longest))
      report.changes.push_back(*shorter);
  }
}

/// Prints the plan: to a file, or for the terminal that reads it.
static Status writePlanText(const Options &options, const ProgramCase &what,
                            const report::PlanReport &report) {
  report::TextOptions text;
  text.colour = options.output == "-" && llvm::sys::Process::StandardOutHasColors();
  const size_t columns = options.output == "-" ? terminalColumns(STDOUT_FILENO) : 0;
  if (columns > 0)
    text.width = static_cast<unsigned>(std::clamp<size_t>(columns, kLeastWidth, text.width));
  std::string peaks = options.explainPeak ? explainPeaks(report) : "";
  const std::string head = options.isBare ? describeBare(options, what.config, report) : "";
  return writeText(options.output,
                   wrapLines(head + report::printPlanText(report, text) + peaks, columns, kIndent));
}

Status ds::opt::writePlanAndProgram(Model &model, const Options &options, const ProgramCase &what) {
  mlir::ds::ProgramOptions programOptions;
  programOptions.hostThreads = hostThreads(options, what);
  programOptions.microBatch = what.config.batch.micro;
  programOptions.accumulation = what.config.batch.accumulation;
  report::PlanReport report = makeReport(model, options, what);
  if (Status status = checkTokens(report); !status)
    return status;
  programOptions.stepSeconds = report.predicted.stepSeconds.value_or(0);
  mlir::FailureOr<rt::Program> program = mlir::ds::lowerToProgram(*model.module, programOptions);
  if (failed(program))
    return Error{ExitCode::Internal, "the planned module could not be lowered", "please report this model"};
  program->target = options.target;
  program->predicted.peakFlopsPerSecond = report.peakFlops;
  program->tf32 = usesTf32(options, what.config);
  addHostMemory(report, *program);
  addChanges(options, what, report);
  if (options.explainPeak && what.planAgain && report.changes.empty())
    report.smaller = smallerPlansOfProgram(options, what.config, what.planAgain,
                                           report.ranks.front().deviceArena, elsewhere(options, what));
  bool asks = !options.question().empty();
  const size_t ofPresent = report.notes.size();
  if (asks)
    if (Status status = addQueries(options, what.config, what.planAgain, what.ranking, report); !status)
      return status;
  if (Status status = writeViews(model, options, what, report); !status)
    return status;
  if (asks) {
    report.notes.erase(report.notes.begin(),
                       report.notes.begin() + ofPresent); // it has a question of its own
    return writeAnswers(options, what, report);
  }
  if (options.emit != Emit::Program)
    if (Status status = writePlanText(options, what, report); !status)
      return status;
  if (!report.fits())
    return report::doesNotFit(report);
  return options.emit == Emit::Program ? writeProgramFiles(model, options, what.config, *program) : Status();
}
