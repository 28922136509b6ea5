//===- Nccl.cpp - The fake NCCL's collectives of all ranks ----------------------------------------===//
//
// A rank's part of a collective is a file that all ranks see; a collective is done when the files of all
// ranks are there. A rank takes its file away two collectives later, when all have read it. Nothing blocks: a
// stream that waits for a peer is looked at again. DS_FAKE_LOST=2 makes rank 2 lose the parts that it gives
// on streams, from number DS_FAKE_LOST_FROM on of each communicator. DS_FAKE_NCCL_ERROR: see NcclComm.h; the
// call then ends with an error and its work never does.
//
//===---------------------------------------------------------------------------===//
#include "Fake.h"
#include "NcclComm.h"
#include "State.h"

#include "ds/Kernels/Kernels.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

using namespace ds::rt;
using namespace ds::rt::fake;

namespace ds::rt::fake {

DType typeOf(ncclDataType_t type) {
  switch (type) {
  case ncclFloat32:
    return DType::F32;
  case ncclFloat16:
    return DType::F16;
  case ncclBfloat16:
    return DType::BF16;
  case ncclFloat64:
    return DType::F64;
  case ncclInt64:
    return DType::I64;
  case ncclInt32:
    return DType::I32;
  default:
    return DType::U8;
  }
}

std::shared_ptr<void> countIn(std::shared_ptr<NcclShared> comm, std::atomic<int> NcclShared::*counter) {
  ++(comm.get()->*counter);
  return {nullptr, [comm, counter](void *) { --(comm.get()->*counter); }};
}

bool loses(const NcclShared &comm, uint64_t sequence) {
  return setting("DS_FAKE_LOST", 1000) == static_cast<uint64_t>(comm.jobRank()) &&
         sequence >= setting("DS_FAKE_LOST_FROM", 0);
}

} // namespace ds::rt::fake

namespace {

/// Elements [first, first + count) of all parts, combined.
void reduce(const std::vector<std::string> &parts, size_t first, size_t count, ncclDataType_t type,
            ncclRedOp_t op, void *out) {
  std::vector<const void *> sources;
  for (const std::string &part : parts)
    sources.push_back(part.data() + first * byteSize(typeOf(type)));
  const Reduction reduction = op == ncclMax   ? Reduction::Max
                              : op == ncclMin ? Reduction::Min
                                              : Reduction::Sum;
  reduceParts({sources.data(), out, static_cast<int64_t>(count), static_cast<uint32_t>(parts.size()),
               typeOf(type), reduction},
              bestIsa());
}

using Finish = std::function<void(const std::vector<std::string> &parts, const NcclShared &comm)>;

/// Gives this rank's part when the stream gets there, and finishes when all parts are there. What a graph
/// holds is counted until the last copy of it is gone, the runs that were started among them.
std::function<CUresult()> makeWork(std::shared_ptr<NcclShared> comm, const void *in, size_t bytes,
                                   bool isCaptured, bool isLost, Finish finish) {
  auto given = std::make_shared<std::optional<uint64_t>>();
  auto held = countIn(comm, isCaptured ? &NcclShared::captured : &NcclShared::onStreams);
  return [=] {
    (void)held;
    if (comm->aborted)
      return CUDA_SUCCESS; // kernels end, with whatever they have
    if (!*given) {
      *given = ++comm->sequence;
      if (!isLost && !loses(*comm, **given))
        give(*comm, **given, in, bytes);
    }
    const auto parts = isLost ? std::nullopt : take(*comm, **given);
    if (!parts)
      return CUDA_ERROR_NOT_READY;
    given->reset(); // a graph may come again
    finish(*parts, *comm);
    return CUDA_SUCCESS;
  };
}

/// A thread puts the work on the stream, a little later.
ncclResult_t collect(ncclComm_t comm, const char *what, const void *in, size_t bytes, cudaStream_t stream,
                     Finish finish) {
  call(what);
  if (inGroup())
    ncclMistake(std::string(what) +
                " between ncclGroupStart and ncclGroupEnd, which this NCCL does not know");
  if (const ncclResult_t state = ncclComm::ready(comm, what); state != ncclSuccess)
    return state;
  const auto on = reinterpret_cast<CUstream>(stream);
  const CUgraph graph = recordsInto(on);
  return comm->later([=, shared = comm->shared] {
    takeTime(*shared);
    const bool fails = failsLater(*shared, what);
    if (recordsInto(on) != graph)
      ncclMistake(std::string(what) + ": the stream began or ended recording while it was in progress");
    if (shared->aborted)
      return ncclInternalError;
    const CUresult result = enqueue(on, makeWork(shared, in, bytes, graph != nullptr, fails, finish));
    return fails ? ncclRemoteError : result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
  });
}

} // namespace

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, "ncclAllReduce", in, count * byteSize(typeOf(type)), stream,
                 [=](const auto &parts, const NcclShared &) { reduce(parts, 0, count, type, op, out); });
}
ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, "ncclReduceScatter", in, count * comm->shared->ranks.size() * byteSize(typeOf(type)),
                 stream, [=](const auto &parts, const NcclShared &c) {
                   reduce(parts, static_cast<size_t>(c.rank) * count, count, type, op, out);
                 });
}
ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return collect(comm, "ncclAllGather", in, count * byteSize(typeOf(type)), stream,
                 [=](const auto &parts, const NcclShared &) {
                   for (size_t i = 0; i < parts.size(); ++i)
                     std::memcpy(static_cast<char *>(out) + i * parts[i].size(), parts[i].data(),
                                 parts[i].size());
                 });
}
ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, "ncclBroadcast", in, count * byteSize(typeOf(type)), stream,
                 [=](const auto &parts, const NcclShared &) {
                   std::memcpy(out, parts[static_cast<size_t>(root)].data(),
                               parts[static_cast<size_t>(root)].size());
                 });
}
