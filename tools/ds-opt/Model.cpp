//===- Model.cpp - A model as MLIR, wherever it came from ------------------------===//
#include "Model.h"

#include "CommandLine/Notes.h"
#include "SetOverlay.h"
#include "StagedModel.h"
#include "TrainedPart.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Training.h"
#include "ds/Import/HfModel.h"
#include "ds/Import/ImportClient.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/TrainingFromConfig.h"
#include "ds/Support/Messages.h"
#include "ds/Support/Processors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace ds;
using namespace ds::opt;

std::string ds::opt::modelName(llvm::StringRef path) {
  llvm::StringRef file = llvm::sys::path::filename(path);
  if (file != "config.json")
    return printableName(file);
  llvm::SmallString<256> full(path);
  llvm::sys::fs::make_absolute(full);
  llvm::sys::path::remove_dots(full, /*remove_dot_dot=*/true);
  llvm::StringRef folder = llvm::sys::path::filename(llvm::sys::path::parent_path(full));
  return folder.empty() || folder == "/" ? file.str() : printableName(folder);
}

llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> ds::opt::readNamed(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (const std::string shown = printableName(path); buffer && shown != path)
    return llvm::MemoryBuffer::getMemBufferCopy((*buffer)->getBuffer(), shown);
  return buffer;
}

/// Imports a TorchScript archive; the weights are only read out when a program is to be written.
static Status importArchive(const Options &options, Model &model, std::string &text) {
  ImportRequest request;
  request.path = options.input;
  request.inputs = options.inputs;
  request.loss = options.loss;
  request.memoryBytes = options.importMemory;
  request.seconds = options.importSeconds;
  request.allowUnsandboxed = options.allowUnsandboxed;
  request.wantWeights = !options.weightsOutput().empty();
  if (request.wantWeights) // beside the program, where they stay
    request.weightsDirectory = directoryOf(options.output);
  Result<ImportedModel> imported = importTorchScript(request);
  if (!imported)
    return imported.error();
  for (const std::string &notice : options.quiet ? std::vector<std::string>() : imported->notices)
    addNote({notice, /*isCostly=*/true}); // few, and of what cannot be seen elsewhere
  model.weights = std::move(imported->weights);
  text = std::move(imported->mlirText);
  return {};
}

/// Says where the weights are that belong to a config.json, if they lie beside it.
static void noticeWeights(const Options &options) {
  llvm::SmallString<256> file;
  for (const char *name : {"model.safetensors.index.json", "model.safetensors"}) {
    file = llvm::sys::path::parent_path(options.input);
    llvm::sys::path::append(file, name);
    if (options.emit == Emit::Program && llvm::sys::fs::exists(file)) {
      addNote({("'" + file + "' lies beside the configuration; ds-run --weights " + file + " starts from it")
                   .str(),
               /*isCostly=*/true});
      return;
    }
  }
}

HfRequest ds::opt::hfRequest(const Options &options, const config::Config &config) {
  const config::Precision &precision = config.precision;
  const config::DType dtype =
      precision.autocast ? precision.autocastDtype.value_or(config::DType::BF16) : precision.model;
  const char *name = dtype == config::DType::F32    ? "float32"
                     : dtype == config::DType::BF16 ? "bfloat16"
                     : dtype == config::DType::F16  ? "float16"
                                                    : "";
  return {options.input, options.inputs, config.batch.micro, name};
}

/// Builds the model that a config.json describes.
static Status buildFromConfig(const Options &options, const config::Config &config,
                              mlir::MLIRContext &context, Model &model) {
  Result<HfModel> built = buildHfModel(hfRequest(options, config), context);
  if (!built)
    return built.error();
  if (!options.quiet)
    addNotes(built->notices);
  noticeWeights(options);
  model.module = std::move(built->module);
  return {};
}

/// The shape of an input, which is a tensor or a buffer.
static mlir::RankedTensorType tensorOf(mlir::Type type) {
  auto buffer = mlir::dyn_cast<mlir::ds::BufferType>(type);
  return buffer ? buffer.getTensor() : mlir::dyn_cast<mlir::RankedTensorType>(type);
}

/// The functions of `module` and of all its stages, in order.
static llvm::SmallVector<mlir::func::FuncOp> functionsOf(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::func::FuncOp> functions;
  for (mlir::ModuleOp stage : mlir::ds::getStages(module))
    llvm::append_range(functions, stage.getOps<mlir::func::FuncOp>());
  return functions;
}

