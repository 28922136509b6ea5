//===- PlanSummary.h - What a planned module says of itself ------------------------===//
#ifndef DS_PLANNER_PLANSUMMARY_H
#define DS_PLANNER_PLANSUMMARY_H

#include "ds/Cost/Rates.h"
#include "ds/Dialect/Ds.h"
#include "ds/Report/PlanTimeline.h"

namespace mlir::ds {

/// What the plan of `module` (phase planned) says of itself, and how long a step takes at the rates of a
/// cluster: all ranks of its mesh have the same, or all of a stage where it has several.
::ds::report::PlanReport summarizePlan(ModuleOp module, const ::ds::cost::Rates &rates);

/// Whether the hosts hold what the ranks of `report` keep there: within its limit for hosts, if it has one.
/// Where device and host are one memory (`isShared`), a rank has the report's limit for both; elsewhere the
/// ranks of a node share the memory of the cluster's host, where that is known.
bool hostsHold(const ::ds::report::PlanReport &report, const ::ds::config::Cluster &cluster, bool isShared);

/// The step that `module` (phase planned) is, command by command and buffer by buffer, over its predicted
/// time. One stage of a model that is cut into several.
::ds::report::PlanTimeline timelineOfPlan(ModuleOp module, const ::ds::cost::Rates &rates);

} // namespace mlir::ds

#endif // DS_PLANNER_PLANSUMMARY_H
