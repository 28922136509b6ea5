//===- AnalyticPlan.h - ds-opt as a planner by rules -------------------------------------===//
//
// With --cluster the question is what a training job will cost on machines that need not exist: answered from
// the model's sizes and the cluster's figures by the rules of lib/Cost, without building the program.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_TOOLS_DSOPT_ANALYTICPLAN_H
#define DS_TOOLS_DSOPT_ANALYTICPLAN_H

#include "CommandLine/Options.h"
#include "ds/Config/Cluster.h"
#include "ds/Planner/AutoPlan.h"

namespace ds::opt {

/// The cluster that `options` name, with what --memory and --margin allow of its devices. Without --ranks all
/// its devices count, where it says how many there are. Where they name none, the built-in `cpu`, and nothing
/// is changed.
Result<config::Cluster> clusterFor(Options &options);

/// What rules plan: the sizes of the model in config.json, the configuration's plan, the cluster's rates.
Result<planner::AnalyticCase> readAnalyticCase(const Options &options, const config::Config &config,
                                               const config::Cluster &cluster);

/// Answers the questions of the command line, or plans. DoesNotFit where the plan does not fit, with the
/// cheapest change that would. `reason` says why rules answer; `planner` plans the programs of which --plan
/// auto takes the fastest.
Status answerByRules(const Options &options, const config::Config &config, const config::Cluster &cluster,
                     const std::string &reason, const planner::ConfigPlanner &planner);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_ANALYTICPLAN_H