/// Makes the micro-batch that of the first batch argument: MLIR that comes without a configuration says it
/// itself.
static void inferBatch(mlir::ModuleOp module, config::Config &config) {
  for (mlir::func::FuncOp func : functionsOf(module))
    for (unsigned index = 0; index < func.getNumArguments(); ++index) {
      mlir::RankedTensorType type = tensorOf(func.getArgumentTypes()[index]);
      if (!func.getArgAttr(index, mlir::ds::DsDialect::kInputAttr) || !type || type.getRank() == 0)
        continue;
      config::setMicroBatch(config, type.getDimSize(0));
      return;
    }
}

/// What was asked for of `training`: without the two entries that planning settles where they were left open.
static mlir::ds::TrainingOptions askedOf(mlir::ds::TrainingOptions training) {
  training.lossChunks = 0;
  training.givesLogits = false; // of the command line, and no key of a configuration
  training.sharding.reduceEachMicroStep.reset();
  return training;
}

/// The optimizer as DeepSpeed spells it.
static llvm::StringRef nameOf(const mlir::ds::OptimizerOptions &optimizer) {
  using Kind = mlir::ds::OptimizerOptions::Kind;
  switch (optimizer.kind) {
  case Kind::Sgd:
    return "SGD";
  case Kind::Adam:
    return optimizer.decoupledDecay ? "AdamW" : "Adam";
  case Kind::Adagrad:
    return "Adagrad";
  case Kind::Lion:
    return "Lion";
  case Kind::Lamb:
    return "Lamb";
  }
  llvm_unreachable("an optimizer without a name");
}

/// Puts the module's optimizer in the place of the default among the settings that programs and checkpoints
/// keep, for by that name checkpoints of others are refused. What --set asks for stays.
static void adoptOptimizer(const mlir::ds::OptimizerOptions &optimizer, config::Config &config) {
  llvm::erase_if(config.settings, [](const config::Setting &setting) {
    llvm::StringRef key(setting.key);
    return key == "optimizer.type" || (setting.origin != config::Origin::Set &&
                                       (key.starts_with("optimizer.") || key.starts_with("scheduler.")));
  });
  config::Setting type;
  type.key = "optimizer.type";
  type.value = ("\"" + nameOf(optimizer) + "\"").str();
  type.origin = config::Origin::Derived;
  type.from = "ds.training of the module";
  config.settings.push_back(type);
}

/// Makes `config` have the mesh of `module`.
static Status adoptMesh(mlir::ModuleOp module, const Options &options, config::Config &config) {
  const mlir::ds::MeshShape shape = mlir::ds::getMeshShape(module);
  const auto ranks = static_cast<int64_t>(shape.mesh.size());
  if (options.ranksGiven && options.ranks != ranks)
    return Error{ExitCode::Invalid,
                 "--ranks " + std::to_string(options.ranks) + ", but the module's ds.mesh has " +
                     std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks: " + shape.mesh.spell()),
                 "leave --ranks out, or give the configuration too and start from the model"};
  auto sizeOf = [&](const char *axis) -> int64_t {
    return shape.mesh.size(shape.mesh.find(axis).value_or(rt::AxisSet()));
  };
  const int64_t stages = shape.stages.isEmpty() ? sizeOf("pp") : shape.mesh.size(shape.stages);
  config.mesh = {ranks, shape.mesh.size(shape.samples), sizeOf("tp"), stages, sizeOf("sp")};
  config.batch.global = config.batch.micro * config.batch.accumulation * config.mesh.dp;
  return {};
}

/// Makes `config` say what MLIR says of its training, where no configuration was given or comes too late.
static Status adoptTraining(mlir::ModuleOp module, const Options &options, config::Config &config) {
  if (Status status = adoptMesh(module, options, config); !status)
    return status;
  const mlir::ds::TrainingOptions training = mlir::ds::getTraining(module);
  adoptOptimizer(training.optimizer, config);
  config.batch.accumulation = training.accumulation;
  config.batch.global = config.batch.micro * config.batch.accumulation * config.mesh.dp;
  return {};
}

/// Says of `module` how it is trained.
static Status setTraining(mlir::ModuleOp module, const mlir::ds::TrainingOptions &training,
                          const Options &options) {
  if (succeeded(mlir::ds::setTraining(module, training)))
    return {};
  return Error{ExitCode::Invalid, options.input + ": cannot be trained so", "the diagnostics above say why"};
}

