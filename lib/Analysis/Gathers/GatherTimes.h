//===- GatherTimes.h - The commands and segments of a gather problem --------------===//
//
// When each command would start were nothing to wait for, and which segment it is of: what all parts of the
// search ask of the problem. Two segments of commands that take 1, 1 | 2 s, the first run four times: they
// start at 0, 1 and 2 s, a load for command 1 runs four times in a step and may be issued from command 0 on,
// one for command 2 runs once and may not be issued before command 2. A load for both is carried: it runs
// once, all the time.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_GATHERS_GATHERTIMES_H
#define DS_LIB_ANALYSIS_GATHERS_GATHERTIMES_H

#include "ds/Analysis/Gathers/GatherSchedule.h"

namespace ds::analysis::detail {

using Loads = std::vector<GatherLoad>;

class GatherTimes {
public:
  /// `problem` must outlive it.
  explicit GatherTimes(const GatherProblem &problem);

  const GatherProblem &problem;

  const GatherValue &valueOf(const GatherLoad &load) const { return problem.values[load.value]; }
  int64_t needOf(const GatherLoad &load) const { return valueOf(load).uses[load.firstUse].begin; }
  int64_t endOf(const GatherLoad &load) const { return valueOf(load).uses[load.lastUse].end; }
  int64_t commands() const { return int64_t(problem.seconds.size()); }

  uint32_t segmentOf(const GatherUse &use) const { return segments[use.begin]; }
  uint32_t segmentsCount() const { return uint32_t(runs.size()); }
  /// Times that a step runs a segment.
  int64_t runsOf(uint32_t segment) const { return runs[segment]; }
  int64_t runsOf(const GatherLoad &load) const {
    return runsOf(segmentOf(valueOf(load).uses[load.firstUse]));
  }
  /// A load of several segments: its memory is taken all the time.
  bool isCarried(const GatherLoad &load) const {
    return segmentOf(valueOf(load).uses[load.firstUse]) != segmentOf(valueOf(load).uses[load.lastUse]);
  }
  /// The first command before which `load` may be issued: not before the end of the value's use before, nor
  /// before its segment.
  int64_t boundOf(const GatherLoad &load) const;

  double startOf(int64_t command) const { return startSeconds[command]; }
  /// The last command that starts no later than `seconds`; the first where none does.
  int64_t commandAt(double seconds) const;

private:
  std::vector<double> startSeconds;  ///< of each command, were nothing to wait for
  std::vector<uint32_t> segments;    ///< of each command
  std::vector<int64_t> runs, begins; ///< of each segment: times in a step, first command
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_GATHERS_GATHERTIMES_H
