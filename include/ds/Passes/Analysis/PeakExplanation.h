//===- PeakExplanation.h - What is live at a plan's peak, and why ------------------===//
#ifndef DS_PASSES_ANALYSIS_PEAKEXPLANATION_H
#define DS_PASSES_ANALYSIS_PEAKEXPLANATION_H

#include <cstdint>
#include <string>
#include <vector>

namespace ds::analysis {

/// A value that is live at the peak.
struct PeakValue {
  std::string name, layer, category;
  std::string type; ///< "4x64xbf16", or empty
  int64_t bytes = 0;
  std::string madeBy, lastUsedBy; ///< "matmul h.3.mlp"; empty where the step neither makes nor ends it
  std::string reason;             ///< why it is live
  std::string remedy;             ///< one change that would make it smaller or remove it
};

/// The moment of the peak, and the ten largest values that are live then, largest first.
struct PeakExplanation {
  std::string op, layer, segment;
  std::vector<PeakValue> largest;
};

} // namespace ds::analysis

#endif // DS_PASSES_ANALYSIS_PEAKEXPLANATION_H
