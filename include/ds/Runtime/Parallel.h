//===- Parallel.h - Parallel regions on the OpenMP runtime that oneDNN uses ----===//
//
// oneDNN and generated code must share one team of threads, and oneDNN's is libgomp's. clang cannot generate
// code for libgomp, so its stable entry point is called directly. libgomp makes a team per calling thread:
// only the compute stream's thread may call these.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PARALLEL_H
#define DS_RUNTIME_PARALLEL_H

#include <cstdint>

namespace ds::rt {

/// Calls body(context, begin, end) for disjoint ranges that cover [0, extent), on at most `threads` threads.
/// Cuts are multiples of `grain`, the ranges of equal length but for one grain. `body` must not throw.
void parallelRanges(int64_t extent, int64_t grain, uint32_t threads, void *context,
                    void (*body)(void *, int64_t, int64_t));

/// Calls body(context, index, worker) for each index of [0, count) once, in increasing order per thread; a
/// free thread takes the next one. `worker` < threads numbers the thread, for scratch memory of its own. For
/// work of uneven size whose result does not depend on who does it.
void parallelTasks(int64_t count, uint32_t threads, void *context, void (*body)(void *, int64_t, uint32_t));

} // namespace ds::rt

#endif // DS_RUNTIME_PARALLEL_H
