//===- GatherGaps.h - Where a value is kept ------------------------------------------===//
//
// The gaps between uses over which values are to stay, and which of them the bounds have room for: most time
// saved for a byte first. A value of 10 bytes that takes 2 s to gather has two uses in a segment that a step
// runs four times: kept between them it is gathered four times and not eight, which saves 8 s of the stream,
// 0.8 s for a byte.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_GATHERS_GATHERGAPS_H
#define DS_LIB_ANALYSIS_GATHERS_GATHERGAPS_H

#include "GatherTimes.h"

namespace ds::analysis::detail {

/// Uses of a value between which it is to stay: two of one segment, or all of all segments.
struct Gap {
  uint32_t value, firstUse, lastUse;
};

class GatherGaps {
public:
  explicit GatherGaps(const GatherTimes &times);

  /// Of what is to stay as much as the bounds allow beside what is in use or on its way: by gap, whether it
  /// is kept.
  std::vector<bool> keepWhatFits() const;
  /// A load for each use that nothing is kept for, issued where it is needed.
  Loads makeLoads(const std::vector<bool> &kept) const;
  /// The most elements of other values that are used between two uses that `gap` joins.
  int64_t reuseDistance(const Gap &gap) const;

private:
  /// Whether a value is to stay over several segments.
  bool isForStep(const Gap &gap) const;
  bool isAllowed(const Gap &gap) const { return reuseDistance(gap) <= times.problem.maxReuseElements; }
  int64_t useDistance(uint32_t value, uint32_t use) const;
  int64_t loopDistance(uint32_t value, uint32_t segment) const;
  std::vector<GatherUse> heldOver(const Gap &gap, const std::vector<int64_t> &issues) const;
  double savedSeconds(const Gap &gap) const;
  std::vector<size_t> orderByWorth() const;

  const GatherTimes &times;
  std::vector<Gap> gaps; ///< of a value that is to stay for the step that one first
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_GATHERS_GATHERGAPS_H
