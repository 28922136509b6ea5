//===- Parallel.cpp - Parallel regions on libgomp ------------------------------===//
//
// A region costs a few microseconds, so work that fits one grain stays on the calling thread.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Parallel.h"

#include <algorithm>
#include <atomic>

// The part of libgomp's ABI that compilers emit calls to; unchanged since GCC 4.9.
extern "C" {
void GOMP_parallel(void (*body)(void *), void *data, unsigned numThreads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
}

namespace ds::rt {
namespace {

struct Ranges {
  int64_t extent, grain, blocks;
  void *context;
  void (*body)(void *, int64_t, int64_t);
};

/// The share of the calling thread of the team.
void runRange(void *data) {
  const Ranges &work = *static_cast<Ranges *>(data);
  const int64_t team = omp_get_num_threads(), self = omp_get_thread_num();
  const int64_t base = work.blocks / team, extra = work.blocks % team;
  const int64_t first = self * base + std::min(self, extra);
  const int64_t last = first + base + (self < extra ? 1 : 0);
  if (first < last)
    work.body(work.context, first * work.grain, std::min(last * work.grain, work.extent));
}

struct Tasks {
  std::atomic<int64_t> next;
  int64_t count;
  void *context;
  void (*body)(void *, int64_t, uint32_t);
};

void runTasks(void *data) {
  Tasks &work = *static_cast<Tasks *>(data);
  const auto worker = static_cast<uint32_t>(omp_get_thread_num());
  for (int64_t index; (index = work.next.fetch_add(1, std::memory_order_relaxed)) < work.count;)
    work.body(work.context, index, worker);
}

} // namespace

void parallelRanges(int64_t extent, int64_t grain, uint32_t threads, void *context,
                    void (*body)(void *, int64_t, int64_t)) {
  const int64_t blocks = extent / grain + (extent % grain != 0 ? 1 : 0);
  const unsigned team = static_cast<unsigned>(std::min<int64_t>(blocks, threads));
  if (team <= 1) {
    if (extent > 0)
      body(context, 0, extent);
    return;
  }
  Ranges work{extent, grain, blocks, context, body};
  GOMP_parallel(runRange, &work, team, 0);
}

void parallelTasks(int64_t count, uint32_t threads, void *context, void (*body)(void *, int64_t, uint32_t)) {
  const unsigned team = static_cast<unsigned>(std::min<int64_t>(count, threads));
  Tasks work{0, count, context, body};
  if (team <= 1) // in no parallel region, the thread has number 0
    runTasks(&work);
  else
    GOMP_parallel(runTasks, &work, team, 0);
}

} // namespace ds::rt
