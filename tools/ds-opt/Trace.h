//===- Trace.h - A planned step as a Chrome trace -----------------------------------===//
#ifndef DS_TOOLS_DSOPT_TRACE_H
#define DS_TOOLS_DSOPT_TRACE_H

#include "ds/Report/PlanTimeline.h"

namespace ds::opt {

/// Writes what chrome://tracing and Perfetto show of planned steps: a process for each timeline with a row
/// for each stream, arrows from events to the commands that stand for them, and the bytes that are reserved
/// in each memory, by category and together.
Status writePlanTrace(const std::vector<report::PlanTimeline> &timelines, const std::string &path);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_TRACE_H
