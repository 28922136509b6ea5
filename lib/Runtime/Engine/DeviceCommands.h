//===- DeviceCommands.h - The commands of a program on an accelerator --------------===//
//
// Each command goes to the device or, beside it, to the host; events are the streams' own. Failures are named
// by the command where it is known, else by the marks that the device's streams have reached.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_DEVICECOMMANDS_H
#define DS_LIB_RUNTIME_ENGINE_DEVICECOMMANDS_H

#include "HostCommands.h"

#include "ds/Runtime/Engine/Device.h"

namespace ds::rt {

class DeviceCommands {
public:
  static constexpr uint32_t kNoCommand = UINT32_MAX;

  /// Of `program`, which outlives them, on `device`; `host` has what the host does.
  DeviceCommands(Device &device, const Program &program, std::unique_ptr<HostCommands> host)
      : device(device), program(program), host(std::move(host)) {}

  /// Binds all commands to their operands; `hostArena` is where the host's begins. The device's choose their
  /// algorithms next (Device::choose).
  Status bind(const Device::Address &address, std::byte *hostArena);

  /// Puts a command on its stream, with the addresses of `microBatch`.
  Status issue(uint32_t index, uint32_t microBatch);
  /// Returns when all work is done, the host's included, or with the first error of any of it.
  Status synchronize();
  /// The same of work that was started as one.
  Status finish();

  /// Whether the host does program.commands[index], and when it did.
  bool areHosts(uint32_t index) const { return HostCommands::has(program, index); }
  HostCommands &hosts() { return *host; }

  /// `error` of program.commands[command].
  Error explainAt(const Error &error, uint32_t command) const;
  /// An error of work that was started as one: the last mark of each stream says how far it came.
  Error explain(const Error &error) const;

private:
  Device &device;
  const Program &program;
  std::unique_ptr<HostCommands> host; ///< what the device leaves to it
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_DEVICECOMMANDS_H
