//===- NcclComm.cpp - Communicators of the fake NCCL -------------------------------------===//
//
// Memory of a communicator that is gone is never used again, so that a later use is seen. DS_FAKE_NCCL_DELAY:
// milliseconds that making, splitting and leaving take at least (20); DS_FAKE_PATIENCE: milliseconds (3000)
// after which what would hang for ever is called a mistake; DS_FAKE_NCCL_ABSENT=1: rank 1 never comes to a
// split; DS_FAKE_NCCL_STUCK=1: on rank 1 no abort ever ends.
//
//===---------------------------------------------------------------------------===//
#include "NcclComm.h"
#include "Fake.h"
#include "State.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <unistd.h>

using namespace ds::rt::fake;

namespace ds::rt::fake {
namespace {

using Clock = std::chrono::steady_clock;

std::string fileOf(const NcclShared &comm, uint64_t sequence, int rank) {
  return comm.name + "." + std::to_string(sequence) + "." +
         std::to_string(comm.ranks[static_cast<size_t>(rank)]);
}

std::string &lastError() {
  static std::string text;
  return text;
}

void breathe() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

/// Waits until the parts of all ranks are there; nothing if the communicator is aborted meanwhile.
std::optional<std::vector<std::string>> meet(const NcclShared &comm, uint64_t sequence, const void *data,
                                             size_t bytes) {
  give(comm, sequence, data, bytes);
  for (;; breathe()) {
    if (comm.aborted)
      return std::nullopt;
    if (auto parts = take(comm, sequence))
      return parts;
  }
}

/// Waits until no graph holds a collective of `comm` and none is on a stream, as NCCL does where it leaves
/// and where it aborts. What runs goes on meanwhile, as on a device.
void waitForWork(const NcclShared &comm, const char *call) {
  const auto patience = std::chrono::milliseconds(setting("DS_FAKE_PATIENCE", 3000));
  for (const auto begin = Clock::now(); comm.captured != 0 || comm.onStreams != 0; breathe()) {
    const CUresult running = poll();
    if (comm.captured == 0 && running != CUDA_SUCCESS && running != CUDA_ERROR_NOT_READY)
      return; // nothing runs any more
    if (comm.aborted && std::string(call) != "ncclCommAbort")
      return;
    if (Clock::now() - begin > patience)
      ncclMistake(std::string(call) + " waits for " + std::to_string(comm.captured) +
                  " collectives that graphs hold and " + std::to_string(comm.onStreams) + " on streams");
  }
}

} // namespace

void ncclMistake(const std::string &what) {
  std::fprintf(stderr, "fake NCCL: %s\n", what.c_str());
  std::fflush(stderr);
  std::abort();
}

void give(const NcclShared &comm, uint64_t sequence, const void *data, size_t bytes) {
  const std::string path = fileOf(comm, sequence, comm.rank);
  std::ofstream(path + "~", std::ios::binary)
      .write(static_cast<const char *>(data), static_cast<std::streamsize>(bytes));
  std::filesystem::rename(path + "~", path);
  std::error_code error;
  if (sequence > 2)
    std::filesystem::remove(fileOf(comm, sequence - 2, comm.rank), error);
}

std::optional<std::vector<std::string>> take(const NcclShared &comm, uint64_t sequence) {
  std::vector<std::string> parts;
  for (size_t rank = 0; rank < comm.ranks.size(); ++rank) {
    std::ifstream file(fileOf(comm, sequence, static_cast<int>(rank)), std::ios::binary);
    if (!file)
      return std::nullopt;
    parts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return parts;
}

void forget(const NcclShared &comm) {
  std::error_code error;
  for (uint64_t back = 0; back < 3 && comm.sequence > back + 2; ++back)
    std::filesystem::remove(fileOf(comm, comm.sequence - back - 2, comm.rank), error);
}

void takeTime(const NcclShared &comm) {
  const char *slow = std::getenv("DS_FAKE_NCCL_SLOW");
  const bool isSlow = slow && std::to_string(comm.jobRank()) == slow;
  std::this_thread::sleep_for(std::chrono::microseconds(isSlow ? 50000 : 200));
}

bool failsLater(const NcclShared &comm, const char *call) {
  static std::mutex mutex;
  static std::map<std::string, int> calls;
  const std::lock_guard lock(mutex);
  const int now = ++calls[call];
  const char *wish = std::getenv("DS_FAKE_NCCL_ERROR");
  std::istringstream words(wish ? wish : "");
  int rank = -1, number = 0;
  std::string which;
  return words >> rank >> which >> number && rank == comm.jobRank() && which == call && number == now;
}

} // namespace ds::rt::fake

ncclComm_t ncclComm::make() {
  static std::mutex mutex;
  static auto &all = *new std::vector<ncclComm_t>; // until the process has ended
  const std::lock_guard lock(mutex);
  return all.emplace_back(new ncclComm);
}

ncclResult_t ncclComm::ready(ncclComm_t comm, const char *call) {
  if (!comm)
    ncclMistake(std::string(call) + " without a communicator");
  if (comm->magic != kAlive)
    ncclMistake(std::string(call) + " on a communicator that is gone");
  const ncclResult_t result = comm->shared->result;
  if (result == ncclInProgress) {
    lastError() = std::string(call) + " on a communicator whose last call is in progress";
    return ncclInvalidArgument;
  }
  if (comm->job.joinable())
    comm->job.join();
  if (result != ncclSuccess)
    lastError() = std::string(call) + " on a communicator that has failed";
  return result;
}

ncclResult_t ncclComm::later(std::function<ncclResult_t()> work) {
  shared->result = ncclInProgress;
  job = std::thread([work = std::move(work), shared = shared] { shared->result = work(); });
  return ncclInProgress;
}

ncclResult_t ncclGetVersion(int *version) {
  *version = static_cast<int>(setting("DS_FAKE_NCCL", 22809));
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclSystemError   ? "a system error of the fake library"
         : result == ncclRemoteError ? "a remote error of the fake library"
                                     : "an error of the fake library";
}
const char *ncclGetLastError(ncclComm_t) { return lastError().c_str(); }
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  const char *folder = std::getenv("DS_CACHE_DIR"); // of the test, which takes it away
  std::filesystem::create_directories(folder ? folder : ".");
  std::snprintf(id->internal, sizeof id->internal, "%s/nccl-%d", folder ? folder : ".", ::getpid());
  return ncclSuccess;
}

