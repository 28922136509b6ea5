//===- Driver.cpp - What ds-opt does with its arguments --------------------------===//
//
// Reads top to bottom as the way of a model through the house: configuration, model, phases, plan, program.
//
//===---------------------------------------------------------------------------===//
#include "Driver.h"

#include "AnalyticPlan.h"
#include "CommandLine/Basis.h"
#include "CommandLine/CheckOptions.h"
#include "CommandLine/InputGuard.h"
#include "CommandLine/Length.h"
#include "CommandLine/LineErrors.h"
#include "CommandLine/ModelFile.h"
#include "CommandLine/Notes.h"
#include "CommandLine/Options.h"
#include "CommandLine/Target.h"
#include "Model.h"
#include "Output.h"
#include "RunPasses.h"
#include "RunPhases.h"
#include "Surroundings.h"
#include "ds/Codegen/CompileCuda.h"
#include "ds/Codegen/CompileKernels.h"
#include "ds/Config/Config.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Pipeline.h"
#include "ds/Planner/FirstDiagnostic.h"
#include "ds/Planner/PlanModel.h"
#include "ds/Planner/ProgramQueries.h"
#include "ds/Planner/Proposal.h"
#include "ds/Support/HostMemory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/Support/MemoryBuffer.h"

#include <limits>
#include <memory>

using namespace ds;
using namespace ds::opt;
using namespace ds::planner;

/// What the pipelines need of the command line and the configuration.
static mlir::ds::PipelineOptions pipelineOptions(const Options &options, const config::Config &config) {
  mlir::ds::PipelineOptions result;
  result.tuning = options.tuning;
  result.partition = config.pipeline.partition;
  result.schedule = options.pipelineSchedule.empty() ? config.pipeline.schedule : options.pipelineSchedule;
  // "auto" leaves them to memory and time alone.
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  result.prefetchElements = config.zero.prefetchBucketSize.value_or(kNoLimit);
  result.maxLiveElements = config.zero.maxLiveParameters.value_or(kNoLimit);
  result.maxReuseElements = config.zero.maxReuseDistance.value_or(kNoLimit);
  // Twice what may be under way: a queue that runs empty between two pieces is idle for a moment only.
  constexpr int64_t kMiB = 1 << 20, kMost = 64 * kMiB;
  const config::Aio &aio = config.aio;
  int64_t underWay = 0;
  if (__builtin_mul_overflow(aio.blockSize, 2 * std::min<int64_t>(aio.queueDepth, 1024), &underWay) ||
      __builtin_mul_overflow(underWay, std::min<int64_t>(aio.intraOpParallelism, 1024), &underWay))
    underWay = kMost;
  result.stagingBytes = llvm::alignTo(std::clamp(underWay, kMiB, kMost), kMiB);
  const config::OffloadParam &parameters = config.zero.offloadParam;
  if (parameters.device == config::Home::Nvme && parameters.bufferSize < result.stagingBytes / 4)
    result.stagingBytes = llvm::alignTo(std::max<int64_t>(4 * parameters.bufferSize, 1), 4096);
  result.subGroupElements = config.zero.subGroupSize.value_or(0);
  auto isOff = [&](const char *key) {
    const config::Setting *setting = config.find(key);
    return setting && setting->origin != config::Origin::Default && setting->value == "false";
  };
  if (isOff("zero_optimization.offload_optimizer.pipeline_read") &&
      isOff("zero_optimization.offload_optimizer.pipeline_write"))
    result.stagingSets = 1;
  const config::OffloadOptimizer &optimizer = config.zero.offloadOptimizer;
  const config::Setting *late = config.find("late_updates");
  if (optimizer.device == config::Home::Cpu && !optimizer.superOffload && late && late->value != "false")
    result.lateUpdates =
        late->value == "true" ? mlir::ds::LateUpdates::Always : mlir::ds::LateUpdates::Chosen;
  return result;
}

/// Reads a configuration as --ignore-unavailable asks for.
static Result<config::Config> readConfiguration(const Options &options, const config::ConfigSource &source) {
  return options.ignoreUnavailable ? config::readIgnoringUnavailable(source) : config::readConfig(source);
}

