//===- Watch.cpp - Waits for a GPU that waits for other ranks ----------------------------------===//
//
// A collective of which one rank does not take part never ends. So a rank with peers does not simply wait: it
// looks again and again whether a peer or NCCL tells of a failure, and whether the marks still move. When
// they have stood still for a part of the time-out it says so, and for all of it, names the collective that
// it stands at, has all write their stacks, tells them, and ends its own collectives.
//
//===---------------------------------------------------------------------------===//
#include "CudaDevice.h"

#include <fmt/format.h>

#include <thread>

namespace ds::rt::cuda {

Result<NcclRanks *> CudaDevice::connectRanks() {
  if (ranks)
    return ranks.get();
  if (!options.ranks || options.ranks->world() != program->world)
    return Error{ExitCode::Internal, fmt::format("a program of {} ranks without them", program->world), ""};
  Result<std::unique_ptr<NcclRanks>> connected =
      NcclRanks::connect(*options.ranks, options.timeout, [this] { dropGraphs(); });
  if (!connected)
    return connected.error();
  ranks = std::move(*connected);
  for (size_t i = 0; i < deviceMemory.size(); ++i)
    ranks->registerMemory(reinterpret_cast<void *>(deviceMemory[i]), deviceBytes[i]);
  for (GroupUse use : groups)
    if (Result<ncclComm_t> made = ranks->communicator(use, program->mesh); !made)
      return made.error();
  return ranks.get();
}

/// The collective that everything waits for: of those that are the next of an unfinished stream, by its last
/// mark, the one that the program issues first.
std::string CudaDevice::waitedFor() const {
  size_t first = program->commands.size();
  for (uint32_t stream = 0; stream < streams.size(); ++stream) {
    const uint32_t last = reached(stream);
    if (driver.streamQuery(streams[stream]) != CUDA_ERROR_NOT_READY)
      continue;
    for (size_t i = last < program->commands.size() ? last + 1 : 0; i < first; ++i)
      if (program->commands[i].stream == stream && program->commands[i].kind == CommandKind::Collective)
        first = i;
  }
  if (first == program->commands.size())
    return "that has no name";
  return fmt::format("'{}'", program->collectives[program->commands[first].callee].name);
}

Status CudaDevice::watch() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kPause(50);
  std::vector<uint32_t> seen(streams.size());
  Clock::time_point moved = Clock::now();
  bool told = false;
  for (size_t i = 0; i < streams.size();) {
    const CUresult result = driver.streamQuery(streams[i]);
    if (result == CUDA_SUCCESS) {
      ++i;
      continue;
    }
    if (result != CUDA_ERROR_NOT_READY)
      return asError(driver, result, "the device failed");
    if (Status status = ranks->health(); !status) {
      ranks->abort(options.ranks->failure().empty() ? status.error().message : "");
      return status;
    }
    for (uint32_t stream = 0; stream < streams.size(); ++stream)
      if (std::exchange(seen[stream], reached(stream)) != reached(stream))
        moved = Clock::now();
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - moved);
    if (waited >= longWait(options.timeout) && !std::exchange(told, true))
      options.ranks->tellOfWait(fmt::format("collective {} on its GPU", waitedFor()), waited,
                                options.timeout);
    if (waited >= options.timeout) {
      options.ranks->showStacks();
      const std::string what = fmt::format("rank {} on host {} waits for collective {}: no end after {} s",
                                           options.ranks->rank(), options.ranks->host(options.ranks->rank()),
                                           waitedFor(), static_cast<double>(options.timeout.count()) / 1e3);
      ranks->abort(what);
      return Error{ExitCode::Peer, what, "look at the ranks that are not named; --timeout sets the limit"};
    }
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

} // namespace ds::rt::cuda
