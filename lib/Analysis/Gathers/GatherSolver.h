//===- GatherSolver.h - The search behind GatherSchedule --------------------------===//
//
// What stays of what is to stay (GatherGaps.cpp), issue positions for it (GatherSchedule.cpp), and single
// moves of them (GatherSearch.cpp).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_GATHERS_GATHERSOLVER_H
#define DS_LIB_ANALYSIS_GATHERS_GATHERSOLVER_H

#include "ds/Analysis/Gathers/GatherSchedule.h"

#include <tuple>

namespace ds::analysis::detail {

using Loads = std::vector<GatherLoad>;

/// Uses of a value between which it is to stay: two of one segment, or all of all segments.
struct Gap {
  uint32_t value, firstUse, lastUse;
};

/// What is gathered while each command runs.
struct Occupancy {
  std::vector<int64_t> bytes, elements;
  std::vector<int64_t> ahead; ///< elements of gathers that were issued and are not yet needed
  std::vector<int64_t> last;  ///< those of the one among them that is needed last
  std::vector<int64_t> lastNeed;
};

/// How good a schedule is, smaller first: nanoseconds exposed, bytes sent, peak bytes.
using Score = std::tuple<int64_t, int64_t, int64_t>;

struct Candidate {
  Loads loads;
  Score score;
};

/// One search: many small questions about the same gaps, segments and times, all of which each would take
/// as a function of its own.
/// Size: one memory model is to replace it whole; parts that it were cut into now would go with it.
class GatherSolver {
public:
  GatherSolver(const GatherProblem &problem, const GatherOptions &options);
  GatherSchedule solve();
  std::vector<Regather> explain(const Loads &loads) const;

private:
  int64_t needOf(const GatherLoad &load) const { return valueOf(load).uses[load.firstUse].begin; }
  int64_t endOf(const GatherLoad &load) const { return valueOf(load).uses[load.lastUse].end; }
  const GatherValue &valueOf(const GatherLoad &load) const { return problem.values[load.value]; }

  void findSegments();
  uint32_t segmentOf(const GatherUse &use) const { return segments[use.begin]; }
  /// A load of several segments: its memory is taken all the time.
  bool isCarried(const GatherLoad &load) const {
    return segmentOf(valueOf(load).uses[load.firstUse]) != segmentOf(valueOf(load).uses[load.lastUse]);
  }
  int64_t runsOf(const GatherLoad &load) const { return runs[segmentOf(valueOf(load).uses[load.firstUse])]; }
  void findGaps();
  /// Whether a value is to stay over several segments.
  bool isForStep(const Gap &gap) const {
    const std::vector<GatherUse> &uses = problem.values[gap.value].uses;
    return segmentOf(uses[gap.firstUse]) != segmentOf(uses[gap.lastUse]);
  }
  std::vector<GatherUse> heldOver(const Gap &gap, const std::vector<int64_t> &issues) const;
  std::vector<size_t> orderByWorth() const;
  std::vector<bool> keepWhatFits() const;
  int64_t reuseDistance(uint32_t value, uint32_t use) const;
  int64_t loopDistance(uint32_t value, uint32_t segment) const;
  int64_t reuseDistance(const Gap &gap) const;
  bool isAllowed(const Gap &gap) const { return reuseDistance(gap) <= problem.maxReuseElements; }
  double savedSeconds(const Gap &gap) const;
  Loads makeLoads(const std::vector<bool> &kept) const;
  Occupancy occupancyOf(const Loads &loads, size_t without) const;
  void addAhead(Occupancy &occupancy, const GatherLoad &load, int64_t from, int64_t to) const;
  bool allows(const Occupancy &occupancy, int64_t command, const GatherLoad &load) const;
  int64_t boundOf(const GatherLoad &load) const;
  int64_t earliestIssue(const Occupancy &occupancy, const GatherLoad &load) const;
  std::optional<Regather> exceededBy(const Loads &loads) const;
  void issueLate(Loads &loads) const;
  int64_t commandAt(double seconds) const;
  bool moveGroup(Occupancy &occupancy, Loads &loads, size_t begin, size_t end, int64_t issue) const;
  void issueEarly(Loads &loads) const;
  Candidate evaluate(const std::vector<bool> &kept) const;
  Candidate judge(Loads loads) const;
  /// The same, or nothing if `loads` expose more than `known`.
  std::optional<Candidate> judgeBelow(Loads loads, const Candidate &known) const;
  int64_t exposedNs(const Loads &sorted) const;
  Candidate scored(Loads sorted, int64_t exposedNs) const;
  int64_t peakOf(const Loads &loads) const;
  void improve(Candidate &best);
  int64_t firstNeed(const Loads &loads, int64_t issue) const;
  void postpone(Candidate &best);

  const GatherProblem &problem;
  int64_t evaluations;
  std::vector<double> startSeconds;  ///< of each command, were nothing to wait for
  std::vector<uint32_t> segments;    ///< of each command
  std::vector<int64_t> runs, begins; ///< of each segment: times in a step, first command
  std::vector<Gap> gaps;             ///< of a value that is to stay for the step that one first
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_GATHERS_GATHERSOLVER_H
