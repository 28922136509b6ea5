//===- Parallel.h - Parallel regions on the OpenMP runtime that oneDNN uses ----===//
//
// oneDNN and generated code must share one team of threads, and oneDNN's is libgomp's. clang cannot generate
// code for libgomp, so its stable entry point is called directly. libgomp makes a team per calling thread:
// only the compute stream's thread may call these, and a thread that has a team of its own.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_PARALLEL_H
#define DS_KERNELS_PARALLEL_H

#include <cstdint>

namespace ds::rt {

/// Threads that work together for the one that calls `run`.
class ParallelTeam {
public:
  using Body = void (*)(void *context, uint32_t index, uint32_t count);
  virtual ~ParallelTeam() = default;
  /// Calls body(context, index, count) for each index below a count of at most `most` once, on threads of
  /// their own, and returns when all are done.
  virtual void run(uint32_t most, void *context, Body body) = 0;
};

/// From now on the regions below of this thread run on `team` in place of libgomp's; null: on libgomp's
/// again.
void setParallelTeam(ParallelTeam *team);

/// Calls body(context, begin, end) for disjoint ranges that cover [0, extent), on at most `threads` threads.
/// Cuts are multiples of `grain`, the ranges of equal length but for one grain. `body` must not throw.
void parallelRanges(int64_t extent, int64_t grain, uint32_t threads, void *context,
                    void (*body)(void *, int64_t, int64_t));

/// Calls body(context, index, worker) for each index of [0, count) once, in increasing order per thread; a
/// free thread takes the next one. `worker` < threads numbers the thread, for scratch memory of its own. For
/// work of uneven size whose result does not depend on who does it.
void parallelTasks(int64_t count, uint32_t threads, void *context, void (*body)(void *, int64_t, uint32_t));

} // namespace ds::rt

#endif // DS_KERNELS_PARALLEL_H
