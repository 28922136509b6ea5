//===- GatherSearch.h - Which gathers to keep, and when to issue them ---------------===//
//
// The search: gaps are kept as far as the bounds allow (GatherGaps), all loads are issued late or early,
// whichever is better (GatherIssues, GatherJudge), then moved one by one while that helps, and postponed
// where it costs nothing. A load that may be issued at commands 0 to 16 is tried at 0, 2, 4 ... 16, each a
// simulation; 750 simulations are all that a search spends.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_GATHERS_GATHERSEARCH_H
#define DS_LIB_ANALYSIS_GATHERS_GATHERSEARCH_H

#include "GatherJudge.h"

namespace ds::analysis::detail {

class GatherSearch {
public:
  /// `problem` must outlive it.
  GatherSearch(const GatherProblem &problem, const GatherOptions &options)
      : times(problem), judge(times), evaluations(options.maxEvaluations) {}
  GatherSchedule solve();

private:
  Candidate begin() const;
  void improve(Candidate &candidate);
  int64_t firstNeed(const Loads &loads, int64_t issue) const;
  void postpone(Candidate &candidate) const;

  const GatherTimes times;
  const GatherJudge judge; ///< of `times`
  int64_t evaluations;     ///< that are left
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_GATHERS_GATHERSEARCH_H