/// The configuration that the arguments give; a micro-batch that it leaves open follows the first `--input`.
static Result<config::Config> readConfiguration(const Options &options, const config::Cluster &cluster) {
  config::ConfigSource source;
  source.ranksPerNode = cluster.devicesPerNode;
  source.path = options.config;
  source.text = options.configText;
  source.sets = options.sets;
  source.ranks = options.ranks;
  source.allowUnknownKeys = options.allowUnknownKeys;
  source.totalSteps = options.steps;
  // An --input that is misspelt is refused by who reads the model.
  if (!options.inputs.empty())
    if (std::vector<int64_t> sizes = sizesOfInput(options.inputs.front()); !sizes.empty())
      source.modelBatch = sizes.front();
  Result<config::Config> config = readConfiguration(options, source);
  if (config || options.planChoice.empty())
    return config;
  // The search has yet to choose the degrees: the batch need not be a multiple of all ranks.
  source.ranks = 1;
  Result<config::Config> whole = readConfiguration(options, source);
  const config::Setting *batch = whole ? whole->find("train_batch_size") : nullptr;
  if (!batch || (batch->origin != config::Origin::File && batch->origin != config::Origin::Set))
    return config;
  whole->mesh.ranks = options.ranks;
  return whole;
}

/// Settles what a program for a cluster is made for: a plan unless something else is asked for, within the
/// memory of the cluster's device, or of this machine.
static Status prepareProgram(Options &options, const config::Cluster &cluster) {
  if (!options.question().empty())
    options.emit = Emit::Plan;
  const bool isNamed = !options.cluster.empty();
  if (isNamed && options.emit == Emit::Default)
    options.emit = Emit::Plan;
  const bool isPlanned = options.emit == Emit::Plan || options.emit == Emit::Program;
  if (isNamed || (isPlanned && !options.clusterName().empty()))
    options.memory = static_cast<uint64_t>(cluster.device.memoryBytes - cluster.device.contextBytes);
  if (options.memory == 0 && isPlanned) {
    Result<HostMemory> memory = hostMemory();
    if (!memory)
      return memory.error();
    options.memory = memory->bytes;
  }
  if (!options.isClusterRead) // which has taken it
    options.memory -= static_cast<uint64_t>(options.margin * static_cast<double>(options.memory));
  return {};
}

/// Reads the model of other options than the ones that were asked for, without a word on the way, and does
/// `work` with it. The first diagnostic of what fails stands in the error: nobody has seen it.
template <class Work>
static auto readAgain(Options options, mlir::DialectRegistry &registry, Work work)
    -> decltype(work(std::declval<Model &>(), options, std::declval<const ProgramCase &>())) {
  options.quiet = true;
  options.emit = Emit::Plan; // no weights
  Result<config::Cluster> cluster = clusterFor(options);
  if (!cluster)
    return cluster.error();
  Result<config::Config> config = readConfiguration(options, *cluster);
  if (!config)
    return config.error();
  if (Status status = config::checkForProgram(*config); !status)
    return status.error();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  const FirstDiagnostic quiet(&context);
  Result<Model> model = loadModel(options, *config, context);
  if (!model)
    return quiet.explain(model.error());
  const auto threads = static_cast<uint32_t>(mlir::ds::getMachine(model->facts()).threads);
  auto result =
      work(*model, options, ProgramCase{*config, cost::Rates(*cluster), Choices(), threads, {}, {}});
  return result ? std::move(result) : quiet.explain(result.error());
}

/// `options` with other settings.
static Options withSettings(const Options &options, const PlanSettings &settings) {
  Options changed = options;
  static_cast<PlanSettings &>(changed) = settings;
  return changed;
}

/// Takes a model as far as a plan, which it reports; where `isGivenUp`, only if what is chosen of it is not
/// far from fitting.
static Result<report::PlanReport> planAndReport(Model &model, const Options &options, const ProgramCase &what,
                                                bool isGivenUp) {
  mlir::ds::PipelineOptions pipelines = pipelineOptions(options, what.config);
  pipelines.givesUp = isGivenUp;
  if (Status status = runPhases(*model.module, "planned", pipelines); !status)
    return status.error();
  return makeReport(model, options, what);
}

