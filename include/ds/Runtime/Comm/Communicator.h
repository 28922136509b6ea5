//===- Communicator.h - What ranks do together ----------------------------------===//
//
// One process per rank. `findRankIdentity` says which rank this process is, `connect` brings the ranks
// together and gives one `Communicator` per channel: a channel is one sequence of collectives, used by one
// thread at a time, and channels do not wait for each other. Some of the ranks do something together on a
// channel by a communicator of theirs (`RankGroup::subset`). Gloo moves the data (libds-gloo.so), but ranks
// of one machine read each other's memory where the operating system lets them; PMIx finds the ranks under
// mpirun and srun (libds-pmix.so); both are opened on demand, and a missing one is named with
// ExitCode::Device.
//
// Nobody waits for ever. Whatever a rank waits for has a time-out; a rank that dies is noticed at once by the
// others, and the first that learns of a failure tells all. Every failure of a peer is ExitCode::Peer; its
// message names the rank, its host and the collective. After a failure every call fails with the same error.
//
// Sums are formed in rank order, in fp32 for f32, bf16 and f16, and every rank gets the same bits. Nothing is
// allocated by a collective once each has run with its arguments.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_COMM_COMMUNICATOR_H
#define DS_RUNTIME_COMM_COMMUNICATOR_H

#include "ds/Runtime/Program/Mesh.h"
#include "ds/Support/Error.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

enum class DType : uint8_t;
enum class Reduction : uint8_t;
enum class CollectiveKind : uint8_t;

/// What one collective (by kind, name and size of its group) has done on this rank since the start.
struct CommStat {
  CollectiveKind kind;
  std::string name;
  uint32_t ranks = 1; ///< that take part
  uint64_t count = 0;
  /// Summed over calls. As nccl-tests count them: the whole result of a gather, the whole input of a
  /// reduce-scatter or all-to-all, the vector of an all-reduce or broadcast, the message of a send.
  uint64_t bytes = 0;
  /// From the call to its return, waiting for late ranks included; of messages that were exchanged together
  /// each has an equal part.
  double seconds = 0;

  /// bytes / seconds; 0 if nothing was measured.
  double algorithmBandwidth() const;
  /// What each link has to carry for that, as nccl-tests define it: algorithm bandwidth times 2(n-1)/n for
  /// all_reduce, (n-1)/n for gathers, reduce-scatters and all-to-alls, 1 for the rest.
  double busBandwidth() const;
};

/// The table that ends a run: one line for each, most time first; behind the first `rows` all others are one
/// line. Empty if there are none.
std::string describe(const std::vector<CommStat> &stats, size_t rows = SIZE_MAX);

/// This rank's end of a message.
struct Message {
  bool isSend;
  void *data; ///< not written where it is sent
  uint64_t bytes;
  uint32_t partner; ///< its position
  const char *what; ///< its name in diagnostics and statistics; its text stays valid
};

/// What some ranks, or all, do together on a channel. They call the same collectives in the same order with
/// matching sizes. Each is known here, and called rank, by its position among them, from 0; only failures are
/// told of by the numbers among all. `what` is the collective's name in diagnostics and statistics; its text
/// must stay valid. Memory belongs to the caller, who keeps it untouched until the call returns.
class Communicator {
public:
  virtual ~Communicator() = default;
  virtual uint32_t position() const = 0; ///< of this rank
  virtual uint32_t size() const = 0;     ///< how many they are

  /// Every rank's `bytesPerRank` bytes, in rank order. `in` may be out + position * bytesPerRank.
  virtual Status allGather(const void *in, void *out, uint64_t bytesPerRank, const char *what) = 0;

  /// out[i] = the reduction over ranks of in[position * elements + i]: `in` has size * elements elements.
  /// `out` may be that part of `in`. `staging`: collectiveStagingBytes (Program.h) bytes.
  virtual Status reduceScatter(const void *in, void *out, void *staging, uint64_t elements, DType dtype,
                               Reduction reduction, const char *what) = 0;

  /// out[i] = the reduction over ranks of in[i]; `in` may be `out`. `staging` as above. Maximum and minimum
  /// are NaN where any rank's element is.
  virtual Status allReduce(const void *in, void *out, void *staging, uint64_t elements, DType dtype,
                           Reduction reduction, const char *what) = 0;

  /// Rank `root`'s bytes on every rank.
  virtual Status broadcast(void *data, uint64_t bytes, uint32_t root, const char *what) = 0;

  /// Part p of `in` goes to rank p, which finds it in part `position` of its `out`. The two do not overlap.
  virtual Status allToAll(const void *in, void *out, uint64_t bytesPerRank, const char *what) = 0;

  /// Sends and receives, and returns when all of it is done: no message waits for another one. Those that one
  /// rank sends to another are received in the order in which they were sent, each with as many bytes.
  virtual Status exchange(std::span<const Message> messages) = 0;
  Status send(const void *data, uint64_t bytes, uint32_t to, const char *what) {
    const Message message{/*isSend=*/true, const_cast<void *>(data), bytes, to, what};
    return exchange({&message, 1});
  }
  Status recv(void *data, uint64_t bytes, uint32_t from, const char *what) {
    const Message message{/*isSend=*/false, data, bytes, from, what};
    return exchange({&message, 1});
  }

  /// Returns when every rank has come here.
  virtual Status barrier(const char *what) = 0;

