//===- Nccl.h - The ranks of a run on NCCL ----------------------------------------------===//
//
// The ranks have met on the CPU before (Communicator.h); NCCL's unique id travels over those connections, and
// so does the news of a failure. Communicators are not blocking: whatever NCCL does, this rank can stop
// waiting for it. Each stream has communicators of its own, one for each set of axes along which its
// collectives run, split from the first one, so that collectives of two streams do not wait for each other.
// All ranks split in the same order, and those that send each other messages do so once, before they issue
// any of the program's. All ranks issue their collectives from one thread in the order of the program, which
// is what NCCL asks for where communicators share a device.
//
// What does not block ends later, on a thread of NCCL's. A split answers "success" at once; the new handle is
// written to where the caller said when the parent has left "in progress", and is in progress itself for a
// while. So a handle lies where it does not move, and whatever was asked for, the state is looked at before
// the communicator is used again. To leave and to abort wait in NCCL until no graph holds a collective of the
// communicator: graphs go first.
//
// NCCL promises the same bits in every run of the same ranks, not the CPU's order of sums.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_NCCL_H
#define DS_LIB_RUNTIME_CUDA_NCCL_H

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Program/Groups.h"

#include <nccl.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ds::rt::cuda {

/// The first version of which non-blocking communicators, their splits and buffers that users register are
/// relied on.
inline constexpr int kNeededNccl = 22300;

#define DS_NCCL_FUNCTIONS(X)                                                                                 \
  X(ncclGetVersion, getVersion)                                                                              \
  X(ncclGetUniqueId, getUniqueId)                                                                            \
  X(ncclGetErrorString, getErrorString)                                                                      \
  X(ncclGetLastError, getLastError)                                                                          \
  X(ncclCommInitRankConfig, commInitRankConfig)                                                              \
  X(ncclCommSplit, commSplit)                                                                                \
  X(ncclCommFinalize, commFinalize)                                                                          \
  X(ncclCommDestroy, commDestroy)                                                                            \
  X(ncclCommAbort, commAbort)                                                                                \
  X(ncclCommGetAsyncError, commGetAsyncError)                                                                \
  X(ncclCommRegister, commRegister)                                                                          \
  X(ncclAllReduce, allReduce)                                                                                \
  X(ncclReduceScatter, reduceScatter)                                                                        \
  X(ncclAllGather, allGather)                                                                                \
  X(ncclBroadcast, broadcast)                                                                                \
  X(ncclSend, send)                                                                                          \
  X(ncclRecv, recv)                                                                                          \
  X(ncclGroupStart, groupStart)                                                                              \
  X(ncclGroupEnd, groupEnd)

/// The library's functions, as pointers.
struct Nccl {
#define DS_NCCL_DECLARE(FUNCTION, MEMBER) decltype(&::FUNCTION) MEMBER = nullptr;
  DS_NCCL_FUNCTIONS(DS_NCCL_DECLARE)
#undef DS_NCCL_DECLARE

  /// Fails with ExitCode::Device: missing, or too old (found and needed version).
  static Result<const Nccl *> open();
};

/// One end of a message, as NCCL counts it.
struct NcclMessage {
  bool isSend;
  std::byte *data;
  uint64_t elements;
  ncclDataType_t type;
  int partner; ///< its rank in the communicator
};

/// Puts messages on a stream that do not wait for each other. The result is that of NCCL's calls, which may
/// only have begun.
ncclResult_t startExchange(const Nccl &api, const std::vector<NcclMessage> &messages, ncclComm_t communicator,
                           cudaStream_t stream);

/// Which group along `axes` a rank is in, for splitting: all ranks that differ from it along these alone have
/// the same. Ordered by their numbers among all, they have NCCL's numbers by their positions.
int colorOf(const Mesh &mesh, AxisSet axes, uint32_t rank);

class NcclRanks {
public:
  /// Connects all ranks of `group`; collective. `dropGraphs` destroys every graph that may hold collectives:
  /// it is called before communicators are left or aborted. Fails with ExitCode::Device where NCCL is missing
  /// or refuses, with ExitCode::Peer where a rank does not come in time.
  static Result<std::unique_ptr<NcclRanks>> connect(RankGroup &group, std::chrono::milliseconds timeout,
                                                    std::function<void()> dropGraphs);
  ~NcclRanks();

  /// The communicator of this rank's group, made when first asked for: all ranks of the job, not of the group
  /// alone, ask for the same ones in the same order.
  Result<ncclComm_t> communicator(GroupUse use, const Mesh &mesh);

  /// Lets every communicator know memory that collectives use; where NCCL has no use for it nothing changes.
  void registerMemory(void *base, uint64_t bytes);

  /// Waits until a call on `communicator` that gave `result` has ended. Returns its failure.
  Status settle(ncclComm_t communicator, ncclResult_t result, const char *what);

  /// The first failure that NCCL or another rank tells of while collectives run.
  Status health();

  /// Leaves together with the other ranks; aborts where that cannot be. The last use.
  void end();

  /// Ends all collectives, on this rank and, with the reason, on all others. Graphs are gone afterwards.
  void abort(const std::string &reason);

  /// Whether an abort has not come back: nothing of the device may be waited for or freed any more.
  bool isStuck() const { return stuck; }

  const Nccl &api;

private:
  /// NCCL may write the handle until what makes it has settled.
  struct Handle {
    ncclComm_t raw = nullptr;
    bool settled = false;
  };
  struct Registered {
    void *base;
    uint64_t bytes;
  };

  NcclRanks(const Nccl &api, RankGroup &group, std::chrono::milliseconds timeout,
            std::function<void()> dropGraphs)
      : api(api), group(group), timeout(timeout), dropGraphs(std::move(dropGraphs)),
        world(std::make_unique<Handle>()) {}
  Result<ncclUniqueId> shareId();
  Error failure(ncclResult_t result, const char *what) const;
  ncclResult_t stateOf(ncclComm_t communicator) const;
  ncclResult_t stateOf(Handle &handle) const;
  Status wait(const std::function<ncclResult_t()> &state, ncclResult_t result, const char *what);
  Status make(Handle &made, ncclComm_t parent, ncclResult_t result, const char *what);
  std::vector<ncclComm_t> settled() const;
  bool leave();
  bool abortAll();

  RankGroup &group;
  const std::chrono::milliseconds timeout;
  const std::function<void()> dropGraphs;
  std::unique_ptr<Handle> world;
  std::map<GroupUse, std::unique_ptr<Handle>> split;
  std::vector<Registered> memory;
  bool broken = false; ///< a call has failed, or may still be in progress
  bool ended = false;  ///< left or aborted
  bool stuck = false;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_NCCL_H
