//===- PeakExplanation.h - What is live at a plan's peak, and why ------------------===//
#ifndef DS_REPORT_PEAKEXPLANATION_H
#define DS_REPORT_PEAKEXPLANATION_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ds::report {

/// What a live byte is for. Every byte of a peak belongs to exactly one category.
enum class Category : uint8_t { Parameters, Gradients, Optimizer, Activations, Communication, Workspace };
constexpr unsigned kNumCategories = 6;

/// Spelling in text and JSON: "parameters", "gradients", ...
const char *spell(Category category);

/// Bytes of each category, indexed by Category.
using CategoryBytes = std::array<int64_t, kNumCategories>;

/// The same, finer: a line of its own in the list of what takes memory, in this order.
enum class PeakPart : uint8_t {
  // For the whole step:
  Parameters,
  ModelBuffers,
  Masters,
  Accumulators, ///< gradients that are kept from micro-step to micro-step
  Moments,
  Scalars,
  Inputs,
  Waiting, ///< what segments of a pipeline leave for each other, by micro-batch
  // From a command to a command:
  Activations, ///< made by the forward pass and read by the backward pass
  Temporaries, ///< made and read by the same pass
  Gradients,
  Gathered,  ///< parameters, by an all-gather
  Exchanged, ///< other operands of collectives
  Workspace,
  Staging ///< on the host alone: what copies and storage are moved through
};
constexpr size_t kNumPeakParts = size_t(PeakPart::Staging) + 1;

Category categoryOf(PeakPart part);

/// Whether it is there at every moment of the step.
inline bool isWholeStep(PeakPart part) { return part <= PeakPart::Waiting; }

/// A value that is live at the peak.
struct PeakValue {
  std::string name, layer;
  PeakPart part = PeakPart::Temporaries;
  std::string type; ///< "4x64xbf16", or empty
  int64_t bytes = 0;
  std::string source;             ///< what gives it its size: "states of f32, divided by 8 ranks"
  std::string madeBy, lastUsedBy; ///< "matmul h.3.mlp"; empty where the step neither makes nor ends it
  std::string reason;             ///< why it is live
  std::string remedy;             ///< one change that would make it smaller or remove it
};

/// The ten largest of `values`, largest first; of equal ones those that come first.
std::vector<PeakValue> takeLargest(std::vector<PeakValue> values);

/// The moment of the peak and what is live then: all of it where a plan is made, the ten largest values in a
/// report, largest first.
struct PeakExplanation {
  std::string op, layer, segment; ///< empty: no command runs
  std::vector<PeakValue> largest;
};

} // namespace ds::report

#endif // DS_REPORT_PEAKEXPLANATION_H
