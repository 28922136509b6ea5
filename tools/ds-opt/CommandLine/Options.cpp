//===- Options.cpp - The command line of ds-opt ----------------------------------===//
//
// Options live in one object that is made when the line is parsed: no global registers itself before main,
// and pass flags are whatever mlir-opt's own registration makes of the registered passes.
//
//===---------------------------------------------------------------------------===//
#include "Options.h"

#include "Describe.h"
#include "LineErrors.h"
#include "ModelFile.h"
#include "Notes.h"
#include "OptionalText.h"
#include "ds/Config/Cluster.h"
#include "ds/Import/BuiltinModels.h"
#include "ds/Support/Numbers.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <limits>
#include <unistd.h>

namespace cl = llvm::cl;
using namespace ds;
using namespace ds::opt;

namespace {
/// Declares the options; read back after parsing.
struct CommandLine {
  // Groups of --help, which prints them by name.
  cl::OptionCategory ofConfiguration{"Configuration"}, ofMachine{"Machine"}, ofModel{"Model"},
      ofOutput{"Output"},
      ofQuestions{"Questions", "Of a plan, of a run, and of machines that one does not have"},
      ofImport{"TorchScript", "Its import runs the archive's code, in a process that can do little else"};

  cl::opt<std::string> input{
      cl::Positional, cl::init("-"),
      cl::desc("<model.mlir | model.pt | config.json or its folder | name of --models; - reads MLIR from "
               "stdin>")};
  cl::opt<std::string> output{"o", cl::cat(ofOutput), cl::init("-"), cl::desc("Output file"),
                              cl::value_desc("FILE")};
  cl::opt<std::string> config{"config", cl::cat(ofConfiguration), cl::desc("DeepSpeed configuration"),
                              cl::value_desc("ds_config.json")};
  cl::list<std::string> sets{"set", cl::cat(ofConfiguration), cl::desc("Override one configuration key"),
                             cl::value_desc("KEY=VALUE")};
  cl::list<std::string> inputs{"input", cl::cat(ofModel),
                               cl::desc("Shape of a forward argument for one micro-batch, as x=4x64xi64"),
                               cl::value_desc("NAME=SHAPExTYPE")};
  cl::opt<std::string> length{"length", cl::cat(ofModel),
                              cl::desc("Tokens of a sample (default: of a config.json all its positions)"),
                              cl::value_desc("T")};
  cl::opt<std::string> entry{"entry", cl::cat(ofModel),
                             cl::desc("What a program can do beside its steps: logits, for ds-run --sample"),
                             cl::value_desc("logits")};
  cl::list<std::string> noDecay{"no-decay", cl::cat(ofModel),
                                cl::desc("Parameters that weight decay leaves alone"),
                                cl::value_desc("REGEX")};
  cl::list<std::string> freeze{"freeze", cl::cat(ofModel),
                               cl::desc("Parameters that are not trained: names with * for any text"),
                               cl::value_desc("PATTERN")};
  cl::list<std::string> lora{
      "lora", cl::cat(ofModel),
      cl::desc("Train adapters of these linear layers alone, as PEFT's LoRA; or those of its folder"),
      cl::value_desc("PATTERN:RANK[:ALPHA[:DROPOUT]]|DIR")};
  cl::list<std::string> diff{
      "diff", cl::cat(ofQuestions),
      cl::desc("Compare two plans of --plan-json, a plan and a log of ds-run, or the two traces of --trace"),
      cl::multi_val(2), cl::value_desc("PLAN PLAN|RUN")};
  cl::opt<std::string> loss{"loss", cl::cat(ofModel),
                            cl::desc("Loss to put after a forward that returns logits: cross_entropy or mse"),
                            cl::value_desc("cross_entropy|mse")};
  cl::opt<std::string> lossChunks{
      "loss-chunks", cl::cat(ofModel),
      cl::desc("Parts in which logits and their loss are made: auto, or a number (loss_chunks)"),
      cl::value_desc("auto|N")};
  cl::opt<std::string> attention{
      "attention", cl::cat(ofMachine),
      cl::desc("On CUDA, gradients of attention equal in every bit, or fast (attention)"),
      cl::value_desc("exact|fast")};
  cl::opt<bool> tf32{"tf32", cl::cat(ofMachine),
                     cl::desc("On CUDA, products of fp32 factors in tf32 (allow_tf32)")};
  cl::opt<std::string> target{
      "target", cl::cat(ofMachine), cl::init("cpu"),
      cl::desc("cpu, or cuda:sm_90 and so on; default: that of the cluster's device, without --cluster cpu"),
      cl::value_desc("cpu|cuda:sm_N")};
  cl::opt<std::string> targetCpu{"target-cpu", cl::cat(ofMachine), cl::init("host"),
                                 cl::desc("Processor to generate code for; default: this machine's, and of a "
                                          "GPU's host x86-64-v3"),
                                 cl::value_desc("NAME")};
  cl::opt<std::string> planJson{"plan-json", cl::cat(ofOutput), cl::desc("Also write the plan as JSON"),
                                cl::value_desc("FILE")};
  cl::opt<std::string> planHtml{"plan-html", cl::cat(ofOutput),
                                cl::desc("Also write the plan as a page to look at"),
                                cl::value_desc("FILE.html")};
  cl::opt<std::string> memviz{
      "memviz", cl::cat(ofOutput),
      cl::desc("Also write the plan for PyTorch's memory visualiser: .pickle opens there, others are JSON"),
      cl::value_desc("FILE")};
  cl::opt<std::string> weights{
      "weights", cl::cat(ofOutput), cl::init("archive"),
      cl::desc("archive: write the model's weights beside the program; none: do not"),
      cl::value_desc("archive|none")};
  cl::opt<std::string> phase{
      "phase", cl::cat(ofOutput), cl::init("model"),
      cl::desc("With --emit=ir: model, step, sharded, fused, resident, scheduled or planned"),
      cl::value_desc("model|step|sharded|fused|resident|scheduled|planned")};
  cl::opt<Emit> emit{
      "emit",
      cl::cat(ofOutput),
      cl::desc(
          "What to produce (default: the plan of what has --config, --cluster or a config.json, else ir)"),
      cl::init(Emit::Default),
      cl::value_desc("ir|plan|program"),
      cl::values(clEnumValN(Emit::Ir, "ir", "MLIR text"),
                 clEnumValN(Emit::Plan, "plan", "The memory plan, as a table"),
                 clEnumValN(Emit::Program, "program", "A program for ds-run"))};
  cl::opt<std::string> ranks{"ranks", cl::cat(ofMachine),
                             cl::desc("Number of ranks (default: 1, or the cluster's devices)"),
                             cl::value_desc("N")};
  cl::opt<std::string> memory{"memory", cl::cat(ofMachine),
                              cl::desc("Device bytes the plan must fit (suffixes KiB, MiB, GiB)"),
                              cl::value_desc("BYTES")};
  cl::opt<std::string> margin{
      "margin", cl::cat(ofMachine),
      cl::desc("Share of a device's memory that plans leave free (default: 0, and for "
               "--plan auto 0.05)"),
      cl::value_desc("SHARE")};
  cl::opt<std::string> hostMemory{
      "host-memory", cl::cat(ofMachine),
      cl::desc("Host bytes of a rank the plan must fit, on the CPU beside --memory (suffixes KiB, MiB, GiB)"),
      cl::value_desc("BYTES")};
  cl::opt<std::string> threads{"threads-per-rank", cl::cat(ofMachine),
                               cl::desc("Threads of a rank; 0, the default: the cores it may use"),
                               cl::value_desc("N")};
  cl::opt<std::string> tuning{"tuning", cl::cat(ofMachine),
                              cl::desc("Make products as this file of ds-run --tune found them fastest"),
                              cl::value_desc("FILE")};
  cl::opt<std::string> pipelineSchedule{"pipeline-schedule", cl::cat(ofMachine),
                                        cl::desc("Table of what stages run when (pipeline.schedule)"),
                                        cl::value_desc("FILE")};
  cl::opt<std::string> cluster{"cluster", cl::cat(ofMachine),
                               cl::desc("Plan for this cluster: a file, or a built-in name"),
                               cl::value_desc("FILE|NAME")};
  cl::opt<std::string> planChoice{
      "plan", cl::cat(ofQuestions),
      cl::desc("auto: write the ds_config.json of the fastest plan that fits the cluster"),
      cl::value_desc("auto")};
  cl::opt<std::string> basis{"basis", cl::cat(ofMachine), cl::init("auto"),
                             cl::desc("What a plan for a cluster rests on: rules, the program, or auto: the "
                                      "program where it can be built quickly"),
                             cl::value_desc("auto|rules|program")};
  cl::opt<std::string> trace{"trace", cl::cat(ofOutput),
                             cl::desc("Also write the planned step as a Chrome trace"),
                             cl::value_desc("FILE")};
  cl::opt<bool> whatIf{"what-if", cl::cat(ofQuestions),
                       cl::desc("Table of plans over ZeRO stage, recomputation, offload and micro-batch")};
  cl::opt<bool> maxBatch{"max-batch", cl::cat(ofQuestions),
                         cl::desc("Print the largest micro-batch that fits the cluster")};
  cl::opt<bool> maxSeq{"max-seq", cl::cat(ofQuestions),
                       cl::desc("Print the longest sequence that fits the cluster")};
  cl::opt<std::string> changes{
      "changes", cl::cat(ofQuestions), cl::init("auto"),
      cl::desc(
          "Of a plan that does not fit: auto, look for changes that make it fit; none, which is quicker"),
      cl::value_desc("auto|none")};
  cl::opt<std::string> tokens{"tokens", cl::cat(ofQuestions),
                              cl::desc("Also say what a run of so many tokens takes: days and device-hours"),
                              cl::value_desc("N")};
  cl::opt<std::string> pricePerHour{"price-per-hour", cl::cat(ofQuestions),
                                    cl::desc("Of a device: with --tokens, what the run costs"),
                                    cl::value_desc("X")};
  cl::opt<bool> explainPeak{"explain-peak", cl::cat(ofQuestions),
                            cl::desc("Say of the largest values at the plan's peak why they are there")};
  cl::opt<std::string, false, OptionalTextParser> printConfig{
      "print-config",
      cl::cat(ofConfiguration),
      cl::ValueOptional,
      cl::init("off"),
      cl::desc("Print the configuration and where it comes from: what is not a default, or all of it"),
      cl::value_desc("short|all|json")};
  cl::opt<std::string> notes{"notes", cl::cat(ofOutput), cl::init("short"),
                             cl::desc("How many notes to print: short (default: five lines), or all"),
                             cl::value_desc("short|all")};
  cl::opt<bool> allowUnknownKeys{"allow-unknown-keys", cl::cat(ofConfiguration),
                                 cl::desc("Unknown configuration keys are warnings")};
  cl::opt<bool> ignoreUnavailable{
      "ignore-unavailable", cl::cat(ofConfiguration),
      cl::desc("Leave out keys that no program has yet and that change no number, and say which")};
  cl::opt<std::string> steps{
      "steps", cl::cat(ofConfiguration),
      cl::desc("Steps of the run, for \"total_num_steps\": \"auto\" (default: as ds-run says)"),
      cl::value_desc("N")};
  cl::opt<bool> allowUnsandboxed{"allow-unsandboxed", cl::cat(ofImport),
                                 cl::desc("Import TorchScript also where its code cannot be confined")};
  cl::opt<std::string> importMemory{
      "import-memory", cl::cat(ofImport),
      cl::desc("Bytes that an import of TorchScript may take (suffixes KiB, MiB, GiB)"),
      cl::value_desc("BYTES")};
  cl::opt<std::string> importSeconds{"import-seconds", cl::cat(ofImport),
                                     cl::desc("Processor time that an import of TorchScript may take"),
                                     cl::value_desc("N")};
  cl::opt<bool> models{"models", cl::cat(ofModel),
                       cl::desc("Print the names of published models, which stand for their config.json")};
  cl::opt<bool> clusters{"clusters", cl::cat(ofMachine), cl::desc("Print the names of built-in clusters")};
  cl::opt<bool> describeOptions{"describe-options", cl::Hidden,
                                cl::desc("Print what --help lists as JSON, for script/describe-tools")};
};
} // namespace

