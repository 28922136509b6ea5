//===- ReductionOverlap.h - When a reduction beside compute has run -------------===//
//
// Gradients are handed to the reduce stream as soon as they are complete. Compute should wait for a reduction
// no earlier than it is done, and its buffers are free no earlier than compute has waited: this says where.
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
