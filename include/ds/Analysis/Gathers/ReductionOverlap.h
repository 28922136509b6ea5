//===- ReductionOverlap.h - When a reduction beside compute has run -------------===//
//
// Gradients are handed to the reduce stream as soon as they are complete. Compute should wait for a reduction
// no earlier than it is done, and its buffers are free no earlier than compute has waited: this says where.
//
// Example: six commands of 1 s, reductions of 4 s and 1 s that are issued before commands 0 and 1 and hold 10
// bytes each, and 10 bytes that are live all the time. They are done at 4 and 5 s: compute waits before
// commands 4 and 5, for nothing. In 25 bytes they cannot both be held: it waits before command 1, 3 s, and
// before 2.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_GATHERS_REDUCTIONOVERLAP_H
#define DS_ANALYSIS_GATHERS_REDUCTIONOVERLAP_H

#include <cstdint>
#include <limits>
#include <vector>

namespace ds::analysis {

/// A reduction that is issued before compute command `ready`.
struct ReductionTask {
  int64_t ready = 0;
  double seconds = 0;
  int64_t bytes = 0; ///< that it holds until compute has waited for it
};

struct ReductionProblem {
  std::vector<double> seconds;    ///< of each compute command, in issue order
  std::vector<int64_t> liveBytes; ///< at each command, without what reductions hold; empty: no budget
  int64_t budgetBytes = std::numeric_limits<int64_t>::max();
  std::vector<ReductionTask> reductions; ///< in the order of their stream, `ready` ascending
};

/// For each reduction the first command that starts when it has run (the number of commands where none does),
/// or an earlier one, before which compute waits, where the budget cannot hold its bytes any longer.
std::vector<int64_t> findWaits(const ReductionProblem &problem);

} // namespace ds::analysis

#endif // DS_ANALYSIS_GATHERS_REDUCTIONOVERLAP_H