/// The number that `parse` has read; ends the process when it is none.
template <class Number>
static Number orExit(Result<Number> number) {
  if (number)
    return *number;
  std::exit(static_cast<int>(complain(number.error())));
}

/// Pictures of a plan; who asks for one without --emit wants the plan.
static void readPictures(const CommandLine &line, Options &options) {
  options.planHtml = line.planHtml;
  options.memviz = line.memviz;
  options.trace = line.trace;
  options.explainPeak = line.explainPeak;
  if ((options.asksForPictures() || options.explainPeak || line.tokens.getNumOccurrences() > 0) &&
      options.emit == Emit::Default)
    options.emit = Emit::Plan;
}

/// What is asked of a cluster.
static void readQuestions(const CommandLine &line, Options &options) {
  options.cluster = line.cluster;
  options.tuning = line.tuning;
  options.pipelineSchedule = line.pipelineSchedule;
  options.planChoice = line.planChoice;
  options.basis = line.basis;
  if (line.changes != "auto" && line.changes != "none")
    std::exit(static_cast<int>(
        complain({ExitCode::Usage, "--changes expects auto or none, but got '" + line.changes + "'", ""})));
  options.wantsChanges = line.changes == "auto";
  options.whatIf = line.whatIf;
  options.maxBatch = line.maxBatch;
  options.maxSeq = line.maxSeq;
  options.ranksGiven = line.ranks.getNumOccurrences() > 0;
}

