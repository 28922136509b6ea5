//===- PlanTimeline.h - A planned step over time -------------------------------------===//
//
// Which command runs when on which stream, and which bytes are reserved for what meanwhile: what traces,
// pictures and explanations of a plan draw. Plain data; times are predictions, bytes and places are the
// plan's own.
//
// Memory is reserved in the order of the commands, as the planner reserves it: a buffer is live from the
// moment at which the compute stream reaches the place of its first command in that order until it has
// passed the last. What two buffers have in common in time they have in common in the order as well, so the
// curve over time has the peak of the plan.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_REPORT_PLANTIMELINE_H
#define DS_REPORT_PLANTIMELINE_H

#include "ds/Report/PlanReport.h"

namespace ds::report {

struct PlanTimeline {
  struct Command {
    std::string name, layer, segment;
    uint32_t stream = 0;       ///< into `streams`
    std::string kind;          ///< "compute", "collective", "copy", "storage", "record" or "wait"
    double begin = 0, end = 0; ///< seconds
    double flops = 0, bytes = 0;
    uint32_t event = 0; ///< that it records or waits for
  };

  struct Buffer {
    std::string name, layer;
    Category category = Category::Activations;
    std::string space = "device"; ///< device, host or nvme
    int64_t offset = 0; ///< in its space's arena; -1: here and there (alignment, and gaps of the packing)
    int64_t bytes = 0;
    double begin = 0, end = 0; ///< seconds; states and inputs live from 0 to the end of the step
    uint32_t beginCommand = 0, endCommand = 0; ///< [begin, end) into `commands`
    std::string type = "";                     ///< "4x64x128xbf16", or empty
  };

  std::string title;
  std::vector<std::string> streams;
  std::vector<Command> commands; ///< in issue order, micro-step after micro-step, then the update
  std::vector<Buffer> buffers;
  double seconds = 0;                                         ///< until the last of `commands` has run
  double stepSeconds = 0;                                     ///< of the whole step, shown or not
  double computeSeconds = 0, exposedCommunicationSeconds = 0; ///< of the whole step
  std::vector<double> busySeconds;                            ///< of each stream in the whole step
  int64_t arenaBytes = 0, peakBytes = 0;
  double peakTime = 0; ///< seconds
  uint32_t peakCommand = 0;
  std::string peakAt;
  std::vector<std::string> notes; ///< what is not shown
};

/// What is live from one moment to the next.
struct LivePoint {
  uint32_t command = 0; ///< that is reached
  double time = 0;      ///< seconds, at which it is
  CategoryBytes bytes{};

  int64_t total() const;
};

/// The bytes of `space` that are reserved at each command that changes them, in order; several may be at one
/// time. The first point is at command 0, the last at the end with what lives for good.
std::vector<LivePoint> liveCurve(const PlanTimeline &timeline, const std::string &space = "device");

} // namespace ds::report

#endif // DS_REPORT_PLANTIMELINE_H
