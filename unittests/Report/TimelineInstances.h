//===- TimelineInstances.h - Steps to draw -------------------------------------------===//
#ifndef DS_UNITTESTS_REPORT_TIMELINEINSTANCES_H
#define DS_UNITTESTS_REPORT_TIMELINEINSTANCES_H

#include "ds/Report/PlanTimeline.h"

namespace ds::report::test {

/// A step of `layers` layers with states, activations that live from the forward to the backward pass, and
/// gathers on a second stream; `perLayer` commands a layer in each direction. The arena is packed as a stack,
/// with `gaps` bytes of alignment beside it.
PlanTimeline stepOf(unsigned layers, unsigned perLayer, int64_t gaps = 0);

/// The report of one rank that goes with `timeline`.
PlanReport reportOf(const PlanTimeline &timeline, int64_t limit);

} // namespace ds::report::test

#endif // DS_UNITTESTS_REPORT_TIMELINEINSTANCES_H