/// Passes and the options of MLIR and LLVM, which --help-hidden lists, and not --help.
static void registerHiddenOptions(mlir::DialectRegistry &registry) {
  mlir::MlirOptMainConfig::registerCLOptions(registry);
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  // An error says where its op is; the op may be a module of thousands of lines.
  static_cast<cl::opt<bool> *>(cl::getRegisteredOptions().lookup("mlir-print-op-on-diagnostic"))
      ->setInitialValue(false);
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (option->Categories.front()->getName() != "Generic Options") // --help and --version
      option->setHiddenFlag(cl::Hidden);
}

/// Numbers, of which LLVM's own parser takes 010 and 0x8 for 8.
static void readNumbers(const CommandLine &line, Options &options) {
  constexpr uint64_t kMostRanks = std::numeric_limits<uint32_t>::max(), kMostThreads = 4096,
                     kMostSeconds = 1000000, kMostInt = std::numeric_limits<int32_t>::max();
  if (line.ranks.getNumOccurrences() > 0)
    options.ranks = static_cast<int64_t>(orExit(parseWhole("--ranks", line.ranks.getValue(), 1, kMostRanks)));
  if (line.threads.getNumOccurrences() > 0)
    options.threads = static_cast<uint32_t>(
        orExit(parseWhole("--threads-per-rank", line.threads.getValue(), 0, kMostThreads)));
  if (line.memory.getNumOccurrences() > 0)
    options.memory = orExit(parseBytes("--memory", line.memory.getValue()));
  constexpr double kMostTokens = 1e18, kMostPrice = 1e9;
  if (line.tokens.getNumOccurrences() > 0)
    options.tokens = orExit(parseReal("--tokens", line.tokens.getValue(), 1, kMostTokens));
  if (line.pricePerHour.getNumOccurrences() > 0)
    options.pricePerHour = orExit(parseReal("--price-per-hour", line.pricePerHour.getValue(), 0, kMostPrice));
  constexpr double kMostMargin = 0.9, kAutoMargin = 0.05;
  options.margin = options.planChoice.empty() ? 0 : kAutoMargin;
  if (line.margin.getNumOccurrences() > 0)
    options.margin = orExit(parseReal("--margin", line.margin.getValue(), 0, kMostMargin));
  if (line.hostMemory.getNumOccurrences() > 0)
    options.hostMemory = orExit(parseBytes("--host-memory", line.hostMemory.getValue()));
  if (line.importMemory.getNumOccurrences() > 0)
    options.importMemory = orExit(parseBytes("--import-memory", line.importMemory.getValue()));
  if (line.importSeconds.getNumOccurrences() > 0)
    options.importSeconds =
        orExit(parseWhole("--import-seconds", line.importSeconds.getValue(), 1, kMostSeconds));
  if (line.steps.getNumOccurrences() > 0)
    options.steps = static_cast<int64_t>(orExit(parseWhole("--steps", line.steps.getValue(), 1, kMostInt)));
  if (line.length.getNumOccurrences() > 0)
    options.length =
        static_cast<int64_t>(orExit(parseWhole("--length", line.length.getValue(), 1, kMostInt)));
  if (line.lossChunks.getNumOccurrences() == 0)
    return;
  if (line.lossChunks != "auto")
    orExit(parseWhole("--loss-chunks, unless auto,", line.lossChunks.getValue(), 1, kMostInt));
  options.sets.push_back("loss_chunks=" + line.lossChunks);
}

