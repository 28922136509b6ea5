//===- DeviceRunner.h - Runs a program's segments on an accelerator --------------===//
//
// The accelerator's half of the executor. The first run of anything waits after each command, so that a
// kernel that fails is known by name, and libraries make their first-time preparations where nothing is
// recorded. Later runs are one recorded graph for the whole step, where the device allows it; marks in it say
// how far it came if it fails.
//
// Inputs go through staging memory that the host fills: a place for each micro-batch, because a whole step is
// started at once.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_DEVICERUNNER_H
#define DS_LIB_RUNTIME_ENGINE_DEVICERUNNER_H

#include "Cpu/Poison.h"
#include "Program/Execution.h"

#include "ds/Runtime/Engine/Device.h"
#include "ds/Runtime/Engine/Executor.h"

#include <map>

namespace ds::rt {

class HostCommands;

/// What an executor is on the CPU, for a device. Its fields live as long as the program is loaded.
/// Size: recording, launching and measuring a step are still one class, as the host has another that
/// plays it.
class DeviceRunner {
public:
  /// Makes `program` ready to run on `device`; both outlive the runner. `groups` are those of all stages
  /// (groupsOf). With `poison` nothing is recorded, and every run waits after each command. `storage` is the
  /// program's, or null, and outlives the runner.
  static Result<std::unique_ptr<DeviceRunner>> load(Device &device, const Program &program, uint32_t rank,
                                                    std::vector<GroupUse> groups, bool poison,
                                                    Storage *storage);

  ~DeviceRunner();

  std::byte *base(Space space) const;

  /// Where the host writes the inputs of a micro-batch, in the program's order.
  std::vector<void *> inputs(uint32_t microBatch) const;

  /// Executes one segment with the inputs of `microBatch`, or a whole training step.
  Status run(uint32_t segment, uint32_t microBatch);
  /// Whether the last run was one recorded graph, and why there are none although the user has not forbidden
  /// them; empty while nothing was refused.
  bool ranAsGraph() const { return asGraph; }
  const std::string &graphRefusal() const { return refusal; }
  Status runStep(const std::function<Status(uint32_t microBatch)> &fill);
  using After = std::function<Status(uint32_t command, uint32_t microBatch)>;
  /// What Executor::retrace does.
  Status retrace(const std::function<Status(uint32_t microBatch)> &fill, const After &after);

  /// Whether the host cannot read this memory itself.
  bool isRemote(const std::byte *address) const;
  /// Copies at once.
  Status transfer(std::byte *to, const std::byte *from, uint64_t bytes);

  /// From now on measures every command; what was measured goes to `timings`.
  void measure(bool on) { measuring = on; }
  std::vector<Timing> timings;

private:
  using Parts = std::vector<Execution>; ///< what is run as one
  enum class Way { Checked, Free, Measured, Observed };

  DeviceRunner(Device &device, const Program &program, uint32_t rank);
  Status prepare(std::vector<GroupUse> groups, bool poisons);
  Status bindAll();
  Status synchronize();
  Status allocate();
  Status runParts(uint64_t key, const Parts &parts);
  Status runDirectly(const Parts &parts, Way way);
  Status runGraph(uint64_t key, const Parts &parts);
  Result<bool> record(uint64_t key, const Parts &parts);
  Status refuseGraph(const std::string &why);
  Status issueParts(const Parts &parts, Way way);
  Status issueSegment(const Execution &part, Way way);
  Status issuePoisoned(const Execution &part);
  Status setBytes(const Lifetime &lifetime, uint8_t byte);
  Status issueCommand(uint32_t index, uint32_t microBatch, Way way);
  Status issueOnly(uint32_t index, uint32_t microBatch);
  Status stageInputs(uint32_t microBatch, Way way);
  Status runObserved(const Parts &parts);
  Status takeTimings(const Parts &parts);
  Error explain(const Error &error) const;
  Error explainAt(const Error &error, uint32_t command) const;
  std::byte *staged(size_t input, uint32_t microBatch) const;

  Device &device;
  const Program &program;
  const uint32_t rank;
  std::byte *deviceBase = nullptr, *hostBase = nullptr, *staging = nullptr;
  std::vector<uint64_t> stagedOffsets; ///< by input; bytes within a micro-batch's part, its size behind them
  Parts step;                          ///< the schedule
  bool checksAlways = false;           ///< DS_CUDA_CHECK
  bool mayRecord = true;               ///< the program, the device and the user allow it
  bool mustRecord = false;             ///< DS_CUDA_GRAPH=require
  bool asGraph = false;                ///< the last run
  After watch;                         ///< told of each command that has ended, while it is not empty
  std::string refusal;                 ///< why nothing is recorded; see graphRefusal
  bool measuring = false;
  bool observes = true;               ///< the device has told of commands when it was asked to
  std::map<uint64_t, GraphId> graphs; ///< by key of what they run, see keyOf
  std::map<uint64_t, bool> known;     ///< what has run once
  uint32_t numStamps = 0;             ///< of a measured run; of an observed one the commands issued
  std::unique_ptr<Poison> poison;     ///< null without
  std::unique_ptr<HostCommands> host; ///< what the device leaves to it
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_DEVICERUNNER_H
