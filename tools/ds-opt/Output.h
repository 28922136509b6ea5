//===- Output.h - What ds-opt writes ---------------------------------------------===//
#ifndef DS_TOOLS_DSOPT_OUTPUT_H
#define DS_TOOLS_DSOPT_OUTPUT_H

#include "CommandLine/Basis.h"
#include "CommandLine/Target.h"
#include "Model.h"
#include "ds/Cost/Rates.h"
#include "ds/Planner/AnalyticReport.h"
#include "ds/Planner/ProgramChanges.h"
#include "ds/Planner/ProgramQueries.h"

namespace ds::opt {

/// Writes `text` to `path`, or to stdout for "-".
Status writeText(const std::string &path, const std::string &text);

/// Makes sure that what was printed has arrived: Io where it has not (a full disk, a closed descriptor, a
/// reader that has gone).
Status finishStandardOutput();

/// Writes the module as MLIR text.
Status writeIr(const Model &model, const Options &options);

/// What was left open and how it was settled.
struct Choices {
  Basis basis;
  Target target;
};

/// What a program is planned with.
struct ProgramCase {
  const config::Config &config;
  cost::Rates rates; ///< of the cluster
  Choices choices;
  uint32_t threads = 1;
  planner::PlanFunction planAgain;  ///< for other settings of the same command line
  planner::PlanFunction planIfFits; ///< the same, and fails where what is chosen is far from fitting
  /// By which plans are chosen that are made for a question, and changes named that have no program; none:
  /// all are made.
  const planner::Ranking *ranking = nullptr;

  const planner::AnalyticCase *rules() const { return ranking ? &ranking->rules : nullptr; }
};

/// The report of a module in phase planned, with everything that the module does not know.
report::PlanReport makeReport(const Model &model, const Options &options, const ProgramCase &what);

/// Invalid where a run of tokens is asked about and a step has none.
Status checkTokens(const report::PlanReport &report);

/// Says of each rank which directory of the configuration has how much of its storage.
void addStoragePaths(report::PlanReport &report, const config::Zero &zero);

/// Prints the plan, or checks it and writes the program with its weights. The model is in phase planned.
/// Fails with DoesNotFit where the plan exceeds its memory; `--plan-json` and `--trace` are written all the
/// same.
Status writePlanAndProgram(Model &model, const Options &options, const ProgramCase &what);

/// Prints what differs between two plans, or between a plan and what its run has written.
Status diffFiles(const std::string &before, const std::string &after);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_OUTPUT_H
