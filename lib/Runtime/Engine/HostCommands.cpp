//===- HostCommands.cpp - What the host does beside an accelerator ---------------------===//
#include "HostCommands.h"

#include "Cpu/Staging.h"
#include "Process/Clock.h"
#include "Program/Execution.h"
#include "Program/Verify.h"
#include "ds/Kernels/Parallel.h"
#include "ds/Support/Processors.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {

/// The host stream's threads: what the program asks for, as far as there are processors beside the one that
/// the launching thread needs.
static uint32_t hostThreads(const Program &program) {
  const uint32_t left = processorsLeft(processorShare());
  return std::clamp<uint32_t>(program.hostThreads, 1, std::max<uint32_t>(left, 2) - 1);
}

Result<std::unique_ptr<HostCommands>> HostCommands::make(const Program &program, uint32_t rank,
                                                         Storage *storage) {
  std::unique_ptr<HostCommands> host(new HostCommands(program, rank, storage));
  if (!std::count(program.streams.begin(), program.streams.end(), StreamKind::Host))
    return host;
  Result<KernelImage> opened = KernelImage::open(program);
  if (!opened)
    return opened.error();
  host->image = std::move(*opened);
  Result<std::unique_ptr<HostTeam>> started = HostTeam::start(hostThreads(program), /*spares=*/true);
  if (!started)
    return started.error();
  host->team = std::move(*started);
  return host;
}

bool HostCommands::has(const Program &program, uint32_t index) {
  const Command &command = program.commands[index];
  const CommandTraits &traits = traitsOf(command.kind);
  return traits.resource == Resource::Disk ||
         (traits.computes() && program.streams[command.stream] == StreamKind::Host);
}

Status HostCommands::useHost(std::byte *host) {
  if (!disk)
    return {};
  if (reinterpret_cast<uintptr_t>(host) % kStorageUnit != 0)
    return Error{ExitCode::Device, "the driver gives host memory that does not begin at a page", ""};
  useStaging(program, rank, host, *disk);
  return {};
}

Status HostCommands::bind(uint32_t command, const Device::Address &address) {
  static const CommunicatorOf kAlone; // no collective is the host's
  for (uint32_t m = 0; m < numBindings(program, command); ++m) {
    const Binding binding{program,   image,  [&](uint32_t buffer) -> void * { return address(buffer, m); },
                          bestIsa(), kAlone, disk};
    Result<std::unique_ptr<Task>> task = bindCommand(binding, command);
    if (!task)
      return task.error();
    calls[command].push_back({this, command, std::move(*task)});
  }
  return {};
}

Status HostCommands::issue(Device &device, uint32_t command, uint32_t microBatch) {
  std::vector<Call> &places = calls.at(command);
  return device.streams().callHost(program.commands[command].stream, run,
                                   &places[microBatch % places.size()]);
}

bool HostCommands::hasFailed() {
  const std::lock_guard lock(mutex);
  return failure.has_value();
}

/// On a thread of the driver's.
void HostCommands::run(void *argument) {
  const Call &call = *static_cast<Call *>(argument);
  HostCommands &all = *call.all;
  if (all.hasFailed())
    return;
  const Command &command = all.program.commands[call.command];
  const int64_t begin = nowNs();
  setParallelTeam(all.team.get());
  const Status status = call.task->run();
  setParallelTeam(nullptr);
  const std::lock_guard lock(all.mutex);
  if (all.measuring)
    all.timings.push_back({call.command, command.stream, begin, nowNs()});
  if (!status && !all.failure)
    all.failure =
        Error{status.error().code,
              fmt::format("{}: {}", describeCommand(all.program, call.command), status.error().message),
              status.error().hint};
}

Status HostCommands::takeFailure() {
  const std::lock_guard lock(mutex);
  if (!failure)
    return {};
  return std::exchange(failure, std::nullopt).value();
}

std::vector<Timing> HostCommands::takeTimings() {
  const std::lock_guard lock(mutex);
  return std::exchange(timings, {});
}

} // namespace ds::rt