  /// What the channel has done so far, all of its subsets included. Not while a collective runs.
  virtual std::vector<CommStat> stats() const = 0;
};

/// What the collectives of a stream along some axes of the mesh go through on this rank: a communicator of
/// its group, positions being those of the mesh. Null where there is none. It outlives whoever asks.
using CommunicatorOf = std::function<Communicator *(uint32_t stream, AxisSet axes)>;

/// The ranks of one job, connected. Made and destroyed by one thread.
class RankGroup {
public:
  /// Leaves. Without a successful `finish` the other ranks take this as the failure of this one.
  virtual ~RankGroup() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t world() const = 0;
  virtual const std::string &host(uint32_t rank) const = 0;

  /// Where each rank stands in what all of them run ("pp 1, dp 0"): from now on messages say it with its
  /// name.
  virtual void setPlaces(std::vector<std::string> places) {}
  /// "rank 2 on host alpha", or "rank 2 on host alpha (pp 1, dp 0)".
  virtual std::string name(uint32_t rank) const;

  /// How data travels: "memory" (ranks of one machine read each other's), "gloo", or "none" for one rank.
  virtual std::string transport() const = 0;

  /// All ranks on channel `index`, of those that are connected. Lives as long as the group.
  virtual Communicator &channel(uint32_t index) = 0;

  /// These ranks, in ascending order and this one among them, on channel `index`. Made when first asked for,
  /// without a word to the others; lives as long as the group. A channel's collectives are one sequence
  /// whoever takes part: any two ranks call those that both take part in in the same order. Not while a
  /// collective of the channel runs.
  virtual Communicator &subset(uint32_t index, const std::vector<uint32_t> &ranks) = 0;

  /// Connects channels until there are `count`, or as many as any rank asks for: ranks that do not want the
  /// same are still to find out. All ranks call this, once, where ConnectOptions::more says so. Nobody can
  /// connect to this rank afterwards.
  virtual Status addChannels(uint32_t count) = 0;

  /// Every rank's string, in rank order: for small things outside the step (plan hashes, "stop now"). Takes
  /// no channel; one call at a time.
  virtual Result<std::vector<std::string>> exchange(const std::string &mine, const char *what) = 0;

  /// Tells all ranks that this one gives up and why; every wait of theirs ends with ExitCode::Peer and this
  /// reason. For failures that only this rank knows of (its data, its disk).
  virtual void abort(const std::string &reason) = 0;

  /// For who waits for the others by other means than these, on a GPU: says in a line for how long, in
  /// `what`, and which ranks do not answer. It takes half a second where one does not.
  virtual void tellOfWait(const std::string &what, std::chrono::milliseconds waited,
                          std::chrono::milliseconds timeout) {}
  /// When that has been too long: has the ranks write down their stacks.
  virtual void showStacks() {}

  /// Why the job has failed, as far as this rank has heard; empty while it has not. From any thread.
  virtual std::string failure() = 0;

  /// The end of a run that went well: waits for all ranks to call it.
  virtual Status finish() = 0;
};

/// Which rank of which job this process is, and how it finds the others.
struct RankIdentity {
  enum class Kind : uint8_t {
    Alone,     ///< no launcher: one rank
    Directory, ///< ranks find each other in a directory (`ds-run --ranks N`, or set by hand)
    Pmix,      ///< mpirun or srun
  };
  Kind kind = Kind::Alone;
  uint32_t rank = 0, world = 1;
  bool oneHost = false;  ///< all ranks run on this machine
  std::string directory; ///< Directory: where each rank leaves its address
  std::string nonce;     ///< Directory: what tells this job from any other in the same directory
};

/// Whether the environment says that a launcher has started this process as a rank. Asks nobody.
bool isStartedAsRank();

/// Looks at the environment:
///   DS_RANK, DS_WORLD, DS_RENDEZVOUS, DS_NONCE   set by the local launcher, with DS_ONE_HOST=1
///   PMIX_RANK and PMIX_NAMESPACE                 set by mpirun and by srun --mpi=pmix
/// Refuses what contradicts itself (ExitCode::Usage), and an srun of several tasks without PMIx, where every
/// task would train alone. Opens libds-pmix.so under PMIx.
Result<RankIdentity> findRankIdentity();

/// The time-out of DeepSpeed's process groups.
inline constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::minutes(10);
/// Ranks that have not come to the rendezvous by then are missing, however long the time-out.
inline constexpr std::chrono::milliseconds kRendezvousLimit = std::chrono::seconds(60);

/// No run needs more channels: there are so few kinds of streams that communicate.
inline constexpr uint32_t kMostChannels = 5;

struct ConnectOptions {
  std::chrono::milliseconds timeout = kDefaultTimeout; ///< of every wait; at least 100 ms
  uint32_t channels = 2;
  bool more = false; ///< addChannels will be called
};

/// Brings the ranks of a job together, and ignores SIGPIPE from then on unless it is caught; the first thing
/// a rank does, before it reads data or weights. Signals that were held back (EndSignals.h) come now. With
/// one rank it needs neither Gloo nor PMIx. Fails with ExitCode::Peer when a rank does not come (it is
/// named), with ExitCode::Device when a plugin is missing.
Result<std::unique_ptr<RankGroup>> connect(const RankIdentity &place, const ConnectOptions &options);

} // namespace ds::rt

#endif // DS_RUNTIME_COMM_COMMUNICATOR_H
