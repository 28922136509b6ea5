//===- NcclComm.h - Communicators of the fake NCCL ---------------------------------------===//
//
// As asynchronous as NCCL's own that do not block: a call returns, a thread does the work later, and until
// then the communicator is "in progress" and refuses other calls. What is said of NCCL follows its user guide
// and its sources (2.23 to 2.28).
//
// A mistake that would hang or destroy memory ends the process with a line on stderr instead.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_NCCLCOMM_H
#define DS_UNITTESTS_RUNTIME_CUDA_NCCLCOMM_H

#include "ds/Runtime/Program/Program.h"

#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace ds::rt::fake {

/// What the work of a communicator on streams still needs when the communicator is gone.
struct NcclShared {
  std::string name; ///< start of its files' paths
  int rank = 0;
  std::vector<int> ranks;            ///< of the job, by rank of this communicator
  std::atomic<uint64_t> sequence{0}; ///< of what has gone through it
  std::atomic<bool> aborted{false};
  std::atomic<ncclResult_t> result{ncclInProgress};
  std::atomic<int> captured{0}; ///< collectives that graphs hold
  std::atomic<int> onStreams{0};
  // Of messages, by partner (a rank of this communicator); of whoever has the device.
  std::map<int, uint64_t> sent, received;
  std::set<std::pair<bool, int>> connected; ///< to send to, or to receive from; of the last call's thread

  int jobRank() const { return ranks[static_cast<size_t>(rank)]; }
};

/// Tells what the caller has done wrong, and ends the process.
[[noreturn]] void ncclMistake(const std::string &what);

/// The bytes that this rank gives to number `sequence`; all ranks see them.
void give(const NcclShared &comm, uint64_t sequence, const void *data, size_t bytes);
/// The parts of all ranks, or nothing while one is missing.
std::optional<std::vector<std::string>> take(const NcclShared &comm, uint64_t sequence);
/// Takes this rank's last parts away.
void forget(const NcclShared &comm);

DType typeOf(ncclDataType_t type);

/// A count of `counter` for as long as somebody holds it.
std::shared_ptr<void> countIn(std::shared_ptr<NcclShared> comm, std::atomic<int> NcclShared::*counter);

/// Whether this rank loses what it gives as number `sequence`.
bool loses(const NcclShared &comm, uint64_t sequence);

/// Whether this thread is between the start of a group of messages and its end.
bool inGroup();

/// What a call spends before it puts its work on a stream; on the rank of DS_FAKE_NCCL_SLOW it takes long.
void takeTime(const NcclShared &comm);

/// Whether DS_FAKE_NCCL_ERROR ("RANK CALL NUMBER": its third ncclAllGather, from 1) means this call.
bool failsLater(const NcclShared &comm, const char *call);

} // namespace ds::rt::fake

struct ncclComm {
  static constexpr uint32_t kAlive = 0xa11ce, kDead = 0xdead;
  std::atomic<uint32_t> magic{kAlive};
  std::shared_ptr<ds::rt::fake::NcclShared> shared = std::make_shared<ds::rt::fake::NcclShared>();
  std::thread job; ///< of the last call
  bool finalized = false;
  bool blocking = false;

  /// One that is never freed, so that a later use is seen.
  static ncclComm_t make();
  /// Ends the process where `comm` is none; otherwise whether it may be used now.
  static ncclResult_t ready(ncclComm_t comm, const char *call);
  /// Does `work` on a thread after a while; its result is the communicator's.
  ncclResult_t later(std::function<ncclResult_t()> work);
};

#endif // DS_UNITTESTS_RUNTIME_CUDA_NCCLCOMM_H
