//===- AlgorithmChoice.cpp - One of several algorithms, by time -------------------------===//
#include "AlgorithmChoice.h"

#include <fmt/format.h>

#include <optional>

namespace ds::rt::cuda {
namespace {

constexpr int kTimedRuns = 5;

/// Milliseconds of the timed runs between two events, or why there are none.
Result<float> timeBetween(const Driver &driver, CUstream stream, const std::function<Status()> &run,
                          CUevent begin, CUevent end) {
  Status status = run(); // loads code
  CUresult result = driver.eventRecord(begin, stream);
  for (int i = 0; i < kTimedRuns && status; ++i)
    status = run();
  if (result == CUDA_SUCCESS)
    result = driver.eventRecord(end, stream);
  // Also after a failure: what was started still uses the operands.
  if (const CUresult done = driver.streamSynchronize(stream); result == CUDA_SUCCESS)
    result = done;
  float milliseconds = 0;
  if (result == CUDA_SUCCESS && status)
    result = driver.eventElapsedTime(&milliseconds, begin, end);
  if (!status)
    return status.error();
  return result == CUDA_SUCCESS ? Result<float>(milliseconds) : asError(driver, result, "timing it");
}

Result<float> time(const Driver &driver, CUstream stream, const std::function<Status()> &run) {
  CUevent events[2] = {};
  CUresult result = CUDA_SUCCESS;
  for (CUevent &event : events)
    if (result == CUDA_SUCCESS)
      result = driver.eventCreate(&event, CU_EVENT_DEFAULT);
  const Result<float> taken = result == CUDA_SUCCESS ? timeBetween(driver, stream, run, events[0], events[1])
                                                     : asError(driver, result, "making an event");
  for (CUevent event : events)
    if (event)
      driver.eventDestroy(event);
  return taken;
}

} // namespace

Result<size_t> fastest(const Driver &driver, CUstream stream, const Candidates &candidates) {
  std::optional<size_t> best;
  float least = 0;
  std::string failures;
  for (size_t i = 0; i < candidates.count; ++i) {
    const Result<float> taken = time(driver, stream, [&] { return candidates.run(i); });
    if (taken && (!best || *taken < least)) {
      least = *taken;
      best = i;
    }
    if (!taken)
      failures += fmt::format("; {}: {}", candidates.name(i), taken.error().message);
  }
  if (best)
    return *best;
  return Error{ExitCode::Device,
               fmt::format("none of {} {} runs{}", candidates.count,
                           candidates.count == 1 ? "candidate" : "candidates", failures),
               "another version of the library may do better; see docs/gpu.md for what can be left out"};
}

Status runOnce(const Driver &driver, CUstream stream, const std::function<Status()> &run) {
  Status status = run();
  const CUresult result = driver.streamSynchronize(stream);
  if (status && result != CUDA_SUCCESS)
    return asError(driver, result, "running it");
  return status;
}

} // namespace ds::rt::cuda
