//===- ReductionOverlap.cpp - When a reduction beside compute has run -----------===//
//
// One pass over the commands with the reductions that compute has not waited for yet, oldest first: their
// stream executes them in that order.
//
//===---------------------------------------------------------------------------===//
#include "ds/Analysis/Gathers/ReductionOverlap.h"

#include <algorithm>
#include <deque>

namespace ds::analysis {

std::vector<int64_t> findWaits(const ReductionProblem &problem) {
  struct Pending {
    size_t index;
    double done;
  };
  int64_t count = problem.seconds.size(), held = 0;
  std::vector<int64_t> waits(problem.reductions.size(), count);
  std::deque<Pending> pending;
  double now = 0, streamFree = 0;
  size_t next = 0;
  for (int64_t command = 0; command < count; ++command) {
    for (; next < problem.reductions.size() && problem.reductions[next].ready <= command; ++next) {
      streamFree = std::max(streamFree, now) + problem.reductions[next].seconds;
      pending.push_back({next, streamFree});
      held += problem.reductions[next].bytes;
    }
    auto isOver = [&] {
      return !problem.liveBytes.empty() && problem.liveBytes[command] > problem.budgetBytes - held;
    };
    while (!pending.empty() && (pending.front().done <= now || isOver())) {
      now = std::max(now, pending.front().done);
      waits[pending.front().index] = command;
      held -= problem.reductions[pending.front().index].bytes;
      pending.pop_front();
    }
    now += problem.seconds[command];
  }
  return waits;
}

} // namespace ds::analysis