/// What of the configuration is printed, and how many notes.
static void readPrinting(const CommandLine &line, Options &options) {
  if (line.notes != "short" && line.notes != "all")
    std::exit(static_cast<int>(
        complain({ExitCode::Usage, "--notes expects short or all, but got '" + line.notes + "'", ""})));
  if (line.notes == "all")
    tellAllNotes();
  if (line.printConfig.getNumOccurrences() == 0)
    return;
  using config::PrintFormat;
  options.printConfig = llvm::StringSwitch<std::optional<PrintFormat>>(line.printConfig.getValue())
                            .Cases("", "short", PrintFormat::Short)
                            .Cases("all", "text", PrintFormat::Text)
                            .Case("json", PrintFormat::Json)
                            .Default(std::nullopt);
  if (!options.printConfig)
    std::exit(static_cast<int>(
        complain({ExitCode::Usage,
                  "--print-config expects short, all or json, but got '" + line.printConfig + "'", ""})));
}

/// Prints a list that is asked for, and ends the process.
static void printLists(const CommandLine &line) {
  if (line.describeOptions)
    describeOptions(llvm::outs());
  for (const std::string_view name : line.models ? builtinModelNames() : std::vector<std::string_view>())
    llvm::outs() << name << "\n";
  for (const std::string_view name :
       line.clusters ? config::builtinClusterNames() : std::vector<std::string_view>())
    llvm::outs() << name << "\n";
  if (line.describeOptions || line.models || line.clusters)
    std::exit(0);
}

