//===- Nccl.cpp - NCCL between processes on fake devices ------------------------------------------===//
//
// A rank's part of a collective is a file that all ranks see; a collective is done when the files of all
// ranks are there. A rank takes its file away two collectives later, when all have read it. Nothing blocks: a
// stream that waits for a peer is looked at again. DS_FAKE_LOST=2 makes rank 2 lose the parts that it gives
// on streams.
//
//===---------------------------------------------------------------------------===//
#include "Fake.h"
#include "State.h"

#include "ds/Runtime/Kernels.h"

#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <unistd.h>

using namespace ds::rt;
using namespace ds::rt::fake;

struct ncclComm {
  std::string name; ///< start of its files' paths
  int rank = 0;
  std::vector<int> ranks; ///< of the job, by rank of this communicator
  uint64_t sequence = 0;
  int asked = 0; ///< of its state: the first answer is "in progress"
};

namespace {

std::string fileOf(const ncclComm &comm, uint64_t sequence, int rank) {
  return comm.name + "." + std::to_string(sequence) + "." +
         std::to_string(comm.ranks[static_cast<size_t>(rank)]);
}

void put(const ncclComm &comm, uint64_t sequence, const void *data, size_t bytes) {
  const std::string path = fileOf(comm, sequence, comm.rank);
  std::ofstream(path + "~", std::ios::binary)
      .write(static_cast<const char *>(data), static_cast<std::streamsize>(bytes));
  std::filesystem::rename(path + "~", path);
  std::error_code error;
  if (sequence > 2)
    std::filesystem::remove(fileOf(comm, sequence - 2, comm.rank), error);
}

/// The parts of all ranks, or nothing while one is missing.
std::optional<std::vector<std::string>> take(const ncclComm &comm, uint64_t sequence) {
  std::vector<std::string> parts;
  for (size_t rank = 0; rank < comm.ranks.size(); ++rank) {
    std::ifstream file(fileOf(comm, sequence, static_cast<int>(rank)), std::ios::binary);
    if (!file)
      return std::nullopt;
    parts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return parts;
}

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

using Finish = std::function<void(const std::vector<std::string> &parts, const ncclComm &comm)>;

/// Gives this rank's part when the stream gets there, and finishes when all parts are there.
ncclResult_t collect(ncclComm_t comm, const char *what, const void *in, size_t bytes, cudaStream_t stream,
                     Finish finish) {
  call(what);
  auto given = std::make_shared<std::optional<uint64_t>>();
  const CUresult result = enqueue(reinterpret_cast<CUstream>(stream), [=] {
    if (!*given) {
      *given = ++comm->sequence;
      if (setting("DS_FAKE_LOST", 1000) !=
          static_cast<uint64_t>(comm->ranks[static_cast<size_t>(comm->rank)]))
        put(*comm, **given, in, bytes);
    }
    const auto parts = take(*comm, **given);
    if (!parts)
      return CUDA_ERROR_NOT_READY;
    given->reset(); // a graph may come again
    finish(*parts, *comm);
    return CUDA_SUCCESS;
  });
  return result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

} // namespace

ncclResult_t ncclGetVersion(int *version) {
  *version = static_cast<int>(setting("DS_FAKE_NCCL", 22809));
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t) { return "an error of the fake library"; }
const char *ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  const char *folder = std::getenv("DS_CACHE_DIR"); // of the test, which takes it away
  std::filesystem::create_directories(folder ? folder : ".");
  std::snprintf(id->internal, sizeof id->internal, "%s/nccl-%d", folder ? folder : ".", ::getpid());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  call("ncclCommInitRankConfig blocking " + std::to_string(config->blocking));
  *comm = new ncclComm{id.internal, rank, {}, 0, 0};
  for (int i = 0; i < ranks; ++i)
    (*comm)->ranks.push_back(i);
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
  *result = comm->asked++ == 0 ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *) {
  call("ncclCommSplit " + std::to_string(color));
  const uint64_t sequence = ++comm->sequence;
  put(*comm, sequence, &color, sizeof color);
  std::optional<std::vector<std::string>> colors;
  while (!(colors = take(*comm, sequence)))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  *made =
      new ncclComm{comm->name + "s" + std::to_string(sequence) + "c" + std::to_string(color), 0, {}, 0, 0};
  for (size_t rank = 0; rank < colors->size(); ++rank) {
    int other = 0;
    std::memcpy(&other, (*colors)[rank].data(), sizeof other);
    if (other == color && static_cast<int>(rank) == comm->rank)
      (*made)->rank = static_cast<int>((*made)->ranks.size());
    if (other == color)
      (*made)->ranks.push_back(comm->ranks[rank]);
  }
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(ncclComm_t, void *, size_t bytes, void **) {
  call("ncclCommRegister " + std::to_string(bytes));
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::error_code error;
  for (uint64_t back = 0; back < 3 && comm->sequence > back + 2; ++back)
    std::filesystem::remove(fileOf(*comm, comm->sequence - back - 2, comm->rank), error);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  call("ncclCommAbort");
  state().sticky = CUDA_ERROR_LAUNCH_FAILED; // what the streams still hold of it will never run
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, "ncclAllReduce", in, count * byteSize(typeOf(type)), stream,
                 [=](const auto &parts, const ncclComm &) { reduce(parts, 0, count, type, op, out); });
}
ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, "ncclReduceScatter", in, count * comm->ranks.size() * byteSize(typeOf(type)), stream,
                 [=](const auto &parts, const ncclComm &c) {
                   reduce(parts, static_cast<size_t>(c.rank) * count, count, type, op, out);
                 });
}
ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return collect(comm, "ncclAllGather", in, count * byteSize(typeOf(type)), stream,
                 [=](const auto &parts, const ncclComm &) {
                   for (size_t i = 0; i < parts.size(); ++i)
                     std::memcpy(static_cast<char *>(out) + i * parts[i].size(), parts[i].data(),
                                 parts[i].size());
                 });
}
ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return collect(comm, "ncclBroadcast", in, count * byteSize(typeOf(type)), stream,
                 [=](const auto &parts, const ncclComm &) {
                   std::memcpy(out, parts[static_cast<size_t>(root)].data(),
                               parts[static_cast<size_t>(root)].size());
                 });
}

// An all-to-all is a group of messages to and from every rank: what is sent is kept, and the first message
// that is received exchanges all of it.
namespace {
struct Messages {
  std::vector<std::pair<const void *, size_t>> sent;
  std::vector<void *> received;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
} group;
} // namespace

ncclResult_t ncclGroupStart() {
  group = {};
  return ncclSuccess;
}
ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int, ncclComm_t comm,
                      cudaStream_t stream) {
  group.sent.push_back({in, count * byteSize(typeOf(type))});
  group.comm = comm;
  group.stream = stream;
  return ncclSuccess;
}
ncclResult_t ncclRecv(void *out, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) {
  group.received.push_back(out);
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  const size_t bytes = group.sent[0].second;
  return collect(group.comm, "ncclAllToAll", group.sent[0].first, bytes * group.sent.size(), group.stream,
                 [bytes, received = group.received](const auto &parts, const ncclComm &c) {
                   for (size_t i = 0; i < parts.size(); ++i)
                     std::memcpy(received[i], parts[i].data() + static_cast<size_t>(c.rank) * bytes, bytes);
                 });
}
