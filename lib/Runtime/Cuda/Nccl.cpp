//===- Nccl.cpp - Connects ranks by NCCL --------------------------------------------------===//
#include "Nccl.h"

#include "Library.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace ds::rt::cuda {
namespace {

constexpr const char *kHint = "install NCCL 2.23 or later, and put its directory into LD_LIBRARY_PATH";
constexpr std::chrono::microseconds kPause(100); // between looks at a call that has not ended

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

int colorOf(const Mesh &mesh, uint32_t axis, uint32_t rank) {
  const uint32_t sizes[] = {mesh.dp, mesh.tp, mesh.pp, mesh.sp};
  uint32_t stride = 1;
  for (uint32_t d = axis + 1; d < 4; ++d)
    stride *= sizes[d];
  const uint32_t place = rank / stride % sizes[axis];
  return static_cast<int>(rank - place * stride);
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

Result<std::unique_ptr<NcclRanks>> NcclRanks::connect(RankGroup &group, std::chrono::milliseconds timeout) {
  Result<const Nccl *> nccl = Nccl::open();
  if (!nccl)
    return nccl.error();
  std::unique_ptr<NcclRanks> ranks(new NcclRanks(**nccl, group, timeout));
  Result<ncclUniqueId> id = ranks->shareId();
  if (!id)
    return id.error();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t result = ranks->api.commInitRankConfig(&ranks->world, static_cast<int>(group.world()),
                                                            *id, static_cast<int>(group.rank()), &config);
  if (Status status = ranks->settle(ranks->world, result, "connecting the ranks"); !status)
    return status.error();
  return ranks;
}

NcclRanks::~NcclRanks() {
  if (aborted)
    return;
  std::vector<ncclComm_t> all;
  for (const auto &[place, communicator] : split)
    all.push_back(communicator);
  if (world)
    all.push_back(world);
  for (ncclComm_t communicator : all)
    if (settle(communicator, api.commFinalize(communicator), "leaving"))
      api.commDestroy(communicator);
    else
      api.commAbort(communicator);
}

Status NcclRanks::settle(ncclComm_t communicator, ncclResult_t result, const char *what) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (result == ncclInProgress) {
    if (!communicator)
      return Error{ExitCode::Internal, "NCCL gave no communicator", ""};
    if (const ncclResult_t asked = api.commGetAsyncError(communicator, &result); asked != ncclSuccess)
      result = asked;
    if (const std::string reason = group.failure(); !reason.empty())
      return Error{ExitCode::Peer, reason, ""};
    if (std::chrono::steady_clock::now() >= deadline)
      return Error{
          ExitCode::Peer,
          fmt::format("NCCL, {}: no end after {} s", what, static_cast<double>(timeout.count()) / 1e3),
          "set NCCL_DEBUG=INFO to see whom NCCL waits for"};
    if (result == ncclInProgress)
      std::this_thread::sleep_for(kPause);
  }
  return result == ncclSuccess ? Status() : failure(result, what);
}

Result<ncclComm_t> NcclRanks::communicator(uint32_t stream, const Mesh &mesh, uint32_t axis) {
  const auto found = split.find({stream, axis});
  if (found != split.end())
    return found->second;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t made = nullptr;
  const ncclResult_t result =
      api.commSplit(world, colorOf(mesh, axis, group.rank()), static_cast<int>(group.rank()), &made, &config);
  if (Status status = settle(world, result, "splitting the ranks"); !status)
    return status.error();
  if (Status status = settle(made, result == ncclSuccess ? result : ncclInProgress, "splitting the ranks");
      !status)
    return status.error();
  for (const Registered &each : memory) {
    void *handle = nullptr;
    api.commRegister(made, each.base, each.bytes, &handle);
  }
  return split.emplace(std::pair(stream, axis), made).first->second;
}

void NcclRanks::registerMemory(void *base, uint64_t bytes) { memory.push_back({base, bytes}); }

Status NcclRanks::health() {
  if (const std::string reason = group.failure(); !reason.empty())
    return Error{ExitCode::Peer, reason, ""};
  for (const auto &[place, communicator] : split) {
    ncclResult_t result = ncclSuccess;
    api.commGetAsyncError(communicator, &result);
    if (result != ncclSuccess && result != ncclInProgress)
      return failure(result, "collectives");
  }
  return {};
}

void NcclRanks::abort(const std::string &reason) {
  if (std::exchange(aborted, true))
    return;
  if (!reason.empty())
    group.abort(reason);
  for (const auto &[place, communicator] : split)
    api.commAbort(communicator);
  if (world)
    api.commAbort(world);
}

} // namespace ds::rt::cuda
