//===- Nccl.cpp - Connects ranks by NCCL --------------------------------------------------===//
#include "Nccl.h"

#include "Cuda/Binding/Library.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

namespace ds::rt::cuda {
namespace {

constexpr const char *kHint = "install NCCL 2.23 or later, and put its directory into LD_LIBRARY_PATH";
constexpr std::chrono::microseconds kPause(100); // between looks at a call that has not ended
constexpr int kLooks = 50;                       // before the first pause: most calls end soon
constexpr std::chrono::seconds kMostAbort(30);   // that an abort may take
constexpr std::chrono::milliseconds kGrace(500); // for a call that was under way when the job failed

std::string spellNccl(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

Result<const Nccl *> openOnce() {
  static Nccl nccl;
  const Result<void *> library =
      openLibrary({"DS_NCCL",
                   {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2", "/usr/local/cuda/lib/libnccl.so.2"},
                   "several ranks on CUDA need NCCL 2.23 or later:",
                   kHint});
  if (!library)
    return library.error();
  std::string missing;
#define DS_NCCL_FIND(FUNCTION, MEMBER) find(*library, #FUNCTION, nccl.MEMBER, missing);
  DS_NCCL_FUNCTIONS(DS_NCCL_FIND)
#undef DS_NCCL_FIND
  int version = 0;
  if (nccl.getVersion)
    nccl.getVersion(&version);
  if (!missing.empty() || version < kNeededNccl)
    return Error{ExitCode::Device,
                 fmt::format("NCCL has version {}{}, but {} is needed", spellNccl(version),
                             missing.empty() ? "" : " and no " + missing, spellNccl(kNeededNccl)),
                 kHint};
  return &nccl;
}

} // namespace

Result<const Nccl *> Nccl::open() {
  static const Result<const Nccl *> nccl = openOnce();
  return nccl;
}

int colorOf(const Mesh &mesh, AxisSet axes, uint32_t rank) {
  return static_cast<int>(mesh.firstOfGroup(rank, axes));
}

Error NcclRanks::failure(ncclResult_t result, const char *what) const {
  const char *detail = api.getLastError(nullptr);
  const bool peer = result == ncclRemoteError;
  return Error{peer ? ExitCode::Peer : ExitCode::Device,
               fmt::format("NCCL, {}: {}{}{}", what, api.getErrorString(result),
                           detail && *detail ? ": " : "", detail ? detail : ""),
               peer ? "see the messages of the other ranks" : "set NCCL_DEBUG=INFO to see what NCCL finds"};
}

/// Rank 0's id on every rank; nobody waits for a rank 0 that has none.
Result<ncclUniqueId> NcclRanks::shareId() {
  ncclUniqueId id{};
  std::string mine;
  ncclResult_t made = ncclSuccess;
  if (group.rank() == 0 && (made = api.getUniqueId(&id)) == ncclSuccess)
    mine.assign(id.internal, sizeof id.internal);
  Result<std::vector<std::string>> all = group.exchange(mine, "NCCL's unique id");
  if (made != ncclSuccess)
    return failure(made, "making the unique id");
  if (!all)
    return all.error();
  if (all->front().size() != sizeof id.internal)
    return Error{ExitCode::Peer, "rank 0 could not start NCCL", "see the message of rank 0"};
  std::memcpy(id.internal, all->front().data(), sizeof id.internal);
  return id;
}

Result<std::unique_ptr<NcclRanks>> NcclRanks::connect(RankGroup &group, std::chrono::milliseconds timeout,
                                                      std::function<void()> dropGraphs) {
  Result<const Nccl *> nccl = Nccl::open();
  if (!nccl)
    return nccl.error();
  std::unique_ptr<NcclRanks> ranks(new NcclRanks(**nccl, group, timeout, std::move(dropGraphs)));
  Result<ncclUniqueId> id = ranks->shareId();
  if (!id)
    return id.error();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t result = ranks->api.commInitRankConfig(
      &ranks->world->raw, static_cast<int>(group.world()), *id, static_cast<int>(group.rank()), &config);
  if (Status status = ranks->make(*ranks->world, nullptr, result, "connecting the ranks"); !status)
    return status.error();
  return ranks;
}

NcclRanks::~NcclRanks() {
  end();
  if (!stuck)
    return;
  // NCCL may still write handles that were being made.
  (void)world.release();
  for (auto &[place, handle] : split)
    (void)handle.release();
}

//===----------------------------------------------------------------------===//
// Calls that end later
//===----------------------------------------------------------------------===//

ncclResult_t NcclRanks::stateOf(ncclComm_t communicator) const {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = api.commGetAsyncError(communicator, &state);
  return asked == ncclSuccess ? state : asked;
}

/// NCCL's thread writes the handle; without one it is still in progress.
ncclResult_t NcclRanks::stateOf(Handle &handle) const {
  const ncclComm_t communicator = __atomic_load_n(&handle.raw, __ATOMIC_ACQUIRE);
  return communicator ? stateOf(communicator) : ncclInProgress;
}

/// When the job has failed the call still gets its grace: it may be putting work on a stream that records a
/// graph, and the recording is not to be ended under it.
Status NcclRanks::wait(const std::function<ncclResult_t()> &state, ncclResult_t result, const char *what) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::optional<std::chrono::steady_clock::time_point> last;
  if (result == ncclSuccess) // of the call, which may only have begun
    result = ncclInProgress;
  for (int look = 0; result == ncclInProgress && (result = state()) == ncclInProgress; ++look) {
    if (look < kLooks) {
      std::this_thread::yield();
      continue;
    }
    if (!last && !group.failure().empty())
      last = std::chrono::steady_clock::now() + kGrace;
    if (last && std::chrono::steady_clock::now() >= *last)
      break;
    if (std::chrono::steady_clock::now() >= deadline) {
      broken = true;
      return Error{
          ExitCode::Peer,
          fmt::format("NCCL, {}: no end after {} s", what, static_cast<double>(timeout.count()) / 1e3),
          "set NCCL_DEBUG=INFO to see whom NCCL waits for; --timeout sets the limit"};
    }
    std::this_thread::sleep_for(kPause);
  }
  if (result == ncclSuccess && !last)
    return {};
  broken = true;
  if (!last)
    return failure(result, what);
  return Error{ExitCode::Peer, fmt::format("{}; noticed in NCCL, {}", group.failure(), what), ""};
}

Status NcclRanks::settle(ncclComm_t communicator, ncclResult_t result, const char *what) {
  return wait([&] { return stateOf(communicator); }, result, what);
}

/// Waits for a new communicator: first for the one that it is split from, if any, which may not be used
/// before, and until when there may be no handle.
Status NcclRanks::make(Handle &made, ncclComm_t parent, ncclResult_t result, const char *what) {
  if (parent)
    if (Status status = settle(parent, result, what); !status)
      return status;
  Status status = wait([&] { return stateOf(made); }, result, what);
  made.settled = bool(status);
  return status;
}

Result<ncclComm_t> NcclRanks::communicator(GroupUse use, const Mesh &mesh) {
  std::unique_ptr<Handle> &handle = split[use];
  if (handle && handle->settled)
    return handle->raw;
  if (handle || broken)
    return Error{ExitCode::Device, "NCCL, splitting the ranks: an earlier call has failed", ""};
  handle = std::make_unique<Handle>();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t result = api.commSplit(world->raw, colorOf(mesh, use.axes, group.rank()),
                                            static_cast<int>(group.rank()), &handle->raw, &config);
  if (Status status = make(*handle, world->raw, result, "splitting the ranks"); !status)
    return status.error();
  for (const Registered &each : memory) {
    void *registration = nullptr; // it ends with the communicator
    const ncclResult_t registered = api.commRegister(handle->raw, each.base, each.bytes, &registration);
    if (Status status = settle(handle->raw, ncclSuccess, "registering memory"); !status)
      return status.error();
    if (registered == ncclInvalidArgument) // other refusals cost time alone
      return failure(registered, "registering memory");
  }
  return handle->raw;
}

void NcclRanks::registerMemory(void *base, uint64_t bytes) { memory.push_back({base, bytes}); }

std::vector<ncclComm_t> NcclRanks::settled() const {
  std::vector<ncclComm_t> all;
  for (const auto &[place, handle] : split)
    if (handle && handle->settled)
      all.push_back(handle->raw);
  if (world->settled)
    all.push_back(world->raw);
  return all;
}

Status NcclRanks::health() {
  if (const std::string reason = group.failure(); !reason.empty())
    return Error{ExitCode::Peer, reason, ""};
  if (broken || ended)
    return Error{ExitCode::Device, "NCCL has failed before", ""};
  for (ncclComm_t communicator : settled())
    if (const ncclResult_t state = stateOf(communicator); state != ncclSuccess && state != ncclInProgress) {
      broken = true;
      return failure(state, "collectives");
    }
  return {};
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Together with all ranks; false where it fails, which is told unless the whole job has failed.
bool NcclRanks::leave() {
  if (dropGraphs)
    dropGraphs();
  std::vector<Handle *> all;
  for (const auto &[place, handle] : split)
    all.push_back(handle.get());
  all.push_back(world.get());
  for (Handle *handle : all) {
    if (!handle->settled)
      continue;
    Status status = settle(handle->raw, api.commFinalize(handle->raw), "leaving");
    if (!status && group.failure().empty())
      fmt::print(stderr, "ds-run: {}\n", status.error().message);
    if (!status)
      return false;
    api.commDestroy(std::exchange(handle->raw, nullptr)); // does no more than free memory
    handle->settled = false;
  }
  return true;
}

void NcclRanks::end() {
  if (ended)
    return;
  if (broken || !group.failure().empty() || !leave())
    abort("");
  ended = true;
}

void NcclRanks::abort(const std::string &reason) {
  if (std::exchange(ended, true))
    return;
  if (!reason.empty())
    group.abort(reason);
  if (dropGraphs)
    dropGraphs();
  stuck = !abortAll();
  if (stuck)
    fmt::print(
        stderr, "ds-run: NCCL, aborting: no end after {} s; the device's memory is left to the driver\n",
        std::chrono::duration<double>(std::min<std::chrono::milliseconds>(timeout, kMostAbort)).count());
}

/// An abort waits for the work on streams, and one stream may wait for another's: all communicators are
/// aborted at once, each on a thread of its own. A split in progress ends with its parent, and only then is
/// it known whether there is a child. False if one has not come back in time; its thread is left behind.
bool NcclRanks::abortAll() {
  struct Running {
    std::mutex mutex;
    std::condition_variable changed;
    size_t count = 0;
  };
  const auto running = std::make_shared<Running>();
  const auto start = [&running](std::function<void()> call) {
    ++running->count;
    std::thread([running, call = std::move(call)] {
      call();
      const std::lock_guard lock(running->mutex);
      --running->count;
      running->changed.notify_all();
    }).detach();
  };
  std::unique_lock lock(running->mutex);
  std::vector<Handle *> unsettled;
  for (const auto &[place, handle] : split)
    if (handle && !handle->settled)
      unsettled.push_back(handle.get());
    else if (handle)
      start([&api = api, raw = handle->raw] { api.commAbort(raw); });
  start([&api = api, raw = world->raw, unsettled] {
    if (raw)
      api.commAbort(raw);
    for (Handle *handle : unsettled)
      if (const ncclComm_t made = __atomic_load_n(&handle->raw, __ATOMIC_ACQUIRE))
        api.commAbort(made);
  });
  return running->changed.wait_for(lock, std::min<std::chrono::milliseconds>(timeout, kMostAbort),
                                   [&] { return running->count == 0; });
}

} // namespace ds::rt::cuda