/// Plans other settings of the same command line; where `isGivenUp`, unless what is chosen is far from
/// fitting.
static PlanFunction planFunction(const Options &options, mlir::DialectRegistry &registry,
                                 bool isGivenUp = false) {
  return [&options, &registry, isGivenUp](const PlanSettings &settings) {
    return readAgain(withSettings(options, settings), registry,
                     [&](Model &model, const Options &changed, const ProgramCase &what) {
                       return planAndReport(model, changed, what, isGivenUp);
                     });
  };
}

/// Plans what other configurations than that of the command line ask for, within `memory` of a device. An
/// `--input` is as it was given, but for the samples of a micro-batch.
static ConfigPlanner configPlanner(const Options &options, const config::Config &config, uint64_t memory,
                                   mlir::DialectRegistry &registry) {
  return [&options, &config, memory, &registry](const std::string &text, int64_t microBatch) {
    Proposal resized(options, config);
    if (!options.inputs.empty())
      if (std::vector<int64_t> sizes = sizesOfInput(options.inputs.front()); !sizes.empty())
        resized.resizeInputs(0, sizes.front(), microBatch);
    resized.settings.sets.clear();
    Options changed = withSettings(options, resized.settings);
    changed.config = "the configuration of --plan auto";
    changed.configText = text;
    changed.planChoice.clear();
    changed.memory = memory;
    return readAgain(changed, registry, [](Model &model, const Options &read, const ProgramCase &what) {
      return planAndReport(model, read, what, /*isGivenUp=*/false);
    });
  };
}

/// What says which plans are worth making: `rules`, and plans that hold as little as can be.
static Ranking makeRanking(const AnalyticCase &rules, const Options &options,
                           mlir::DialectRegistry &registry) {
  const Error failed{ExitCode::Invalid, "the model could not be planned", ""};
  auto form = std::make_shared<mlir::ds::LeastForm>();
  auto expect = [form, failed](Model &model, const Options &changed,
                               const ProgramCase &what) -> Result<int64_t> {
    mlir::ds::PipelineOptions pipelines = pipelineOptions(changed, what.config);
    mlir::FailureOr<int64_t> bytes = expectLeast(*model.module, pipelines, runPipeline, *form);
    if (mlir::failed(bytes))
      return failed;
    return *bytes;
  };
  auto plan = [form, failed](Model &model, const Options &changed,
                             const ProgramCase &what) -> Result<report::PlanReport> {
    mlir::ds::PipelineOptions pipelines = pipelineOptions(changed, what.config);
    if (mlir::failed(planLeast(*model.module, pipelines, runPipeline, *form)))
      return failed;
    return makeReport(model, changed, what);
  };
  return {rules,
          [&options, &registry, expect](const PlanSettings &settings) {
            return readAgain(withSettings(options, settings), registry, expect);
          },
          [&options, &registry, plan](const PlanSettings &settings) {
            return readAgain(withSettings(options, settings), registry, plan);
          }};
}

/// Takes a model as far as it is asked for, and writes it or what was found out about it.
static Status compileModel(const Options &options, config::Config &config, const config::Cluster &cluster,
                           const Choices &choices, mlir::DialectRegistry &registry) {
  mlir::MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  context.loadAllAvailableDialects(); // code generation builds ops of dialects that no input names
  Result<Model> model = loadModel(options, config, context);
  if (!model)
    return model.error();
  const auto threads = static_cast<uint32_t>(mlir::ds::getMachine(model->facts()).threads);
  bool isIr = options.emit == Emit::Ir || options.emit == Emit::Default;
  mlir::ds::PipelineOptions pipelines = pipelineOptions(options, config);
  const bool isRead = options.emit == Emit::Plan || !options.planJson.empty() || !options.planHtml.empty();
  pipelines.comparesLosses = isRead && options.question().empty();
  if (Status status = runPhases(*model->module, isIr ? options.phase : "planned", pipelines); !status)
    return status;
  if (isIr)
    return writeIr(*model, options);
  std::optional<Result<AnalyticCase>> rules;
  if (choices.basis.isRanked) {
    Options silent = options; // the model's notices were printed where it was read
    silent.quiet = true;
    rules = readAnalyticCase(silent, config, cluster);
  }
  std::optional<Ranking> ranking;
  if (rules && *rules)
    ranking.emplace(makeRanking(**rules, options, registry));
  return writePlanAndProgram(*model, options,
                             {config, cost::Rates(cluster), choices, threads, planFunction(options, registry),
                              planFunction(options, registry, /*isGivenUp=*/true),
                              ranking ? &*ranking : nullptr});
}