/// Has LLVM read the line; ends the process where it cannot be read, or where nothing is asked.
static void readLine(int argc, char **argv) {
  if (argc == 1 && isatty(STDIN_FILENO) == 1)
    std::exit(static_cast<int>(complain({ExitCode::Usage, "no model is given",
                                         "ds-opt MODEL --config ds_config.json plans a step of it; "
                                         "ds-opt --help lists the options"})));
  fitHelp(argc, argv);
  const std::optional<std::string> said = errorsOf([&] {
    return cl::ParseCommandLineOptions(argc, argv, "Deepstage: compiler and planner for training steps\n",
                                       &llvm::errs());
  });
  if (said)
    std::exit(static_cast<int>(complain(spellLineError(*said))));
}

Options ds::opt::parseOptions(int argc, char **argv, mlir::DialectRegistry &registry) {
  registerHiddenOptions(registry);
  // LLVM keeps pointers to options for good, and the linker that packs kernels walks through them.
  static CommandLine line;
  Options options;
  cl::SetVersionPrinter(printVersion);
  readLine(argc, argv);
  printLists(line);
  options.input = modelFile(line.input);
  options.output = line.output;
  options.config = line.config;
  options.sets.assign(line.sets.begin(), line.sets.end());
  if (line.attention.getNumOccurrences() > 0)
    options.sets.push_back("attention=" + line.attention);
  if (line.tf32.getNumOccurrences() > 0)
    options.sets.push_back(line.tf32 ? "allow_tf32=true" : "allow_tf32=false");
  options.inputs.assign(line.inputs.begin(), line.inputs.end());
  options.noDecay.assign(line.noDecay.begin(), line.noDecay.end());
  options.freeze.assign(line.freeze.begin(), line.freeze.end());
  options.lora.assign(line.lora.begin(), line.lora.end());
  options.diff.assign(line.diff.begin(), line.diff.end());
  readQuestions(line, options);
  options.loss = line.loss;
  options.entry = line.entry;
  options.target = line.target;
  options.targetGiven = line.target.getNumOccurrences() > 0;
  options.targetCpu = line.targetCpu;
  options.planJson = line.planJson;
  options.weights = line.weights;
  options.phase = line.phase;
  options.emit = line.emit;
  readPictures(line, options);
  // Who gives a model and how it is to be trained, and says no more, asks for the plan.
  bool isConfigured = !options.config.empty() || line.sets.getNumOccurrences() > 0;
  options.isBare = !isConfigured && options.inputKind() == InputKind::HfConfig && options.output == "-";
  if (options.emit == Emit::Default && (isConfigured || options.isBare) &&
      options.inputKind() != InputKind::Mlir && line.phase.getNumOccurrences() == 0)
    options.emit = Emit::Plan;
  options.allowUnsandboxed = line.allowUnsandboxed;
  readNumbers(line, options);
  readPrinting(line, options);
  options.allowUnknownKeys = line.allowUnknownKeys;
  options.ignoreUnavailable = line.ignoreUnavailable;
  return options;
}