static void takeAWhile() {
  std::this_thread::sleep_for(std::chrono::milliseconds(setting("DS_FAKE_NCCL_DELAY", 20)));
}

/// The handle is there at once, the communicator later.
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  call("ncclCommInitRankConfig blocking " + std::to_string(config->blocking));
  *comm = ncclComm::make();
  NcclShared &shared = *(*comm)->shared;
  shared.name = id.internal;
  shared.rank = rank;
  for (int i = 0; i < ranks; ++i)
    shared.ranks.push_back(i);
  return (*comm)->later([comm, made = *comm, shared = (*comm)->shared] {
    takeAWhile();
    if (*comm != made)
      ncclMistake("the place of a communicator is gone while it is being made");
    const bool fails = failsLater(*shared, "ncclCommInitRankConfig");
    if (!meet(*shared, ++shared->sequence, "", 1))
      return ncclInternalError;
    return fails ? ncclSystemError : ncclSuccess;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
  if (!comm)
    ncclMistake("ncclCommGetAsyncError without a communicator");
  if (comm->magic != ncclComm::kAlive)
    ncclMistake("ncclCommGetAsyncError on a communicator that is gone");
  *result = comm->shared->result;
  return ncclSuccess;
}

/// The parent is in progress, whatever the call returns; a thread writes the handle, and the child itself is
/// ready still later.
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int, ncclComm_t *place, ncclConfig_t *) {
  call("ncclCommSplit " + std::to_string(color));
  if (const ncclResult_t state = ncclComm::ready(parent, "ncclCommSplit"); state != ncclSuccess)
    return state;
  __atomic_store_n(place, nullptr, __ATOMIC_RELEASE);
  parent->later([=, shared = parent->shared]() -> ncclResult_t {
    takeAWhile();
    if (setting("DS_FAKE_NCCL_ABSENT", 1000) == static_cast<uint64_t>(shared->jobRank())) {
      while (!shared->aborted)
        breathe();
      return ncclInternalError;
    }
    const uint64_t sequence = ++shared->sequence;
    const bool fails = failsLater(*shared, "ncclCommSplit");
    const auto colors = meet(*shared, sequence, &color, sizeof color);
    if (!colors)
      return ncclInternalError;
    if (__atomic_load_n(place, __ATOMIC_ACQUIRE) != nullptr)
      ncclMistake("the place of a communicator is gone while it is being made by a split");
    const ncclComm_t made = ncclComm::make();
    NcclShared &child = *made->shared;
    child.name = shared->name + "s" + std::to_string(sequence) + "c" + std::to_string(color);
    for (size_t rank = 0; rank < colors->size(); ++rank) {
      int other = 0;
      std::memcpy(&other, (*colors)[rank].data(), sizeof other);
      if (other == color && static_cast<int>(rank) == shared->rank)
        child.rank = static_cast<int>(child.ranks.size());
      if (other == color)
        child.ranks.push_back(shared->ranks[rank]);
    }
    made->later([fails] {
      takeAWhile();
      return fails ? ncclSystemError : ncclSuccess;
    });
    __atomic_store_n(place, made, __ATOMIC_RELEASE);
    return ncclSuccess;
  });
  return ncclSuccess; // as NCCL's own, which tells of its progress by the parent alone
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void *, size_t bytes, void **handle) {
  call("ncclCommRegister " + std::to_string(bytes));
  *handle = nullptr;
  return ncclComm::ready(comm, "ncclCommRegister");
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  call("ncclCommFinalize");
  if (const ncclResult_t state = ncclComm::ready(comm, "ncclCommFinalize"); state != ncclSuccess)
    return state;
  comm->finalized = true;
  return comm->later([shared = comm->shared] {
    takeAWhile();
    waitForWork(*shared, "ncclCommFinalize");
    return meet(*shared, ++shared->sequence, "", 1) ? ncclSuccess : ncclInternalError;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  call("ncclCommDestroy");
  if (const ncclResult_t state = ncclComm::ready(comm, "ncclCommDestroy"); state != ncclSuccess)
    return state;
  if (!comm->finalized)
    waitForWork(*comm->shared, "ncclCommDestroy");
  forget(*comm->shared);
  comm->magic = ncclComm::kDead;
  return ncclSuccess;
}

/// Ends what the communicator does, waits until nothing of it is left, and frees it.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  call("ncclCommAbort");
  if (!comm || comm->magic.exchange(ncclComm::kDead) != ncclComm::kAlive)
    ncclMistake("ncclCommAbort on a communicator that is gone");
  comm->shared->aborted = true;
  while (setting("DS_FAKE_NCCL_STUCK", 1000) == static_cast<uint64_t>(comm->shared->jobRank()))
    breathe();
  if (comm->job.joinable())
    comm->job.join();
  waitForWork(*comm->shared, "ncclCommAbort");
  return ncclSuccess;
}
