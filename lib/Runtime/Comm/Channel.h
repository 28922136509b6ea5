//===- Channel.h - One sequence of collectives on a transport ------------------------===//
//
// All communicators of a channel, that of all ranks and those of its subsets, send their messages on the one
// transport of the channel: collectives of different groups do not meet there, because each has waited for
// all of its messages when it returns, and any two ranks call those that both take part in in the same order.
// So they are counted and measured here, as one sequence.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CHANNEL_H
#define DS_LIB_RUNTIME_COMM_CHANNEL_H

#include "Control/Control.h"
#include "Transport.h"

#include "ds/Runtime/Comm/Communicator.h"

#include <memory>

namespace ds::rt {

/// Its fields are those of one exchange that is under way, and what has been measured.
class Channel {
public:
  /// `control` outlives this, and may break the transport at any time.
  Channel(Control &control, std::unique_ptr<Transport> transport, uint32_t rank, uint32_t index,
          std::chrono::milliseconds timeout)
      : control(control), transport(std::move(transport)), rank(rank), index(index), timeout(timeout) {}

  /// The next collective of the sequence begins. Texts must stay valid. Fails when the job has failed.
  Status begin(const char *kind, const char *what);

  /// From here on it is called so, as a part of it may be.
  void rename(const char *kind, const char *what);

  /// It has ended, or the part of it that is called so has, with this result.
  void count(CollectiveKind kind, uint32_t ranks, uint64_t bytes, double seconds);

  /// As long as it lives this rank is known to wait for others, until the deadline at most: those that wait
  /// for it in vain let it speak first, for it knows better who is missing.
  class Waiting {
  public:
    explicit Waiting(Channel &channel) : Waiting(channel, Clock::now()) {}
    ~Waiting() { channel.control.noteWait(channel.index, std::nullopt); }
    Waiting(const Waiting &) = delete;
    const Deadline deadline;

  private:
    Waiting(Channel &channel, Deadline now) : deadline(now + channel.timeout), channel(channel) {
      channel.peer.store(Wait::kNobody, std::memory_order_relaxed);
      channel.control.noteWait(
          channel.index, Wait{now, deadline, channel.sequence, channel.kind, channel.name, &channel.peer});
    }
    Channel &channel;
  };

  /// For whom the present wait is, among all ranks; Wait::kNobody where others of the group tell of it.
  void waitsFor(uint32_t peer) { this->peer.store(peer, std::memory_order_relaxed); }

  /// "collective 6 of channel 1 (all_reduce norm)": the one that runs.
  std::string current() const;

  /// The failure of the job as the present collective sees it.
  Error noticed(const std::string &reason) const;

  const std::vector<CommStat> &stats() const { return statistics; }
  const char *currentKind() const { return kind; }
  const char *currentName() const { return name; }

  Control &control;
  const std::unique_ptr<Transport> transport;
  const uint32_t rank;  ///< of this process, among all
  const uint32_t index; ///< of the channel
  const std::chrono::milliseconds timeout;

private:
  CommStat &statFor(CollectiveKind kind, uint32_t ranks);

  uint64_t sequence = 0; ///< number of the current collective, from 1
  const char *kind = "", *name = "";
  std::atomic<uint32_t> peer{Wait::kNobody}; ///< of the present wait
  std::vector<CommStat> statistics;
  std::vector<std::pair<const char *, size_t>> known; ///< recent names by address: index into statistics
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CHANNEL_H
