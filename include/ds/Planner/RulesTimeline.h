//===- RulesTimeline.h - A plan by rules over time ---------------------------------===//
//
// A plan by rules has no commands. What its pictures and traces show is one micro-batch as the rules see it:
// layer after layer forward and backward, with the exchanges of a layer on streams of their own, and then
// what ends the step. Memory is the estimate's own: its fullest moment has exactly the peak of the report.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PLANNER_RULESTIMELINE_H
#define DS_PLANNER_RULESTIMELINE_H

#include "ds/Planner/RulesReport.h"
#include "ds/Report/PlanTimeline.h"

namespace ds::opt {

/// One timeline for each of `report.ranks`, which is makeRulesReport(what): the pipeline stages, in order.
std::vector<analysis::PlanTimeline> makeRulesTimelines(const RulesCase &what,
                                                       const analysis::PlanReport &report);

} // namespace ds::opt

#endif // DS_PLANNER_RULESTIMELINE_H
