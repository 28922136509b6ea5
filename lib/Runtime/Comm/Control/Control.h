//===- Control.h - Connections that carry news, not data -------------------------===//
//
// Each pair of ranks keeps one TCP connection of its own beside the data plane (Wires.h). Small blobs travel
// on it before the data plane exists (Exchanges.h), and the news of a failure while it does (News.h): one
// thread listens to all peers (Listener.h), sees at once when one is gone, and breaks this rank's data
// connections, so that no wait outlasts the first that knows. Who waits in vain asks before it blames anyone
// (Inquiries.h); long before, the listening thread asks likewise, and says for whom this rank has been
// waiting (WaitWatch.h).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_CONTROL_H
#define DS_LIB_RUNTIME_COMM_CONTROL_CONTROL_H

#include "Exchanges.h"
#include "Listener.h"
#include "Reception.h"
#include "WaitWatch.h"

namespace ds::rt {

/// All that ranks tell each other beside collectives.
class Control : Hearer {
public:
  struct Options {
    /// Once the job has failed this process ends by itself, with ExitCode::Peer, unless this object is gone
    /// within the limit: a thread that hangs, because nobody reads what it writes or its storage is gone,
    /// would keep the process for ever.
    std::optional<std::chrono::milliseconds> failureLimit = {};
    /// What the launcher has told of a rank that will not come; empty while nothing. Asked while ranks
    /// connect.
    std::function<std::string()> absence = {};
  };

  /// Connects to every other rank. `cards` are those of all ranks, who call this one at `reception`.
  static Result<std::unique_ptr<Control>> connect(std::vector<Card> cards, uint32_t rank,
                                                  Reception &reception, Deadline deadline, Options options);
  ~Control() override;

  const Card &card(uint32_t rank) const { return roster.cards[rank]; }
  RankPlaces &places() { return *roster.places; }

  /// "rank 2 on host alpha", with its place where that is known; several as spellRanks has them.
  std::string name(const std::vector<uint32_t> &ranks) const { return roster.name(ranks); }

  /// Every rank's blob, in rank order.
  Result<std::vector<std::string>> exchange(const std::string &mine, const char *what,
                                            std::chrono::milliseconds timeout) {
    return exchanges.exchange(mine, what, timeout);
  }

  /// As exchange; after it the end of any connection is no failure.
  Status finish(std::chrono::milliseconds timeout) { return exchanges.finish(timeout); }

  /// Records that the job has failed, unless it has already: tells all ranks, then calls what `onFailure` was
  /// given. From any thread; `failure` has a reason when it returns.
  void fail(const std::string &reason) { news.fail(reason); }

  /// The reason; waits up to `patience` for it. Empty if there is none.
  std::string failure(std::chrono::milliseconds patience = std::chrono::milliseconds(0)) {
    return news.failure(patience);
  }
  bool failed() const { return news.failed(); }

  /// Says for what `channel` of this rank waits; nothing when it no longer does.
  void noteWait(uint32_t channel, std::optional<Wait> wait) { waits.note(channel, wait); }

  /// Has the ranks write down their stacks, in a job of many these ones and this one alone, and says which of
  /// `blamed` have not answered when they were asked last.
  void showStacks(const std::vector<uint32_t> &blamed) { inquiries.showStacks(blamed); }

  /// Asks the ranks that this one has waited for in vain. Those that wait themselves are heard out: they know
  /// better who is missing, and tell all when their own time is over; `patience` is what that may take
  /// beyond it. Returns the others; or all, if there are none and no news came.
  std::vector<uint32_t> hearOut(const std::vector<uint32_t> &missing, std::chrono::milliseconds patience) {
    return inquiries.hearOut(missing, patience);
  }

  /// As RankGroup::tellOfWait.
  void tellOfWait(const std::string &what, std::chrono::milliseconds waited,
                  std::chrono::milliseconds timeout) {
    inquiries.tellOfWait(what, waited, timeout);
  }

  /// Asks all others for a sign of life, and says who gives none.
  std::vector<uint32_t> findSilent() { return inquiries.findSilent(); }

  /// Ends the listening thread: from now on nothing that `onFailure` was given is called by it.
  void stop() { listener.stop(); }

  /// What breaks the data connections. Called once, at once if the job has failed.
  void onFailure(std::function<void()> action) { news.onFailure(std::move(action)); }

private:
  Control(std::vector<Card> cards, uint32_t rank, Options options);
  bool take(uint32_t peer, Frame frame, std::string text) override;
  void lost(uint32_t peer) override;

  const Roster roster;
  const Options options;
  Wires wires;
  News news;
  WaitWatch waits;
  Inquiries inquiries;
  Exchanges exchanges;
  Listener listener;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_CONTROL_H
