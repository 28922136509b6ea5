//===- HostCommands.h - What the host does beside an accelerator ----------------------===//
//
// A disk is the host's, and so are the cores that update what lives in its memory: storage commands and those
// of the host stream are calls of the host that their stream waits for. They are the tasks that they are in a
// program for the CPU. The device cannot tell what became of them, so the first failure is kept here, and
// what comes behind it does nothing.
//
// The driver calls from threads of its own, and may do so one call after another: what is to run beside
// kernels does, what is to run beside another call may have to wait for it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_HOSTCOMMANDS_H
#define DS_LIB_RUNTIME_ENGINE_HOSTCOMMANDS_H

#include "Cpu/HostTeam.h"
#include "Cpu/Task.h"

#include "ds/Runtime/Engine/Device.h"
#include "ds/Runtime/Player/Timing.h"
#include "ds/Runtime/Storage/Storage.h"

#include <map>
#include <mutex>
#include <optional>

namespace ds::rt {

class HostCommands {
public:
  /// Of `program` on `rank`; all that is named here outlives the commands. `storage` is the program's, or
  /// null. Fails as KernelImage::open does, and with ExitCode::Device where threads cannot be started.
  static Result<std::unique_ptr<HostCommands>> make(const Program &program, uint32_t rank, Storage *storage);

  Storage *storage() const { return disk; }
  /// Whether the host does program.commands[index].
  static bool has(const Program &program, uint32_t index);

  /// Takes the host's arena, through which storage goes. Fails with ExitCode::Device where it begins at no
  /// unit.
  Status useHost(std::byte *host);
  /// Makes a command ready, with its operands where they are for each micro-batch.
  Status bind(uint32_t command, const Device::Address &address);
  /// Puts it on its stream.
  Status issue(Device &device, uint32_t command, uint32_t microBatch);
  /// The first failure of what has run since the last call. Once the device's work is done.
  Status takeFailure();

  /// From now on notes when each command runs, for takeTimings: once the device's work is done.
  void measure(bool on) { measuring = on; }
  std::vector<Timing> takeTimings();

private:
  HostCommands(const Program &program, uint32_t rank, Storage *storage)
      : program(program), rank(rank), disk(storage) {}
  /// One for each place of the operands; its address is what the device is given.
  struct Call {
    HostCommands *all;
    uint32_t command;
    std::unique_ptr<Task> task;
  };
  static void run(void *argument);
  bool hasFailed();

  const Program &program;
  const uint32_t rank;
  Storage *disk;
  KernelImage image;
  std::unique_ptr<HostTeam> team;              ///< of the host stream; null without one
  std::map<uint32_t, std::vector<Call>> calls; ///< by command; not changed once the first is issued
  std::atomic<bool> measuring{false};
  std::mutex mutex; ///< guards the next two
  std::optional<Error> failure;
  std::vector<Timing> timings;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_HOSTCOMMANDS_H
