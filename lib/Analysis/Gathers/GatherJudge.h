//===- GatherJudge.h - How good a list of gathers is ----------------------------------===//
//
// Candidates and their scores: nanoseconds exposed, bytes sent in a step, peak bytes, smaller first in that
// order. Two gathers of 10 bytes, of 3 and 1 s, beside 100 bytes that are live: issued in time they score (0,
// 20, 120), and where they are needed (4,000,000,000, 20, 110), which is worse for all that its peak is
// lower.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_GATHERS_GATHERJUDGE_H
#define DS_LIB_ANALYSIS_GATHERS_GATHERJUDGE_H

#include "GatherTimes.h"

#include <tuple>

namespace ds::analysis::detail {

using Score = std::tuple<int64_t, int64_t, int64_t>;

struct Candidate {
  Loads loads; ///< in stream order
  Score score;

  int64_t peakBytes() const { return std::get<2>(score); }
};

class GatherJudge {
public:
  explicit GatherJudge(const GatherTimes &times) : times(times) {}

  Candidate judge(Loads loads) const;
  /// The same, or nothing if `loads` expose more than `known`.
  std::optional<Candidate> judgeBelow(Loads loads, const Candidate &known) const;

private:
  int64_t exposedNs(const Loads &sorted) const;
  Candidate scored(Loads sorted, int64_t exposedNs) const;
  int64_t peakOf(const Loads &loads) const;

  const GatherTimes &times;
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_GATHERS_GATHERJUDGE_H
