//===- StartTeam.cpp - Starts the threads of parallel regions ----------------------===//
//
// libgomp ends the process when it cannot start a thread. So many threads are therefore started here first,
// all at once, and a refusal is an error like any other; then the team itself is, while there is room.
//
//===---------------------------------------------------------------------------===//
#include "StartTeam.h"

#include "ds/Kernels/Parallel.h"
#include "ds/Support/RunTool.h"

#include <atomic>
#include <fmt/format.h>
#include <pthread.h>
#include <vector>

namespace ds::rt {
namespace {

/// Waits until all have been started.
void *waitForAll(void *argument) {
  static_cast<std::atomic<bool> *>(argument)->wait(false);
  return nullptr;
}

/// 0, or why the system does not start that many.
int tryThreads(uint32_t count) {
  std::atomic<bool> all{false};
  std::vector<pthread_t> threads(count);
  uint32_t started = 0;
  int error = 0;
  while (started < count && (error = ::pthread_create(&threads[started], nullptr, waitForAll, &all)) == 0)
    ++started;
  all = true;
  all.notify_all();
  for (uint32_t i = 0; i < started; ++i)
    ::pthread_join(threads[i], nullptr);
  return error;
}

} // namespace

Status startTeam(uint32_t threads) {
  if (threads <= 1)
    return {};
  if (const int error = tryThreads(threads - 1)) {
    Error failure = noThread(error);
    failure.message += fmt::format("; the program asks for {}", threads);
    return failure;
  }
  parallelRanges(threads, 1, threads, nullptr, [](void *, int64_t, int64_t) {});
  return {};
}

} // namespace ds::rt
