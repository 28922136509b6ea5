//===- AnalyticReport.h - A plan by rules, in words and as a report ------------------===//
#ifndef DS_PLANNER_ANALYTICREPORT_H
#define DS_PLANNER_ANALYTICREPORT_H

#include "ds/Cost/Search.h"
#include "ds/Report/PlanReport.h"

namespace ds::planner {

/// What is planned.
struct AnalyticCase {
  std::string model; ///< its file's name
  cost::ModelShape shape;
  cost::ParallelPlan plan;
  cost::Rates rates;
  int64_t positions = 1; ///< samples are at most so long
  std::vector<std::string> notes;
  std::string reason; ///< why rules answer
};

/// Every stage fits its device, host and storage.
bool everyStageFits(const AnalyticCase &what);

/// For --plan-json and --diff: the ranks of each pipeline stage, stages outermost. Peaks leave the device's
/// context out, as the limit does.
report::PlanReport makeAnalyticReport(const AnalyticCase &what);

/// "4 ranks (dp 4), ZeRO stage 3, micro-batch 1 x 8, bf16".
std::string spellPlan(const cost::ParallelPlan &plan);

/// The plan for people, of which `report` is: memory of each stage, the parts of the step's time and where
/// they come from, and what the step amounts to.
std::string printAnalyticText(const AnalyticCase &what, const report::PlanReport &report);

/// Whole bytes, rounded up; at most so many that six of them add up within 64 bits.
int64_t whole(double bytes);

/// What an estimate has on the device at its peak, by category, and all of it.
report::CategoryBytes peakParts(const cost::MemoryEstimate &memory);
int64_t sum(const report::CategoryBytes &parts);

/// What peaks must fit: "23.2 GiB, beside 0.8 GiB of the device's context".
std::string spellLimit(const config::Cluster &cluster);

/// "19.5", of GiB.
std::string gibi(double bytes);

const char *spell(config::DType dtype); ///< "fp32"
const char *spell(config::Home home);
const char *spell(cost::Recompute recompute);

} // namespace ds::planner

#endif // DS_PLANNER_ANALYTICREPORT_H
