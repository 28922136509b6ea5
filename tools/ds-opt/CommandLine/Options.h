//===- Options.h - The command line of ds-opt ------------------------------------===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_OPTIONS_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_OPTIONS_H

#include "ds/Config/Config.h"
#include "ds/Planner/PlanSettings.h"
#include "ds/Report/PlanReport.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
}

namespace ds::opt {

enum class Emit { Default, Ir, Plan, Program };
using planner::InputKind;

/// The command line, parsed but not yet checked against files.
struct Options : planner::PlanSettings {
  std::string output;               ///< "-" is stdout
  std::string config;               ///< empty: none
  std::vector<std::string> noDecay; ///< regular expressions
  std::vector<std::string> freeze;  ///< globs over names of parameters
  std::vector<std::string> lora;    ///< PATTERN:RANK[:ALPHA[:DROPOUT]] each, or one folder of PEFT
  std::vector<std::string> diff;    ///< two plans
  std::string cluster;              ///< file or name of --cluster; empty: none is given
  std::string planChoice;           ///< "auto" or empty
  std::string basis;                ///< "auto", "rules" or "program"
  std::string trace;                ///< file for a Chrome trace of the planned step; empty: none
  std::string target;               ///< "cpu" or "cuda:sm_90"; chooseTarget has the last word
  std::string entry;                ///< "logits" or empty
  std::optional<int64_t> length;    ///< tokens of a sample; settleLength brings it into `inputs`
  std::string loss, targetCpu, planJson, weights, phase, tuning;
  std::string pipelineSchedule; ///< file of --pipeline-schedule, and its text once it is read; empty: none
  std::string planHtml, memviz; ///< pictures of the plan; empty: none
  Emit emit = Emit::Default;
  std::optional<std::string> configText; ///< in place of the file `config`
  uint64_t memory = 0;                   ///< bytes; 0: what the machine has
  double margin = 0;                     ///< share of the device's memory that plans leave free
  uint64_t hostMemory = 0; ///< bytes of the host for each rank, apart from those; 0: what there is
  uint64_t importMemory = 0, importSeconds = 0; ///< 0: derived from the archive
  uint32_t threads = 0;                         ///< 0: the cores this process may use
  bool ranksGiven = false, targetGiven = false;
  bool isClusterRead = false; ///< `ranks` and `memory` are as it and `margin` have them
  bool explainPeak = false;
  bool quiet = false;                             ///< notes have been printed
  std::optional<config::PrintFormat> printConfig; ///< none: it is not asked for
  bool allowUnknownKeys = false, ignoreUnavailable = false;
  std::optional<double> tokens, pricePerHour; ///< of a whole run; of a device
  std::optional<int64_t> steps;               ///< of the run, for schedules that end with it
  bool allowUnsandboxed = false;
  bool wantsChanges = true; ///< of a plan that does not fit: look for what would
  bool isBare = false;      ///< a config.json and no word on its training: what is assumed is told

  /// The run that the command line asks about.
  std::optional<report::TrainingRun> run() const;
  /// Where the weights of a program go: beside it. Empty where none are written, as beside a device or pipe.
  std::string weightsOutput() const;
  /// The cluster whose figures count: that of `--cluster`, else the built-in one whose device a CUDA
  /// `--target` stands for. Empty: none, and the program is for this machine.
  std::string clusterName() const;
  /// The first question about other plans, as it is spelt; empty: none.
  std::string question() const;
  /// The option by which not all of the model is trained; empty: there is none.
  std::string partOption() const { return !lora.empty() ? "--lora" : freeze.empty() ? "" : "--freeze"; }
  /// A page, or a snapshot for PyTorch's visualiser.
  bool asksForPictures() const { return !planHtml.empty() || !memviz.empty() || !trace.empty(); }
  /// True when the arguments ask for nothing but MLIR in, passes, MLIR out.
  bool isPlainMlirOpt() const;
};

/// Parses the command line, registering `registry`'s passes as flags. Ends the process on a usage error, as
/// LLVM's command-line library does, with exit code 2.
Options parseOptions(int argc, char **argv, mlir::DialectRegistry &registry);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_OPTIONS_H
