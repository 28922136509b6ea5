//===- DeviceEngine.h - Runs a program on an accelerator ----------------------------===//
//
// The first run of anything waits after each command, so that a kernel that fails is known by name, and
// libraries make their first-time preparations where nothing is recorded. Later runs are one recorded graph
// for the whole step, where the device allows it; marks in it say how far it came if it fails.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_DEVICEENGINE_H
#define DS_LIB_RUNTIME_ENGINE_DEVICEENGINE_H

#include "DeviceArenas.h"
#include "DeviceCommands.h"
#include "DeviceMeter.h"
#include "Player/Poison.h"
#include "Process/PhaseClock.h"
#include "Program/Execution.h"
#include "StepGraphs.h"

#include "ds/Runtime/Player/Engine.h"

#include <set>

namespace ds::rt {

struct DeviceEngineOptions {
  uint32_t rank = 0;
  std::vector<GroupUse> groups; ///< those of all stages (groupsOf)
  bool poison = false;          ///< then nothing is recorded, and every run waits after each command
  Storage *storage = nullptr;   ///< the program's, or null; outlives the engine
  PhaseClock *clock = nullptr;  ///< told of kernels, memory, commands and choices; may be null
};

class DeviceEngine final : public Engine {
public:
  /// Makes `program`, which has one stage, ready to run on `device`; both outlive the engine.
  static Result<std::unique_ptr<Engine>> load(Device &device, const Program &program,
                                              const DeviceEngineOptions &options);

  std::byte *base(Space space) const override { return arenas.base(space); }
  std::vector<void *> inputs(uint32_t microBatch) const override { return arenas.inputs(microBatch); }
  bool isRemote(const std::byte *address) const override { return arenas.isRemote(address); }
  Status transfer(std::byte *to, const std::byte *from, uint64_t bytes) override;
  Status run(uint32_t segment, uint32_t microBatch) override;
  Status runStep(const Fill &fill, bool late) override;
  Status retrace(const Fill &fill, const After &after) override;
  void measure(bool on) override { meter.measure(on); }
  std::vector<Timing> takeTimings() override { return meter.takeTimings(); }
  GraphRun graph() const override { return graphs.last(); }

private:
  using Parts = std::span<const Execution>; ///< what is run as one

  DeviceEngine(Device &device, const Program &program, const DeviceEngineOptions &options,
               std::unique_ptr<HostCommands> host);
  Status prepare(const DeviceEngineOptions &options);
  Status fillAll(const Fill &fill) const;
  Status play(uint64_t key, Parts parts);
  Status playChecked(Parts parts, const After &after);
  Status playMarked(Parts parts);
  Status playGraph(uint64_t key, Parts parts);

  Device &device;
  const Program &program;
  bool checksAlways; ///< DS_CUDA_CHECK, or poison
  DeviceArenas arenas;
  DeviceCommands commands;
  const StepLanes lanes; ///< of the schedule
  const DeviceParts all{device, program, arenas, commands, lanes};
  DeviceMeter meter{all};
  StepGraphs graphs;
  const std::vector<Execution> lateStep; ///< with late updates; empty where a step leaves none
  std::unique_ptr<Poison> poison;        ///< null without
  std::set<uint64_t> known;              ///< what has run once
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_DEVICEENGINE_H
