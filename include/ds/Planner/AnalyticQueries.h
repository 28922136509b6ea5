//===- AnalyticQueries.h - What other plans by rules would take and cost -------------===//
#ifndef DS_PLANNER_ANALYTICQUERIES_H
#define DS_PLANNER_ANALYTICQUERIES_H

#include "ds/Planner/AnalyticReport.h"

namespace ds::planner {

/// The cheapest changes that make a plan fit, for a report.
std::vector<report::PlanChoice> choicesOf(const std::vector<cost::Change> &changes);

/// The longest half, quarter ... of the samples with which the plan fits by rules; none: no length does, or
/// all.
std::optional<report::PlanChoice> shorterSamples(const AnalyticCase &what);

/// The table of --what-if, no plan marked yet.
std::vector<report::PlanChoice> choicesOf(const std::vector<cost::Candidate> &table);

/// The cluster, with so much less or more memory of a device as makes the present plan by rules fill it as
/// its program does, of which `report` is.
config::Cluster calibrate(const AnalyticCase &rules, const report::PlanReport &report);

/// The changes of a report, cheapest first, each with its peak, and with its step beside that of the plan
/// that does not fit.
std::string printChanges(const report::PlanReport &report);

} // namespace ds::planner

#endif // DS_PLANNER_ANALYTICQUERIES_H
