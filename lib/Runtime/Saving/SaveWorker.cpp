//===- SaveWorker.cpp - The thread beside training that saves -------------------------===//
#include "SaveWorker.h"

#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

namespace ds::rt {

void SaveWorker::run(std::function<void()> job) {
  busy = true;
  try {
    thread = std::thread([this, job] {
      constexpr int kBehind = 10; // digests and copies take what training leaves of the processors
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kBehind);
      job();
      busy = false;
    });
  } catch (const std::system_error &) { // no thread is left: training waits, but the save is made
    job();
    busy = false;
  }
}

void SaveWorker::join() {
  if (thread.joinable())
    thread.join();
}

} // namespace ds::rt
