//===- AlgorithmChoice.cpp - One of several algorithms, by time -------------------------===//
#include "AlgorithmChoice.h"

#include <limits>

namespace ds::rt::cuda {
namespace {

constexpr int kTimedRuns = 5;
constexpr float kNever = std::numeric_limits<float>::infinity();

/// Milliseconds of the timed runs of candidate `index`; kNever if it does not run.
Result<float> time(const Driver &driver, CUstream stream, const Candidates &candidates, size_t index) {
  CUevent begin = nullptr, end = nullptr;
  driver.eventCreate(&begin, CU_EVENT_DEFAULT);
  driver.eventCreate(&end, CU_EVENT_DEFAULT);
  Status status = candidates.run(index); // the first run loads code
  driver.eventRecord(begin, stream);
  for (int i = 0; i < kTimedRuns && status; ++i)
    status = candidates.run(index);
  driver.eventRecord(end, stream);
  const CUresult result = driver.streamSynchronize(stream);
  float milliseconds = kNever;
  if (result == CUDA_SUCCESS && status)
    driver.eventElapsedTime(&milliseconds, begin, end);
  driver.eventDestroy(begin);
  driver.eventDestroy(end);
  if (result != CUDA_SUCCESS)
    return asError(driver, result, "timing an algorithm");
  return milliseconds;
}

Result<size_t> fastest(const Driver &driver, CUstream stream, const Candidates &candidates) {
  size_t best = 0;
  float least = kNever;
  for (size_t i = 0; i < candidates.count && candidates.count > 1; ++i) {
    const Result<float> taken = time(driver, stream, candidates, i);
    if (!taken)
      return taken.error();
    if (*taken < least) {
      least = *taken;
      best = i;
    }
  }
  return best;
}

} // namespace

Result<size_t> chooseByTime(const Driver &driver, CUstream stream, AlgorithmCache &cache,
                            const std::string &key, const Candidates &candidates) {
  if (!cache.keeps())
    return size_t(0);
  Result<size_t> best = fastest(driver, stream, candidates);
  if (best)
    cache.add(key, candidates.value(*best));
  return best;
}

} // namespace ds::rt::cuda
