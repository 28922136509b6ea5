//===- HostMoves.cpp - Storage commands beside an accelerator ------------------------===//
#include "HostMoves.h"

#include "OpenStorage.h"
#include "Program/Execution.h"
#include "Program/Verify.h"

#include <fmt/format.h>

namespace ds::rt {

Status HostMoves::useHost(const Program &program, uint32_t rank, std::byte *host) {
  if (reinterpret_cast<uintptr_t>(host) % kStorageUnit != 0)
    return Error{ExitCode::Device, "the driver gives host memory that does not begin at a page", ""};
  useStaging(program, rank, host, storage);
  return {};
}

void HostMoves::bind(const Program &program, uint32_t command, const Device::Address &address) {
  for (uint32_t m = 0; m < numBindings(program, program.commands[command]); ++m)
    moves[command].push_back({this,
                              bindMove(program, program.commands[command], storage,
                                       [&](uint32_t buffer) { return address(buffer, m); }),
                              describeCommand(program, command)});
}

Status HostMoves::issue(Device &device, const Program &program, uint32_t command, uint32_t microBatch) {
  std::vector<Move> &places = moves.at(command);
  return device.callHost(program.commands[command].stream, run, &places[microBatch % places.size()]);
}

void HostMoves::run(void *argument) {
  const Move &move = *static_cast<Move *>(argument);
  {
    const std::lock_guard lock(move.all->mutex);
    if (move.all->failure)
      return;
  }
  const Status status = runMove(move.move);
  if (status)
    return;
  const std::lock_guard lock(move.all->mutex);
  move.all->failure = Error{status.error().code, fmt::format("{}: {}", move.what, status.error().message),
                            status.error().hint};
}

Status HostMoves::takeFailure() {
  const std::lock_guard lock(mutex);
  if (!failure)
    return {};
  return std::exchange(failure, std::nullopt).value();
}

} // namespace ds::rt
