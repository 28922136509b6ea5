//===- StreamWorkers.h - One thread per stream that does not compute -----------===//
//
// Workers sleep until a segment starts, run its commands of their stream in order, and meet again at its end.
// Events are counters: an event is recorded when it holds the number of the current execution, so that
// nothing has to be reset. Whoever waits, sleeps in the kernel. After a failure the rest of the segment is
// skipped on every stream, but its events are still recorded: nobody waits for ever. A command that already
// runs is left to end; `failed` is told first, so that it can end what waits for other ranks.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CPU_STREAMWORKERS_H
#define DS_LIB_RUNTIME_CPU_STREAMWORKERS_H

#include "HostTeam.h"
#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace ds::rt {

/// Events of a program, each with the number of the execution that last recorded it.
class StreamEvents {
public:
  explicit StreamEvents(uint32_t count) : events(std::make_unique<std::atomic<uint32_t>[]>(count)) {}

  void record(uint32_t event, uint32_t execution);
  bool isRecorded(uint32_t event, uint32_t execution) const {
    return events[event].load(std::memory_order_acquire) == execution;
  }
  void wait(uint32_t event, uint32_t execution) const;

private:
  std::unique_ptr<std::atomic<uint32_t>[]> events;
};

/// The first failure of an execution, from any stream.
class FirstFailure {
public:
  /// `told` is called with it, by the stream that fails; it may be empty.
  explicit FirstFailure(std::function<void(const Error &)> told) : told(std::move(told)) {}

  /// Before the streams start.
  void forget() { failed = false; }
  void note(const Error &failure);
  /// Whether there is one.
  explicit operator bool() const { return failed; }
  Status status() const;

private:
  const std::function<void(const Error &)> told;
  std::atomic<bool> failed{false};
  mutable std::mutex mutex; ///< guards error
  Error error;
};

/// Where workers wait for the next execution, and whoever runs it for them.
class StreamGate {
public:
  /// Starts an execution of `segment` by so many workers; returns its number, from 1.
  uint32_t open(uint32_t segment, uint32_t workers);
  /// Returns when all of them have left.
  void awaitAll();

  /// What a worker is to execute after execution `seen`, which becomes that one; nothing: it is to end.
  std::optional<uint32_t> await(uint32_t &seen);
  /// A worker has finished its part.
  void leave();
  /// Ends the workers.
  void close();

private:
  std::atomic<uint32_t> epoch{0};   ///< number of the current execution; changing it starts it
  std::atomic<uint32_t> running{0}; ///< workers that have not finished the current execution
  uint32_t segment = 0;             ///< of the current execution; written before epoch
  std::atomic<bool> stopping{false};
};

class StreamWorkers {
public:
  using RunTask = std::function<Status(uint32_t command)>;
  using Failed = std::function<void(const Error &)>;
  /// Storage commands, which can be under way while their stream goes on: a disk that waits for the next one
  /// is idle. `advance` waits for a part of one that was begun, and says whether it is over.
  struct Overlapped {
    std::function<Status(uint32_t command)> begin;
    std::function<bool(uint32_t command)> advance;
    std::function<Status(uint32_t command)> finish;
  };

  /// `runTask` is called from the workers of all streams, `failed` (which may be empty) from the one that
  /// fails first.
  StreamWorkers(const Program &program, RunTask runTask, Overlapped overlapped, Failed failed = {});
  ~StreamWorkers();

  /// Starts a worker for each stream but the compute stream. Once, before `run`. Device where the system
  /// allows no thread.
  Status start();

  /// Runs `segment`, the compute stream on the calling thread. Returns the first failure.
  Status run(uint32_t segment);

  /// Nanoseconds since the last call for which the compute stream waited for the others.
  int64_t takeWaitedNs() { return std::exchange(waitedNs, 0); }

private:
  void workerLoop(uint32_t stream);
  void runStream(uint32_t stream, uint32_t segment, uint32_t epoch);
  void runStorage(uint32_t stream, uint32_t segment, uint32_t epoch);
  void settle(std::deque<uint32_t> &pending, uint32_t epoch);

  const Program &program;
  RunTask runTask;
  Overlapped overlapped;
  FirstFailure failure;
  int64_t waitedNs = 0; ///< the calling thread's
  uint32_t computeStream = 0;
  /// commands[segment][stream]: command indices in issue order.
  std::vector<std::vector<std::vector<uint32_t>>> commands;
  StreamEvents events;
  StreamGate gate;
  std::unique_ptr<HostTeam> hostTeam; ///< of the host stream; null without one
  std::vector<std::thread> threads;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CPU_STREAMWORKERS_H
