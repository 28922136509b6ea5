//===- RulesExplain.h - What a stage of a plan by rules keeps, and why --------------===//
#ifndef DS_LIB_PLANNER_RULESEXPLAIN_H
#define DS_LIB_PLANNER_RULESEXPLAIN_H

#include "ds/Planner/RulesReport.h"

namespace ds::opt {

/// What MemoryEstimate::workspace is, in a plan's words.
inline constexpr char kWorkspaceText[] =
    "cuDNN's for attention's gradient, beyond the logits, which are gone by then";

/// The peak of a rank of pipeline stage `stage`, from the model's layer structure: what it consists of,
/// largest first.
analysis::PeakExplanation explainStage(const RulesCase &what, int64_t stage);

} // namespace ds::opt

#endif // DS_LIB_PLANNER_RULESEXPLAIN_H
