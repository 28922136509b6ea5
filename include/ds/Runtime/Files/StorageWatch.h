//===- StorageWatch.h - Tells of storage that does not answer -------------------===//
//
// A read or a write of a network file system, or of a disk that is failing, may take for ever and say
// nothing. Nobody can end it, for the kernel does not let go of the thread; but the user can be told. So
// whoever is about to touch storage says so for that long, and a thread that does nothing else looks now and
// then for how long that has been.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FILES_STORAGEWATCH_H
#define DS_RUNTIME_FILES_STORAGEWATCH_H

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace ds::rt {

/// One read, write or sync by this thread, for as long as it lives. Costs a lock that hardly anybody wants,
/// and nothing is allocated.
class StorageOperation {
public:
  /// `doing`: "reading", a text that stays valid, as `path` does while this lives.
  StorageOperation(const char *doing, const std::string &path);
  ~StorageOperation();
  StorageOperation(const StorageOperation &) = delete;
  StorageOperation &operator=(const StorageOperation &) = delete;

private:
  friend class StorageWatch;
  const char *const doing;
  const std::string &path;
  const std::chrono::steady_clock::time_point since;
  std::chrono::steady_clock::duration told{}; ///< how long it had taken when that was told; guarded, as below
  StorageOperation *before, *after;           ///< in the list of all
};

/// Tells of the operations of this process that take long. At most one lives.
class StorageWatch {
public:
  using Tell = std::function<void(const std::string &)>;

  /// `tell` gets "reading 'data.bin' for 60 s" once an operation has taken `patience`, and whenever that has
  /// doubled; on a thread of this object. Without a thread, where none can be started, nothing is told.
  StorageWatch(std::chrono::milliseconds patience, Tell tell);
  ~StorageWatch();

private:
  void watch();

  const std::chrono::milliseconds patience;
  const Tell tell;
  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false; ///< guarded by mutex
  std::thread thread;
};

} // namespace ds::rt

#endif // DS_RUNTIME_FILES_STORAGEWATCH_H
