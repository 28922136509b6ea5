//===- AnalyticExplanation.h - What a stage of a plan by rules keeps, and why --------------===//
#ifndef DS_LIB_PLANNER_ANALYTICEXPLANATION_H
#define DS_LIB_PLANNER_ANALYTICEXPLANATION_H

#include "ds/Planner/AnalyticReport.h"

namespace ds::planner {

/// What MemoryEstimate::workspace is, in a plan's words.
inline constexpr char kWorkspaceText[] =
    "cuDNN's for attention's gradient, beyond the logits, which are gone by then";

/// The peak of a rank of pipeline stage `stage`, from the model's layer structure: what it consists of,
/// largest first.
report::PeakExplanation explainStage(const AnalyticCase &what, int64_t stage);

} // namespace ds::planner

#endif // DS_LIB_PLANNER_ANALYTICEXPLANATION_H
