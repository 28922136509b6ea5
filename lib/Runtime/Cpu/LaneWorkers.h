//===- LaneWorkers.h - One thread per lane that does not compute -----------------===//
//
// A step of several lanes is a list of executions for each. The computing lane's are the calling thread's and
// its streams'; every other lane is a single stream, and has a thread that outlives segments. Lanes wait for
// each other by counters: how many executions of a lane are over. After a failure the rest of the step is
// skipped on every lane, but counted all the same: nobody waits for ever.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CPU_LANEWORKERS_H
#define DS_LIB_RUNTIME_CPU_LANEWORKERS_H

#include "Program/Execution.h"
#include "StreamWorkers.h"

namespace ds::rt {

class LaneWorkers {
public:
  using Run = std::function<Status(const Execution &)>;
  using Failed = std::function<void(const Error &)>;

  /// Of `step`, which outlives the workers. `run` is called with the executions of all lanes but the
  /// computing one, from the thread of their lane; `failed`, which may be empty, by the lane that fails
  /// first.
  LaneWorkers(std::span<const Execution> step, Run run, Failed failed);
  ~LaneWorkers();

  /// Starts a thread for each lane of the step but the computing one. Once, before `play`. Device where the
  /// system allows no thread.
  Status start();

  /// Plays the step: `compute` is called with the executions of the computing lane, from the calling thread.
  /// Returns the first failure, when all lanes are done.
  Status play(const Run &compute);

  /// Nanoseconds since the last call for which the computing lane waited for the others.
  int64_t takeWaitedNs() { return std::exchange(waitedNs, 0); }

private:
  void workerLoop(Lane lane);
  void runLane(Lane lane, const Run &body);
  void await(const Execution &execution);

  const std::span<const Execution> step;
  const Run run;
  FirstFailure failure;
  int64_t waitedNs = 0; ///< the calling thread's
  std::vector<const Execution *> lanes[kNumLanes];
  std::array<std::atomic<uint32_t>, kNumLanes> over{}; ///< executions of this step
  StreamGate gate;
  std::vector<std::thread> threads;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CPU_LANEWORKERS_H
