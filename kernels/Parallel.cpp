//===- Parallel.cpp - Parallel regions on libgomp ------------------------------===//
//
// A region costs a few microseconds, so work that fits one grain stays on the calling thread.
//
//===---------------------------------------------------------------------------===//
#include "ds/Kernels/Parallel.h"

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

/// The calling thread's own team.
thread_local ParallelTeam *ownTeam = nullptr;

/// What one thread of a team does.
struct Region {
  void *work;
  ParallelTeam::Body body;
};

void runRegion(void *data) {
  const Region &region = *static_cast<Region *>(data);
  region.body(region.work, static_cast<uint32_t>(omp_get_thread_num()),
              static_cast<uint32_t>(omp_get_num_threads()));
}

/// Runs `body` on at most `team` threads.
void runTeam(uint32_t team, void *work, ParallelTeam::Body body) {
  if (ownTeam)
    return ownTeam->run(team, work, body);
  Region region{work, body};
  GOMP_parallel(runRegion, &region, team, 0);
}

/// The share of thread `self` of `team`.
void runRange(void *data, uint32_t self, uint32_t team) {
  const Ranges &work = *static_cast<Ranges *>(data);
  const int64_t base = work.blocks / team, extra = work.blocks % team;
  const int64_t first = self * base + std::min<int64_t>(self, extra);
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

void runTasks(void *data, uint32_t worker, uint32_t) {
  Tasks &work = *static_cast<Tasks *>(data);
  for (int64_t index; (index = work.next.fetch_add(1, std::memory_order_relaxed)) < work.count;)
    work.body(work.context, index, worker);
}

} // namespace

void setParallelTeam(ParallelTeam *team) { ownTeam = team; }

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
  runTeam(team, &work, runRange);
}

void parallelTasks(int64_t count, uint32_t threads, void *context, void (*body)(void *, int64_t, uint32_t)) {
  const unsigned team = static_cast<unsigned>(std::min<int64_t>(count, threads));
  Tasks work{0, count, context, body};
  if (team <= 1)
    runTasks(&work, 0, 1);
  else
    runTeam(team, &work, runTasks);
}

} // namespace ds::rt
