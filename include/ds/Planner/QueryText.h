//===- QueryText.h - Answers about other plans, as text ------------------------------===//
//
// What --what-if, --max-batch and --max-seq print, whether formulas or programs answer.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PLANNER_QUERYTEXT_H
#define DS_PLANNER_QUERYTEXT_H

#include "ds/Report/PlanReport.h"

namespace ds::planner {

/// The table of --what-if of a report. Peaks are what plans give out of a device, as everywhere.
std::string printWhatIf(const report::PlanReport &report);

/// The fastest choice of a table that fits, of equal ones the first, and `withPass` of those of which a
/// program can be made; null where there is none.
report::PlanChoice *findBest(std::vector<report::PlanChoice> &table, bool withPass = false);
/// Marks the fastest of those of which a program can be made, or of all where there is no such that fits.
void markBest(std::vector<report::PlanChoice> &table);

/// The lines of --max-batch and --max-seq, as far as the report has them; `bound` follows the sequence.
std::string printLargest(const report::PlanReport &report, const std::string &bound = "");

/// Whether some micro-batch and some sequence fit, as far as they were asked for.
bool someFit(const report::PlanReport &report);

} // namespace ds::planner

#endif // DS_PLANNER_QUERYTEXT_H
