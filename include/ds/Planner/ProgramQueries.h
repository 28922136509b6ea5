//===- ProgramQueries.h - What other plans of a program would take and cost -------===//
//
// --what-if, --max-batch and --max-seq. Where rules can read the model they say which plans are worth making,
// and a few are made; otherwise, or with --basis program, every plan that is compared is. Each is made with
// the same passes and its own packing.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PLANNER_PROGRAMQUERIES_H
#define DS_PLANNER_PROGRAMQUERIES_H

#include "ds/Planner/AnalyticReport.h"
#include "ds/Planner/Proposal.h"

namespace ds::planner {

/// What says which plans are worth making.
struct Ranking {
  const AnalyticCase &rules;
  /// The bytes of a rank's device that are expected of a plan that holds as little as can be.
  std::function<Result<int64_t>(const PlanSettings &)> expectLeast;
  PlanFunction planLeast; ///< that plan, in the form that the last expectation found
};

/// Adds to the report of the present plan what the command line asks of others:
///   whatIf    ZeRO stage x micro-batch (powers of two, the samples of a step kept), the fastest that fits
///             marked; settings that the model does not take are left out with a note;
///   maxBatch  the largest micro-batch that fits, with more samples in a step;
///   maxSeq    the longest sequence that fits, in steps of the largest power of two, at most 64, that divides
///             the present one.
/// With `ranking`, the table is that of its rules but for the plans that are made, four at most: the present
/// one, and the fastest that fit and have a program until one holds. Sizes are looked for from the one that
/// rules hold for the largest, by plans that hold as little as can be, and beyond the last that fits by
/// others; seven are made at most, and a note says where that left it open. What the model refuses counts as
/// not fitting, and a note tells its words. Fails where nothing can be planned, and with Invalid where the
/// inputs have no sequence.
Status addQueries(const PlanSettings &settings, const config::Config &config, const PlanFunction &planner,
                  const Ranking *ranking, report::PlanReport &report);

/// The answers as text. `isRanked` where rules chose the plans that were made.
std::string printQueries(const PlanSettings &settings, const report::PlanReport &report, bool isRanked);

} // namespace ds::planner

#endif // DS_PLANNER_PROGRAMQUERIES_H
