//===- HostTasks.h - The commands of a program as tasks of this processor ----------===//
//
// Tasks are bound once, for each place that their operands have over micro-batches. When they ran is noted
// here, on whatever thread that was.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CPU_HOSTTASKS_H
#define DS_LIB_RUNTIME_CPU_HOSTTASKS_H

#include "Task.h"

#include "ds/Runtime/Player/Timing.h"

#include <mutex>
#include <vector>

namespace ds::rt {

class HostTasks {
public:
  /// `program` outlives the tasks.
  explicit HostTasks(const Program &program);

  /// Adds the task of a command for the next place of its operands, the first for micro-batch 0; null for an
  /// event.
  void add(uint32_t command, std::unique_ptr<Task> task) { tasks[command].push_back(std::move(task)); }

  /// What runs from now on is for `micro`. Before the streams start.
  void setMicroBatch(uint32_t micro) { microBatch = micro; }

  /// Runs a command on the thread of its stream.
  Status run(uint32_t command) { return run(command, microBatch); }
  /// The same beside what runs for the current micro-batch, for another one.
  Status run(uint32_t command, uint32_t micro);
  /// The same on the thread that the run belongs to, where nothing hides the time of a collective.
  Status runHere(uint32_t command);
  /// `run` in three parts, see StreamWorkers::Overlapped.
  Status begin(uint32_t command);
  bool advance(uint32_t command) { return taskOf(command)->advance(); }
  Status finish(uint32_t command);

  /// What Engine has of these names; exposed are the collectives of runHere.
  void measure(bool on) { measuring = on; }
  std::vector<Timing> takeTimings() { return std::exchange(timings, {}); }
  int64_t takeExposedNs() { return std::exchange(exposedNs, 0); }

private:
  Task *taskOf(uint32_t command) const { return taskOf(command, microBatch); }
  Task *taskOf(uint32_t command, uint32_t micro) const;
  void note(uint32_t command, int64_t begin);

  const Program &program;
  /// By command: one for each place of its operands, which is that of the micro-batch; null for events.
  std::vector<std::vector<std::unique_ptr<Task>>> tasks;
  uint32_t microBatch = 0;    ///< of the current execution
  std::vector<int64_t> began; ///< by command, of those that overlap; each written on its stream
  int64_t exposedNs = 0;      ///< in collectives that ran on the calling thread
  bool measuring = false;
  std::mutex mutex; ///< guards `timings` while streams run: they finish commands at the same time
  std::vector<Timing> timings;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CPU_HOSTTASKS_H
