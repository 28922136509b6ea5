//===- CudaRanks.cpp - The other ranks of a program on a GPU ----------------------------===//
#include "CudaRanks.h"

#include "ds/Runtime/Comm/Control/LongWait.h"
#include "ds/Runtime/Program/Messages.h"

#include <fmt/format.h>

#include <thread>

namespace ds::rt::cuda {

/// Makes the connections of a communicator on which messages travel, so that no step waits for one: NCCL
/// makes each when both of its ends first ask for it, and until then keeps the thread that asks. `scratch`
/// has two bytes for each rank of the group.
static Status connectPartners(NcclRanks &ranks, GroupUse use, const Program &program, uint32_t rank,
                              std::byte *scratch, CUstream stream) {
  const Result<ncclComm_t> communicator = ranks.communicator(use, program.mesh);
  if (!communicator)
    return communicator.error();
  const uint32_t own = program.mesh.position(rank, use.axes);
  std::vector<NcclMessage> messages;
  for (uint32_t peer = 0; peer < program.mesh.size(use.axes); ++peer)
    for (bool isSend : {true, false})
      if (peer != own)
        messages.push_back({isSend, scratch + 2 * peer + isSend, 1, ncclUint8, static_cast<int>(peer)});
  const ncclResult_t result =
      startExchange(ranks.api, messages, *communicator, reinterpret_cast<cudaStream_t>(stream));
  return ranks.settle(*communicator, result, "connecting stages");
}

void CudaRanks::use(const Program &loaded, std::vector<GroupUse> uses) {
  program = &loaded;
  groups = std::move(uses);
}

/// Messages run along the stages' axes alone. What the first ones carry means nothing.
Status CudaRanks::connectStages() {
  const AxisSet stages = program->stageAxes;
  const uint32_t numStages = program->mesh.size(stages);
  if (numStages == 1)
    return {};
  const Result<std::byte *> scratch =
      on.memory.allocate(Space::Device, 2 * uint64_t(numStages), "first messages", on.streams.compute());
  if (!scratch)
    return scratch.error();
  for (GroupUse use : groups)
    if (stages.hasAll(use.axes))
      if (Status status =
              connectPartners(*ranks, use, *program, options.ranks->rank(), *scratch, on.streams[use.stream]);
          !status)
        return status;
  return {};
}

Result<NcclRanks *> CudaRanks::connect() {
  if (ranks)
    return ranks.get();
  if (!options.ranks || options.ranks->world() != program->world)
    return Error{ExitCode::Internal, fmt::format("a program of {} ranks without them", program->world), ""};
  Result<std::unique_ptr<NcclRanks>> connected =
      NcclRanks::connect(*options.ranks, options.timeout, [this] { on.graphs.drop(); });
  if (!connected)
    return connected.error();
  ranks = std::move(*connected);
  for (const CudaMemory::Block &block : on.memory.onDevice())
    ranks->registerMemory(reinterpret_cast<void *>(block.base), block.bytes);
  for (GroupUse use : groups)
    if (Result<ncclComm_t> made = ranks->communicator(use, program->mesh); !made)
      return made.error();
  if (Status status = connectStages(); !status)
    return status.error();
  return ranks.get();
}

Status CudaRanks::connectAll() {
  if (groups.empty())
    return {};
  Result<NcclRanks *> connected = connect();
  return connected ? Status() : connected.error();
}

Status CudaRanks::synchronize() {
  if (ranks)
    if (Status status = watch(); !status)
      return status;
  return on.streams.synchronize();
}

void CudaRanks::leave() {
  if (!ranks || ranks->health()) // else a stream may wait for ever
    if (Status status = synchronize(); !status && ranks)
      ranks->abort("");
  on.graphs.drop();
}

bool CudaRanks::end() {
  if (!ranks)
    return true;
  ranks->end();
  if (ranks->isStuck())
    return false;
  ranks.reset();
  return true;
}

/// The collective that everything waits for: the one that an unfinished stream stands in, where its last mark
/// says so; else of those that are the next of an unfinished stream, by its last mark, the one that the
/// program issues first.
std::string CudaRanks::waitedFor() const {
  size_t first = program->commands.size();
  for (uint32_t stream = 0; stream < on.streams.size(); ++stream) {
    const uint32_t last = on.telemetry.reached(stream), begun = last & ~DeviceTelemetry::kBegun;
    if (on.context.driver.streamQuery(on.streams[stream]) != CUDA_ERROR_NOT_READY)
      continue;
    if (begun != last && begun < program->commands.size()) {
      first = begun;
      break;
    }
    for (size_t i = last < program->commands.size() ? last + 1 : 0; i < first; ++i)
      if (program->commands[i].stream == stream && program->commands[i].kind == CommandKind::Collective)
        first = i;
  }
  if (first == program->commands.size())
    return "that has no name";
  return fmt::format("'{}'", program->collectives[program->commands[first].callee].name);
}

Status CudaRanks::watch() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kPause(50);
  std::vector<uint32_t> seen(on.streams.size());
  Clock::time_point moved = Clock::now();
  bool told = false;
  for (size_t i = 0; i < on.streams.size();) {
    const CUresult result = on.context.driver.streamQuery(on.streams[i]);
    if (result == CUDA_SUCCESS) {
      ++i;
      continue;
    }
    if (result != CUDA_ERROR_NOT_READY)
      return asError(on.context.driver, result, "the device failed");
    if (Status status = ranks->health(); !status) {
      ranks->abort(options.ranks->failure().empty() ? status.error().message : "");
      return status;
    }
    for (uint32_t stream = 0; stream < on.streams.size(); ++stream)
      if (std::exchange(seen[stream], on.telemetry.reached(stream)) != on.telemetry.reached(stream))
        moved = Clock::now();
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - moved);
    if (waited >= longWait(options.timeout) && !std::exchange(told, true))
      options.ranks->tellOfWait(fmt::format("collective {} on its GPU", waitedFor()), waited,
                                options.timeout);
    if (waited >= options.timeout) {
      options.ranks->showStacks();
      const std::string what = fmt::format("{} waits for collective {}: no end after {} s",
                                           options.ranks->name(options.ranks->rank()), waitedFor(),
                                           static_cast<double>(options.timeout.count()) / 1e3);
      ranks->abort(what);
      return Error{ExitCode::Peer, what, "look at the ranks that are not named; --timeout sets the limit"};
    }
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

} // namespace ds::rt::cuda
