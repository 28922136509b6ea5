//===- StartThreads.h - As many threads as the system starts -------------------------===//
#ifndef DS_LIB_RUNTIME_CHECKPOINT_STARTTHREADS_H
#define DS_LIB_RUNTIME_CHECKPOINT_STARTTHREADS_H

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ds::rt {

/// Starts up to `most` threads that run `body` each. Where the system has no more (`ulimit -u`, `pids.max`)
/// they are fewer, or none: files are then written and read more slowly, by the caller at the worst, which is
/// better than a run without its checkpoint.
template <class Body>
std::vector<std::thread> startThreads(size_t most, const Body &body) {
  std::vector<std::thread> threads;
  threads.reserve(most); // afterwards only a thread can fail
  try {
    while (threads.size() < most)
      threads.emplace_back(body);
  } catch (const std::system_error &) {
  }
  return threads;
}

/// Ends threads that wait for `changed` under `mutex`, and return where they see `ending`.
inline void endThreads(std::vector<std::thread> &threads, std::mutex &mutex, std::condition_variable &changed,
                       bool &ending) {
  {
    const std::lock_guard lock(mutex);
    ending = true;
  }
  changed.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CHECKPOINT_STARTTHREADS_H
