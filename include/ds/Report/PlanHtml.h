//===- PlanHtml.h - A plan as a page to look at --------------------------------------===//
//
// One self-contained page: memory over the step, the arena's buffers over time and offset, and the streams,
// on one time axis, with tables of what lives at the peak. The page needs nothing but a browser: it asks for
// no other file, and its own policy forbids it to.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_REPORT_PLANHTML_H
#define DS_REPORT_PLANHTML_H

#include "ds/Report/PlanTimeline.h"

namespace ds::report {

/// What a page holds at most, so that browsers stay quick. What is beyond is merged, and the page says so.
struct PageLimits {
  size_t perTimeline = 20000; ///< buffers, commands and points of the curve, each
  size_t together = 60000;    ///< of all timelines, each
};

/// The page of `report`, as HTML. `timelines` has one entry for each of `report.ranks`, in order; without any
/// there are tables alone. Equal arguments give equal bytes.
std::string printPlanHtml(const PlanReport &report, const std::vector<PlanTimeline> &timelines,
                          const PageLimits &limits = {});

/// At most `most` commands: neighbours of a stream and kind, the shortest first, are drawn as one, named by
/// their number. `moved[i]` is where command i went. Records, which take no time, stay as they are needed by
/// nobody: they go to the command that follows on their stream, or to the last one.
struct MergedCommands {
  std::vector<PlanTimeline::Command> commands;
  std::vector<uint32_t> moved;
  size_t merged = 0; ///< commands that are not drawn by themselves
};
MergedCommands mergeCommands(const std::vector<PlanTimeline::Command> &commands, size_t most);

/// At most `most` buffers: those that cover least of the picture are drawn as boxes around neighbours of one
/// category, whose bytes are the sum.
struct MergedBuffers {
  std::vector<PlanTimeline::Buffer> buffers;
  size_t merged = 0; ///< buffers that are not drawn by themselves
};
MergedBuffers mergeBuffers(const std::vector<PlanTimeline::Buffer> &buffers, size_t most);

/// At most `most` points: of neighbours the one with most bytes stays, so that the maximum is what it was.
std::vector<LivePoint> thinCurve(const std::vector<LivePoint> &curve, size_t most);

} // namespace ds::report

#endif // DS_REPORT_PLANHTML_H
