//===- ExplainPeak.h - What is live at a plan's peak, and why --------------------===//
#ifndef DS_LIB_PASSES_EXPLAINPEAK_H
#define DS_LIB_PASSES_EXPLAINPEAK_H

#include "ds/Dialect/Ds.h"
#include "ds/Passes/Analysis/PeakExplanation.h"

#include <optional>

namespace mlir::ds {

/// Explains the fullest moment of `module` (phase planned); empty where it has no segment.
std::optional<::ds::analysis::PeakExplanation> explainPeak(ModuleOp module);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_EXPLAINPEAK_H
