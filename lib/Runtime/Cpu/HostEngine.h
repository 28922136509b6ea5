//===- HostEngine.h - Runs a program on this processor ------------------------------===//
//
// Commands of the compute stream run on the thread that calls, because libgomp keeps one team per caller;
// every other stream has a worker, and so has every other lane of a step. A program with one stream takes no
// lock and waits for nothing, and so does one that is poisoned or looked at command by command: then all run
// in issue order on the calling thread, which is one in which ranks can meet.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CPU_HOSTENGINE_H
#define DS_LIB_RUNTIME_CPU_HOSTENGINE_H

#include "HostTasks.h"
#include "LaneWorkers.h"
#include "Player/Poison.h"
#include "Program/Execution.h"
#include "StreamWorkers.h"

#include "ds/Runtime/Cpu/Arena.h"
#include "ds/Runtime/Player/Engine.h"

namespace ds::rt {

struct HostEngineOptions {
  uint32_t rank = 0;
  Isa isa;                            ///< of the hand-written kernels
  bool poison = false;                ///< fill what is not alive
  const CommunicatorOf &communicator; ///< asked while loading
  /// Told of the first failure of a segment while other streams may still wait; from any thread.
  std::function<void(const Error &)> failed = {};
  Storage *storage = nullptr; ///< the program's, or null; outlives the engine
};

class HostEngine final : public Engine {
public:
  /// Makes `program`, which has one stage and outlives the engine, ready to run: the processor first, then
  /// memory, then libraries. On the thread that will run it.
  static Result<std::unique_ptr<Engine>> load(const Program &program, const HostEngineOptions &options);

  std::byte *base(Space space) const override;
  std::vector<void *> inputs(uint32_t microBatch) const override;
  bool isRemote(const std::byte *) const override { return false; }
  Status transfer(std::byte *to, const std::byte *from, uint64_t bytes) override;
  Status run(uint32_t segment, uint32_t microBatch) override;
  Status runStep(const Fill &fill, bool late) override;
  Status retrace(const Fill &fill, const After &after) override;
  void measure(bool on) override { tasks.measure(on); }
  std::vector<Timing> takeTimings() override { return tasks.takeTimings(); }
  int64_t takeExposedNs() override;

private:
  HostEngine(const Program &program, const HostEngineOptions &options);
  Status prepare(const HostEngineOptions &options);
  Status bind(const HostEngineOptions &options, uint32_t command);
  Status startWorkers(const HostEngineOptions &options);
  Status startPoison();
  Status startLanes(const HostEngineOptions &options);
  Status runAlone(const Execution &execution);
  Status play(std::span<const Execution> parts, const Fill &fill);
  std::byte *address(uint32_t buffer, uint32_t microBatch) const;

  const Program &program;
  const uint32_t rank;
  Storage *storage;
  Arena device, host;
  KernelImage image;
  HostTasks tasks;
  std::unique_ptr<StreamWorkers> workers; ///< null when there is one stream, or poison
  std::unique_ptr<Poison> poison;         ///< null without
  const std::vector<Execution> step;      ///< the schedule
  const std::vector<Execution> lateStep;  ///< with late updates; empty where a step leaves none
  std::unique_ptr<LaneWorkers> lanes;     ///< of the step; null where it has one, or poison
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CPU_HOSTENGINE_H
