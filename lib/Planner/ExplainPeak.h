//===- ExplainPeak.h - What is live at a plan's peak, and why --------------------===//
#ifndef DS_LIB_PLANNER_EXPLAINPEAK_H
#define DS_LIB_PLANNER_EXPLAINPEAK_H

#include "PlanBuffers.h"
#include "ds/Report/PeakExplanation.h"

namespace mlir::ds {

/// Explains `peak`, the fullest moment of `module` (phase planned): all that lies in the arena then, states
/// and inputs first, then allocations as they are made. Where no segment has a command, the states alone.
::ds::report::PeakExplanation explainPeak(ModuleOp module, const Moment &peak);

/// What lies in the arena of `space`, the host's or storage's, at its own fullest moment: states first, then
/// what is saved there for the backward pass and what copies are moved through.
std::vector<::ds::report::PeakValue> listElsewhere(ModuleOp module, Space space);

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_EXPLAINPEAK_H