/// Says of `module` how `config` asks for it to be trained, and by which ranks. A mesh that MLIR declares
/// stays where no configuration was given.
static Status setFromConfig(mlir::ModuleOp module, const Options &options, config::Config &config) {
  if (!options.config.empty() || !mlir::ds::MeshOp::lookup(module))
    mlir::ds::declareMesh(module, mlir::ds::meshFromConfig(config));
  else if (Status status = adoptMesh(module, options, config); !status)
    return status;
  return setTraining(module, mlir::ds::trainingFromConfig(config, options.noDecay), options);
}

/// Changes how `module` says that it is trained by what `--set` alone asks for, and says so.
static Status applySets(mlir::ModuleOp module, const mlir::ds::TrainingOptions &own,
                        const mlir::ds::TrainingOptions &asked, const Options &options,
                        config::Config &config) {
  config::ConfigSource source;
  source.ranks = options.ranks;
  Result<config::Config> defaults = config::readConfig(source);
  if (!defaults)
    return defaults.error();
  Result<mlir::ds::TrainingOptions> merged =
      overlaySets({own, mlir::ds::trainingFromConfig(*defaults, options.noDecay), asked}, config);
  if (!merged)
    return merged.error();
  if (Status status = setTraining(module, *merged, options); !status)
    return status;
  const std::string changed = llvm::join(differingKeys(own, *merged), ", ");
  if (!options.quiet && !changed.empty())
    addNote({options.input + ": --set takes the place of what ds.training says of " + changed,
             /*isCostly=*/true});
  return adoptTraining(module, options, config);
}

/// Settles how `model`, which came as MLIR, is trained: as the configuration says where one was given, and
/// as the module says otherwise. A step that is built already can no longer be changed.
static Status settleTraining(Model &model, const Options &options, config::Config &config) {
  mlir::ModuleOp module = model.facts();
  const bool isGiven = !options.config.empty() || !options.sets.empty();
  const bool hasOwn = module->hasAttr(mlir::ds::DsDialect::kTrainingAttr);
  const mlir::ds::TrainingOptions own = mlir::ds::getTraining(module);
  if (!isGiven || config.batch.microIsOpen)
    inferBatch(*model.module, config);
  model.hasOwnTraining = hasOwn && options.config.empty();
  if (!isGiven && hasOwn)
    return adoptTraining(module, options, config);
  mlir::FailureOr<mlir::ds::Phase> phase = mlir::ds::phaseOf(module);
  if (failed(phase))
    return Error{ExitCode::Invalid, options.input + ": is no valid model", "the diagnostics above say where"};
  const mlir::ds::TrainingOptions asked = mlir::ds::trainingFromConfig(config, options.noDecay);
  if (*phase == mlir::ds::Phase::Model && model.hasOwnTraining)
    return applySets(module, own, asked, options, config);
  if (*phase == mlir::ds::Phase::Model || !hasOwn)
    return setFromConfig(module, options, config);
  if (askedOf(own) == askedOf(asked) && mlir::ds::getMeshShape(module) == mlir::ds::meshFromConfig(config))
    return {};
  return Error{ExitCode::Invalid,
               options.input + ": is in phase " + mlir::ds::stringifyPhase(*phase).str() +
                   ", and its step is built for another configuration",
               "leave the configuration out, or start from the model"};
}

/// Says of `module` which entries the step has that is to be built.
static Status settleEntries(mlir::ModuleOp module, const Options &options, const config::Config &config) {
  if (options.entry.empty())
    return {};
  if (config.mesh.pp > 1)
    return Error{ExitCode::Invalid,
                 "--entry " + options.entry + ": a program of several stages has no entries yet",
                 "make another of one stage for ds-run --sample: it reads the same weights"};
  mlir::FailureOr<mlir::ds::Phase> phase = mlir::ds::phaseOf(module);
  if (failed(phase))
    return Error{ExitCode::Invalid, options.input + ": is no valid model", "the diagnostics above say where"};
  mlir::ds::TrainingOptions training = mlir::ds::getTraining(module);
  if (*phase != mlir::ds::Phase::Model && !training.givesLogits)
    return Error{ExitCode::Invalid,
                 options.input + ": --entry " + options.entry + ": is in phase " +
                     mlir::ds::stringifyPhase(*phase).str() + ", and its step is built without",
                 "start from the model"};
  training.givesLogits = true;
  return setTraining(module, training, options);
}