/// Puts the text of the table that is named in the place of its name.
static Status readSchedule(Options &options) {
  if (options.pipelineSchedule.empty())
    return {};
  auto text = readNamed(options.pipelineSchedule);
  if (!text)
    return Error{ExitCode::Io,
                 "--pipeline-schedule " + options.pipelineSchedule + ": " + text.getError().message(),
                 "check the path"};
  options.pipelineSchedule = (*text)->getBuffer().str();
  if (options.pipelineSchedule.empty())
    return Error{ExitCode::Invalid, "--pipeline-schedule: the table is empty",
                 "give each stage a line, as docs/pipelines.md has it"};
  return {};
}

/// Compiles: everything after the command line is known to make sense.
static ExitCode compile(Options options, mlir::DialectRegistry &registry) {
  Result<config::Cluster> cluster = clusterFor(options);
  if (!cluster)
    return complain(cluster.error());
  Result<Target> target = chooseTarget(options, *cluster);
  if (!target)
    return complain(target.error());
  options.target = target->name;
  if (Status status = readSchedule(options); !status)
    return complain(status.error());
  Result<config::Config> config = readConfiguration(options, *cluster);
  if (!config)
    return complain(config.error());
  if (Status status = settleLength(options, *config); !status)
    return complain(status.error());
  addNotes(config->notices);
  if (options.printConfig) {
    Status status = writeText("-", config::printConfig(*config, *options.printConfig));
    return status ? ExitCode::Ok : complain(status.error());
  }
  Result<Basis> basis = chooseBasis(options, *config);
  if (!basis)
    return complain(basis.error());
  if (!basis->isProgram) {
    const auto memory = static_cast<uint64_t>(cluster->device.memoryBytes - cluster->device.contextBytes);
    Status status = answerByRules(options, *config, *cluster, basis->reason,
                                  configPlanner(options, *config, memory, registry));
    return status ? ExitCode::Ok : complain(status.error());
  }
  if (Status status = prepareProgram(options, *cluster); !status)
    return complain(status.error());
  if (options.emit == Emit::Program || options.emit == Emit::Plan)
    if (Status status = checkKeys(options, *config); !status)
      return complain(status.error());
  Status written = compileModel(options, *config, *cluster, {*basis, *target}, registry);
  return written ? ExitCode::Ok : complain(written.error());
}

ExitCode ds::opt::run(int argc, char **argv) {
  prepareSurroundings();
  mlir::DialectRegistry registry;
  registerEverything(registry);
  Options options = parseOptions(argc, argv, registry);
  if (!options.diff.empty()) {
    Status status = diffFiles(options.diff[0], options.diff[1]);
    return status ? ExitCode::Ok : complain(status.error());
  }
  if (Status status = checkPlanner(options); !status)
    return complain(status.error());
  if (Status status = checkFiles(options); !status)
    return complain(status.error());
  if (Status status = checkModelFile(options); !status)
    return complain(status.error());
  const bool writesBytecode =
      options.isPlainMlirOpt() && mlir::MlirOptMainConfig::createFromCLOptions().shouldEmitBytecode();
  if (Status status = checkTerminal(options, writesBytecode); !status)
    return complain(status.error());
  if (options.inputKind() == InputKind::Mlir)
    if (Status status = guardInput(options.input, registry); !status)
      return complain(status.error());
  if (options.isPlainMlirOpt())
    return runPasses(argc, argv, options, registry);
  if (Status status = checkPasses(registry); !status)
    return complain(status.error());
  if (Status status = checkOptions(options); !status)
    return complain(status.error());
  if (options.inputKind() == InputKind::Mlir && !options.printConfig)
    if (Status status = guardText(options.input, registry); !status)
      return complain(status.error());
  return compile(options, registry);
}
