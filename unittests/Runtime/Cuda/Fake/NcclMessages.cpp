//===- NcclMessages.cpp - The fake NCCL's messages and groups of them ---------------------------===//
//
// As strict as NCCL's user guide lets it be. Calls between the first ncclGroupStart and its ncclGroupEnd are
// one piece of work on a stream: none of their messages waits for another, and the work is done when all have
// passed; a call outside of a group is one of its own. A send is done when the other rank has taken it. What
// one rank sends to another is received in order, as many elements of the same type, which NCCL relies on and
// does not look at: here it is a mistake.
//
// Two ranks that meet for the first time connect, each direction by itself, when both have asked for it, and
// until then the communicator is in progress: what keeps its caller's thread waiting.
//
// A message is a file that its receiver takes away.
//
//===---------------------------------------------------------------------------===//
#include "Fake.h"
#include "NcclComm.h"
#include "State.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace ds::rt;
using namespace ds::rt::fake;

namespace {

struct Call {
  bool isSend;
  void *data;
  size_t count;
  ncclDataType_t type;
  int peer;

  size_t bytes() const { return count * byteSize(typeOf(type)); }
};

/// What a thread has said since its first ncclGroupStart.
struct Group {
  unsigned depth = 0;
  std::vector<Call> calls;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};
thread_local Group group;

/// The two ranks of a message, and its place in what one sends to the other.
std::string pathOf(const NcclShared &comm, const Call &call, const std::string &place) {
  const int own = comm.rank, from = call.isSend ? own : call.peer, to = call.isSend ? call.peer : own;
  return comm.name + ".from" + std::to_string(from) + ".to" + std::to_string(to) + "." + place;
}

void writeFile(const std::string &path, const std::string &head, const void *data, size_t bytes) {
  std::ofstream file(path + "~", std::ios::binary);
  file << head << '\n';
  file.write(static_cast<const char *>(data), static_cast<std::streamsize>(bytes));
  file.close();
  std::filesystem::rename(path + "~", path);
}

/// "16 of type 7": what both ends have to say of a message.
std::string headOf(const Call &call) {
  return std::to_string(call.count) + " of type " + std::to_string(int(call.type));
}

/// A message that its stream has come to.
struct Started {
  Call call;
  std::string path;
  bool isLost, isDone = false;
};

/// Takes the message where it is there.
bool receive(const NcclShared &comm, const Started &message) {
  std::ifstream file(message.path, std::ios::binary);
  std::string head;
  if (!std::getline(file, head))
    return false;
  if (head != headOf(message.call))
    ncclMistake("ncclRecv of " + headOf(message.call) + " from rank " + std::to_string(message.call.peer) +
                " on rank " + std::to_string(comm.rank) + ", which sends " + head);
  file.read(static_cast<char *>(message.call.data), static_cast<std::streamsize>(message.call.bytes()));
  file.close();
  std::filesystem::remove(message.path);
  return true;
}

std::vector<Started> startAll(NcclShared &comm, const std::vector<Call> &calls, bool isLost) {
  std::vector<Started> started;
  for (const Call &each : calls) {
    const uint64_t number = ++(each.isSend ? comm.sent : comm.received)[each.peer];
    started.push_back({each, pathOf(comm, each, std::to_string(number)), isLost || loses(comm, number)});
    if (each.isSend && !started.back().isLost)
      writeFile(started.back().path, headOf(each), each.data, each.bytes());
  }
  return started;
}

/// The work of a group on its stream; a graph may come again.
std::function<CUresult()> makeWork(std::shared_ptr<NcclShared> comm, std::vector<Call> calls, bool isCaptured,
                                   bool isLost) {
  const auto messages = std::make_shared<std::vector<Started>>();
  auto held = countIn(comm, isCaptured ? &NcclShared::captured : &NcclShared::onStreams);
  return [=] {
    (void)held;
    if (comm->aborted)
      return CUDA_SUCCESS;
    if (messages->empty())
      *messages = startAll(*comm, calls, isLost);
    bool isDone = true;
    for (Started &message : *messages) {
      if (!message.isDone)
        message.isDone = message.call.isSend ? !message.isLost && !std::filesystem::exists(message.path)
                                             : receive(*comm, message);
      isDone = isDone && message.isDone;
    }
    if (!isDone)
      return CUDA_ERROR_NOT_READY;
    messages->clear();
    return CUDA_SUCCESS;
  };
}

/// Waits for the other ends of connections that are new.
bool connect(NcclShared &comm, const std::vector<Call> &calls) {
  std::vector<std::string> awaited;
  for (const Call &each : calls)
    if (each.peer != comm.rank && comm.connected.insert({each.isSend, each.peer}).second) {
      writeFile(pathOf(comm, each, each.isSend ? "sends" : "receives"), "", "", 0);
      awaited.push_back(pathOf(comm, each, each.isSend ? "receives" : "sends"));
    }
  for (const std::string &path : awaited)
    while (!std::filesystem::exists(path)) {
      if (comm.aborted)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  return true;
}

/// A thread puts the group on its stream, when the connections are there.
ncclResult_t startGroup(Group given) {
  if (given.calls.empty())
    return ncclSuccess;
  if (const ncclResult_t state = ncclComm::ready(given.comm, "ncclGroupEnd"); state != ncclSuccess)
    return state;
  const auto on = reinterpret_cast<CUstream>(given.stream);
  const CUgraph graph = recordsInto(on);
  return given.comm->later([=, shared = given.comm->shared] {
    takeTime(*shared);
    const bool fails = failsLater(*shared, "ncclGroupEnd");
    if (shared->aborted || !connect(*shared, given.calls))
      return ncclInternalError;
    if (recordsInto(on) != graph)
      ncclMistake("ncclGroupEnd: the stream began or ended recording while it was in progress");
    const CUresult result = enqueue(on, makeWork(shared, given.calls, graph != nullptr, fails));
    return fails ? ncclRemoteError : result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
  });
}

ncclResult_t add(const char *name, const Call &added, ncclComm_t comm, cudaStream_t stream) {
  call(std::string(name) + " " + std::to_string(added.peer));
  if (const ncclResult_t state = ncclComm::ready(comm, name); state != ncclSuccess)
    return state;
  if (added.peer < 0 || added.peer >= static_cast<int>(comm->shared->ranks.size()))
    return ncclInvalidArgument;
  if (group.depth == 0)
    return startGroup({0, {added}, comm, stream});
  if (!group.calls.empty() && (group.comm != comm || group.stream != stream))
    ncclMistake(std::string(name) + ": this NCCL knows groups of one communicator and stream");
  group.comm = comm;
  group.stream = stream;
  group.calls.push_back(added);
  return ncclSuccess;
}

} // namespace

bool ds::rt::fake::inGroup() { return group.depth > 0; }

ncclResult_t ncclGroupStart() {
  call("ncclGroupStart");
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  call("ncclGroupEnd");
  if (group.depth == 0)
    ncclMistake("ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0)
    return ncclSuccess;
  return startGroup(std::exchange(group, {}));
}
ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add("ncclSend", {true, const_cast<void *>(in), count, type, peer}, comm, stream);
}
ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add("ncclRecv", {false, out, count, type, peer}, comm, stream);
}
