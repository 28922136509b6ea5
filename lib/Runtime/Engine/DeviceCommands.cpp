//===- DeviceCommands.cpp - The commands of a program on an accelerator ------------===//
#include "DeviceCommands.h"

#include "Program/Verify.h"

#include <fmt/format.h>

namespace ds::rt {

Status DeviceCommands::bind(const Device::Address &address, std::byte *hostArena) {
  if (Status status = host->useHost(hostArena); !status)
    return status;
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    if (traitsOf(program.commands[i].kind).isEvent())
      continue;
    if (Status status = areHosts(i) ? host->bind(i, address) : device.bind(i, address); !status)
      return explainAt(status.error(), i);
  }
  return {};
}

Status DeviceCommands::issue(uint32_t index, uint32_t microBatch) {
  const Command &command = program.commands[index];
  if (command.kind == CommandKind::RecordEvent)
    return device.streams().record(command.callee, command.stream);
  if (command.kind == CommandKind::WaitEvent)
    return device.streams().wait(command.callee, command.stream);
  if (areHosts(index))
    return host->issue(device, index, microBatch);
  device.telemetry().beginRange(program.strings[command.location].c_str());
  Status status = device.issue(index, microBatch);
  device.telemetry().endRange();
  return status;
}

Status DeviceCommands::synchronize() {
  Status status = device.synchronize();
  Status done = host->takeFailure();
  return done ? status : done; // what the device says then comes of it
}

Status DeviceCommands::finish() {
  Status status = synchronize();
  return status ? status : explain(status.error());
}

Error DeviceCommands::explainAt(const Error &error, uint32_t command) const {
  return Error{error.code, fmt::format("{}: {}", describeCommand(program, command), error.message),
               error.hint};
}

Error DeviceCommands::explain(const Error &error) const {
  std::string where;
  for (uint32_t stream = 0; stream < program.streams.size(); ++stream)
    if (const uint32_t mark = device.telemetry().reached(stream), command = mark & ~DeviceTelemetry::kBegun;
        command < program.commands.size())
      where += fmt::format("{}{}{}", where.empty() ? "" : " and ",
                           mark & DeviceTelemetry::kBegun ? "in "
                           : where.empty()                ? "after "
                                                          : "",
                           describeCommand(program, command));
  return Error{error.code, where.empty() ? error.message : fmt::format("{}: {}", where, error.message),
               error.hint.empty() ? "set DS_CUDA_CHECK=1 to wait after each command: the message then "
                                    "names the one that fails"
                                  : error.hint};
}

} // namespace ds::rt