/// Checks dimension 0 of every input against the configured micro-batch.
static Status checkBatch(mlir::ModuleOp module, const config::Config &config) {
  for (mlir::func::FuncOp func : functionsOf(module))
    for (unsigned index = 0; index < func.getNumArguments(); ++index) {
      auto name = func.getArgAttrOfType<mlir::StringAttr>(index, mlir::ds::DsDialect::kInputAttr);
      mlir::RankedTensorType type = tensorOf(func.getArgumentTypes()[index]);
      if (!name || !type || type.getRank() == 0 || type.getDimSize(0) == config.batch.micro)
        continue;
      return Error{
          ExitCode::Invalid,
          "--input " + name.str() + ": dimension 0 is " + std::to_string(type.getDimSize(0)) +
              ", but the configured micro-batch is " + std::to_string(config.batch.micro),
          "make them equal: train_micro_batch_size_per_gpu counts the samples of one micro-step on one rank"};
    }
  return {};
}

/// Loads the text of `options.input` as MLIR.
static Status parseInput(const Options &options, const std::string &text, mlir::MLIRContext &context,
                         Model &model) {
  llvm::SourceMgr sources;
  if (options.inputKind() == InputKind::Mlir) {
    auto buffer = readNamed(options.input);
    if (!buffer)
      return Error{ExitCode::Io, options.input + ": " + buffer.getError().message(), "check the path"};
    sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  } else {
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, options.input), llvm::SMLoc());
  }
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  model.module = mlir::parseSourceFile<mlir::ModuleOp>(sources, mlir::ParserConfig(&context));
  if (!model.module)
    return Error{ExitCode::Invalid, options.input + ": is no valid model", "the diagnostics above say where"};
  return {};
}

/// Processors that this process can keep busy. The ranks of the program are not those that a launcher may
/// have started here.
static uint32_t availableThreads() {
  ProcessorShare share = processorShare();
  share.localRanks = 1;
  return processorsLeft(share);
}

/// Says of `module` what the command line says of the machine; of the target, what the module says is kept
/// where the command line leaves it open.
static Status settleMachine(mlir::ModuleOp module, const Options &options, const config::Config &config) {
  mlir::ds::Machine machine = mlir::ds::getMachine(module);
  machine.hasNodeLocalSaves |= config.nodeLocalSaves;
  machine.hasFastAttention = config.fastAttention && options.target != "cpu";
  if (options.target != "cpu")
    machine.target = options.target;
  const std::string cluster = options.clusterName();
  machine.cluster = cluster.empty() ? mlir::ds::Machine().cluster : cluster;
  machine.threads = options.threads ? options.threads : availableThreads();
  auto limit = [](uint64_t bytes) { return bytes > 0 ? std::optional<int64_t>(bytes) : std::nullopt; };
  machine.memory = {limit(options.memory), limit(options.hostMemory)};
  if (succeeded(mlir::ds::setMachine(module, machine)))
    return {};
  return Error{ExitCode::Invalid, "--target " + options.target + ": is no target",
               "the diagnostics above say why"};
}

Result<Model> ds::opt::loadModel(const Options &options, config::Config &config, mlir::MLIRContext &context) {
  Model model;
  std::string text;
  if (options.inputKind() == InputKind::TorchScript)
    if (Status status = importArchive(options, model, text); !status)
      return status.error();
  bool isConfig = options.inputKind() == InputKind::HfConfig;
  Status read =
      isConfig ? buildFromConfig(options, config, context, model) : parseInput(options, text, context, model);
  if (!read)
    return read.error();
  if (Status status = checkStages(*model.module, options); !status)
    return status.error();
  if (Status status = chooseTrained(*model.module, options); !status)
    return status.error();
  Status settled = options.inputKind() == InputKind::Mlir ? settleTraining(model, options, config)
                                                          : setFromConfig(*model.module, options, config);
  if (!settled)
    return settled.error();
  if (Status status = settleEntries(*model.module, options, config); !status)
    return status.error();
  if (Status status = checkBatch(*model.module, config); !status)
    return status.error();
  if (Status status = settleMachine(model.facts(), options, config); !status)
    return status.error();
  shareFacts(*model.module);
  return model;
}
