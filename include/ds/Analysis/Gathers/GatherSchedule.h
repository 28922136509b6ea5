//===- GatherSchedule.h - When to gather sharded values ---------------------------===//
//
// Values that lie sharded over the ranks are gathered before they are used, on a stream beside the compute
// stream. How long each stays then, for a use, from forward to backward, or for all micro-steps of a step, is
// chosen with all else that takes a step's memory (Residency.h), before it is known to the byte what is live.
// Here it is: what does not fit is taken back, least time saved for a byte first, and gathered again. What is
// decided here is where in the order of compute commands each gather is issued (prefetch).
//
// The commands of all micro-steps stand one behind the other. A value that is kept from one to the next has a
// place of its own for the whole step, for the function in the middle runs again and again.
//
// The search: issue positions as late as hiding allows, or as early as the bounds do, whichever exposes less,
// then moved one by one while that helps. The price: positions are not searched exhaustively, and a link that
// other streams also use counts as free.
//
// Example: commands of 1 s each; a value whose gather takes 2 s is read by commands 3 and 9. Each of two
// gathers, issued before commands 1 and 7, is there when it is read. Kept from 3 to 9 it is gathered once,
// and holds its bytes while commands 4 to 6 run as well; in a budget that these exceed, the second gather
// comes back.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_GATHERS_GATHERSCHEDULE_H
#define DS_ANALYSIS_GATHERS_GATHERSCHEDULE_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ds::analysis {

/// Commands [begin, end) read a value.
struct GatherUse {
  int64_t begin = 0, end = 0;
};

/// How long a value is to stay when it has been gathered.
enum class GatherStay : uint8_t {
  Use,     ///< until one use ends
  Segment, ///< for all uses of a segment
  Step,    ///< for all uses
};

/// A value that must be gathered while it is used, and does not change between its uses.
struct GatherValue {
  int64_t bytes = 0;           ///< of the gathered value
  int64_t elements = 0;        ///< of the gathered value
  double seconds = 0;          ///< one gather of it takes
  int64_t earliest = 0;        ///< first command before which a gather may be issued
  std::vector<GatherUse> uses; ///< ascending and apart: forward, backward
  GatherStay stay = GatherStay::Use;
};

/// The commands from the end of the segment before it to `end`. No use and no gather crosses its ends.
struct GatherSegment {
  int64_t end = 0;
  int64_t runs = 1; ///< times that a step executes it, one after the other
};

struct GatherProblem {
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  std::vector<double> seconds;    ///< of each compute command, in issue order
  std::vector<int64_t> liveBytes; ///< at each command, without gathered values
  std::vector<GatherValue> values;
  std::vector<GatherSegment> segments; ///< the micro-steps of one step; empty: one, run once
  double issueSeconds = 0;             ///< for each group of gathers that are issued at one command
  int64_t budgetBytes = kNoLimit;      ///< for liveBytes and gathered values together
  int64_t prefetchElements = kNoLimit; ///< a gather is issued ahead of need only while fewer are under way
  int64_t maxLiveElements = kNoLimit;  ///< gathered at one time; what is used at once may exceed it
  int64_t maxReuseElements = kNoLimit; ///< of other values used between two uses of a kept one
};

/// One gather: from `issue` on the value takes memory, until its use `lastUse` ends. One that serves several
/// segments serves all uses, and takes memory all the time.
struct GatherLoad {
  uint32_t value = 0;
  uint32_t firstUse = 0, lastUse = 0; ///< more than one: kept in between
  int64_t issue = 0;                  ///< handed to the gather stream before this command
};

struct GatherSchedule {
  std::vector<GatherLoad> loads; ///< in the order in which the stream executes them
  double exposedSeconds = 0;     ///< time of a step in which compute waits for gathers
  int64_t gatheredBytes = 0;     ///< in a step
  int64_t peakBytes = 0;         ///< of liveBytes and gathered values
};

struct GatherOptions {
  int64_t maxEvaluations = 750; ///< simulations that the search may spend
};

/// The best schedule found, or why the problem is malformed. Equal input, equal output. Values stay as long
/// as they are to, or where the bounds do not allow that for a segment, or for a use. Bounds of memory and
/// elements restrict prefetching and keeping alone: a gather that is issued where its value is needed is
/// always allowed, and the plan tells whether that fits.
Result<GatherSchedule> scheduleGathers(const GatherProblem &problem, const GatherOptions &options = {});

/// Seconds of a step for which compute waits when `loads` are executed in their order.
double exposedSeconds(const GatherProblem &problem, const std::vector<GatherLoad> &loads);
/// The same of one run of each segment.
std::vector<double> exposedBySegment(const GatherProblem &problem, const std::vector<GatherLoad> &loads);

/// What keeps a value from staying gathered.
enum class GatherLimit : uint8_t {
  Choice, ///< it was not to stay
  Bytes,
  LiveElements,
  ReuseElements,
};

/// A gather of a value that has been gathered before in the step, and why it is not kept instead.
struct Regather {
  uint32_t load = 0; ///< into the schedule's loads
  GatherLimit limit = GatherLimit::Choice;
  int64_t wanted = 0;           ///< what keeping it would need, of what is limited
  bool isForOneSegment = false; ///< it is kept out of a segment that has used it; else from another one
};

/// Why the gathers of `schedule` that repeat earlier ones are there: each is looked at with all else as it
/// is.
std::vector<Regather> explainRegathers(const GatherProblem &problem, const GatherSchedule &schedule);

/// What is wrong with `schedule`, in one sentence, or nothing. Shares no code with the solver.
std::optional<std::string> check(const GatherSchedule &schedule, const GatherProblem &problem);

} // namespace ds::analysis

#endif // DS_ANALYSIS_GATHERS_GATHERSCHEDULE_H
