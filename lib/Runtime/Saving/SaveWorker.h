//===- SaveWorker.h - The thread beside training that saves ---------------------------===//
#ifndef DS_LIB_RUNTIME_SAVING_SAVEWORKER_H
#define DS_LIB_RUNTIME_SAVING_SAVEWORKER_H

#include <atomic>
#include <functional>
#include <thread>

namespace ds::rt {

class SaveWorker {
public:
  ~SaveWorker() { join(); }

  /// Does `job` on a thread of its own, or at once where no thread is left. One at a time: `join` is between
  /// two.
  void run(std::function<void()> job);
  bool isBusy() const { return busy; }
  void join();

private:
  std::thread thread;
  std::atomic<bool> busy{false};
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_SAVEWORKER_H
