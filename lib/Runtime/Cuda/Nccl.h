//===- Nccl.h - The ranks of a run on NCCL ----------------------------------------------===//
//
// The ranks have met on the CPU before (Communicator.h); NCCL's unique id travels over those connections, and
// so does the news of a failure. Communicators are not blocking: whatever NCCL does, this rank can stop
// waiting for it. Each stream has a communicator of its own, split from the first one, so that collectives of
// two streams do not wait for each other. All ranks issue their collectives from one thread in the order of
// the program, which is what NCCL asks for where communicators share a device.
//
// NCCL promises the same bits in every run of the same ranks, not the CPU's order of sums.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_NCCL_H
#define DS_LIB_RUNTIME_CUDA_NCCL_H

#include "ds/Runtime/Communicator.h"
#include "ds/Runtime/Program.h"

#include <nccl.h>

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

/// Which group of the mesh's `axis` a rank is in, for splitting: all ranks that differ from it in that axis
/// alone have the same. Axes are numbered as in Collective::axis; the last one counts fastest.
int colorOf(const Mesh &mesh, uint32_t axis, uint32_t rank);

class NcclRanks {
public:
  /// Connects all ranks of `group`; collective. Fails with ExitCode::Device where NCCL is missing or refuses,
  /// with ExitCode::Peer where a rank does not come in time.
  static Result<std::unique_ptr<NcclRanks>> connect(RankGroup &group, std::chrono::milliseconds timeout);
  ~NcclRanks();

  /// The communicator of a stream over one axis of the mesh, made when first asked for; collective.
  Result<ncclComm_t> communicator(uint32_t stream, const Mesh &mesh, uint32_t axis);

  /// Lets every communicator know memory that collectives use; where NCCL has no use for it nothing changes.
  void registerMemory(void *base, uint64_t bytes);

  /// Waits until a call that could not end at once has. Returns its failure.
  Status settle(ncclComm_t communicator, ncclResult_t result, const char *what);

  /// The first failure that NCCL or another rank tells of while collectives run.
  Status health();

  /// Ends all collectives, on this rank and, with the reason, on all others.
  void abort(const std::string &reason);

  const Nccl &api;

private:
  NcclRanks(const Nccl &api, RankGroup &group, std::chrono::milliseconds timeout)
      : api(api), group(group), timeout(timeout) {}
  Result<ncclUniqueId> shareId();
  Error failure(ncclResult_t result, const char *what) const;

  struct Registered {
    void *base;
    uint64_t bytes;
  };

  RankGroup &group;
  const std::chrono::milliseconds timeout;
  ncclComm_t world = nullptr;
  std::map<std::pair<uint32_t, uint32_t>, ncclComm_t> split; ///< by stream and axis
  std::vector<Registered> memory;
  bool aborted = false;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_NCCL_H
