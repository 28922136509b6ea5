//===- AnalyticTimeline.h - A plan by rules over time ---------------------------------===//
//
// A plan by rules has no commands. What its pictures and traces show is one micro-batch as the rules see it:
// layer after layer forward and backward, with the exchanges of a layer on streams of their own, and then
// what ends the step. Memory is the estimate's own: its fullest moment has exactly the peak of the report.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PLANNER_ANALYTICTIMELINE_H
#define DS_PLANNER_ANALYTICTIMELINE_H

#include "ds/Planner/AnalyticReport.h"
#include "ds/Report/PlanTimeline.h"

namespace ds::planner {

/// One timeline for each of `report.ranks`, which is makeAnalyticReport(what): the pipeline stages, in order.
std::vector<report::PlanTimeline> makeAnalyticTimelines(const AnalyticCase &what,
                                                        const report::PlanReport &report);

} // namespace ds::planner

#endif // DS_PLANNER_ANALYTICTIMELINE_H
