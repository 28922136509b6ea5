//===- RulesAnswers.h - What other plans by rules would take and cost -------------===//
#ifndef DS_PLANNER_RULESANSWERS_H
#define DS_PLANNER_RULESANSWERS_H

#include "ds/Planner/RulesReport.h"

namespace ds::opt {

/// The cheapest changes that make a plan fit, for a report.
std::vector<analysis::PlanChoice> choicesOf(const std::vector<cost::Change> &changes);

/// The table of --what-if, the fastest plan that fits marked.
std::vector<analysis::PlanChoice> choicesOf(const std::vector<cost::Candidate> &table);

/// The changes of a report, cheapest first, each with its step beside that of the plan that does not fit.
/// What a device needs is with its context.
std::string printChanges(const RulesCase &what, const analysis::PlanReport &report);

} // namespace ds::opt

#endif // DS_PLANNER_RULESANSWERS_H
