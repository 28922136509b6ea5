//===- Control.h - Connections that carry news, not data -------------------------===//
//
// Each pair of ranks keeps one TCP connection of its own beside the data plane. Small blobs travel on it
// before the data plane exists, and the news of a failure while it does: one thread listens to all peers,
// sees at once when one is gone, and breaks this rank's data connections, so that no wait outlasts the first
// that knows. The first reason wins and is passed on to all before anything is closed: whoever hears of a
// second failure that follows from the first has heard of the first before.
//
// Who waits in vain may wait for one that waits itself. Before it blames anyone it asks, and lets those speak
// first who answer that they wait, too. Long before, the listening thread asks likewise, and says for whom
// this rank has been waiting.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_CONTROL_H
#define DS_LIB_RUNTIME_COMM_CONTROL_CONTROL_H

#include "Card.h"
#include "Reception.h"
#include "Socket.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <thread>
#include <vector>

namespace ds::rt {

/// "collective 6 of channel 1 (all_reduce norm)"
std::string spellCollective(uint64_t sequence, uint32_t channel, const char *kind, const char *name);

/// All that ranks tell each other beside collectives.
/// Size: calls, frames, waits and failures are still one class, because all end with the first failure
/// that any hears of.
class Control {
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
  ~Control();

  uint32_t world() const { return static_cast<uint32_t>(cards.size()); }
  const std::string &host(uint32_t rank) const { return cards[rank].host; }

  /// "rank 2 on host alpha"; several as spellRanks has them.
  std::string name(const std::vector<uint32_t> &ranks) const;

  /// Every rank's blob, in rank order.
  Result<std::vector<std::string>> exchange(const std::string &mine, const char *what,
                                            std::chrono::milliseconds timeout);

  /// As exchange; after it the end of any connection is no failure.
  Status finish(std::chrono::milliseconds timeout);

  /// Records that the job has failed, unless it has already: tells all ranks, then calls what `onFailure` was
  /// given. From any thread; `failure` has a reason when it returns.
  void fail(const std::string &reason);

  /// The reason; waits up to `patience` for it. Empty if there is none.
  std::string failure(std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  bool failed() const { return hasFailed.load(std::memory_order_acquire); }

  /// One wait of a channel of this rank for others.
  struct Wait {
    Deadline since, until;
    uint64_t sequence = 0; ///< of the collective, and what it is called; texts stay valid
    const char *kind = "", *name = "";
    const std::atomic<uint32_t> *peer = nullptr; ///< for whom; kNobody: for one that others will tell of
    bool isTold = false;                         ///< that it takes long
  };
  static constexpr uint32_t kNobody = UINT32_MAX;

  /// Says for what `channel` of this rank waits; nothing when it no longer does.
  void noteWait(uint32_t channel, std::optional<Wait> wait);

  /// Has the ranks write down their stacks, in a job of many these ones and this one alone, and says which of
  /// `blamed` have not answered when they were asked last.
  void showStacks(const std::vector<uint32_t> &blamed);

  /// Asks ranks for a sign of life: those that give none within half a second have none in Peer::left.
  void ask(const std::vector<uint32_t> &ranks);

  /// Asks the ranks that this one has waited for in vain. Those that wait themselves are heard out: they know
  /// better who is missing, and tell all when their own time is over; `patience` is what that may take
  /// beyond it. Returns the others; or all, if there are none and no news came.
  std::vector<uint32_t> hearOut(const std::vector<uint32_t> &missing, std::chrono::milliseconds patience);

  /// As RankGroup::tellOfWait.
  void tellOfWait(const std::string &what, std::chrono::milliseconds waited,
                  std::chrono::milliseconds timeout);

  /// Asks all others for a sign of life, and says who gives none.
  std::vector<uint32_t> findSilent();

  /// Ends the listening thread: from now on nothing that `onFailure` was given is called by it.
  void stop();

  /// What breaks the data connections. Called once, at once if the job has failed.
  void onFailure(std::function<void()> action);

private:
  /// Time for the news of a failure to be taken by a peer.
  static constexpr std::chrono::milliseconds kNewsTime{200};

  enum class Frame : uint32_t { Blob = 1, Abort, Finish, Ask, Answer, Stacks };
  struct Peer {
    Socket socket;
    std::timed_mutex writing;      ///< keeps frames whole
    std::string input;             ///< received and not yet understood; of the listening thread
    std::deque<std::string> blobs; ///< guarded by Control::mutex
    bool finished = false;         ///< guarded by Control::mutex
    std::optional<std::chrono::milliseconds>
        left;          ///< its answer: how long it waits yet; guarded by Control::mutex
    bool gone = false; ///< of the listening thread
  };

  Control(std::vector<Card> cards, uint32_t rank, Options options);
  Status join(Reception &reception, Deadline deadline);
  Status listen();
  Status callLower(Deadline deadline);
  Status answerHigher(Reception &reception, Deadline deadline);
  void hearNews(std::chrono::milliseconds patience);
  bool isAbsenceTold();
  void tellLateCallers(Reception &reception);
  std::vector<uint32_t> missingCallers() const;
  void takeCalls(Reception &reception);
  bool write(uint32_t peer, Frame frame, const std::string &text, Deadline deadline);
  bool hear(int other, int limitMs);
  void read(uint32_t peer);
  bool parse(uint32_t peer);
  bool take(uint32_t peer, Frame frame, std::string text);
  std::chrono::milliseconds timeLeft();
  void lost(uint32_t peer);
  void listenUntilStopped();
  void lookAfterWaits();
  void askAboutWaits();
  void tellOfWait();
  bool awaitBlob(uint32_t peer, const char *what, std::chrono::milliseconds timeout, Deadline deadline,
                 bool &told);
  void writeStacks();
  void endIfTooLate();
  Status sendToAll(Frame frame, const std::string &text, const char *what, Deadline deadline);
  Error error(const char *what);

  const std::vector<Card> cards;
  const uint32_t rank;
  const Options options;
  std::vector<std::unique_ptr<Peer>> peers; ///< by rank; null for this one
  std::mutex mutex;                         ///< guards what says so, reason and actions
  std::condition_variable changed;          ///< blobs, finished or reason
  std::string reason;
  std::vector<std::function<void()>> actions;
  std::vector<std::optional<Wait>> waits; ///< by channel, while it waits; guarded by mutex
  std::atomic<int> lookMs{1000};          ///< how often waits are looked after
  Deadline failedSince{};                 ///< of the listening thread, once the job has failed
  /// What the listening thread has asked a peer about one of `waits`.
  struct Inquiry {
    uint32_t channel, peer;
    Deadline since, answerBy;
  };
  std::optional<Inquiry> inquiry;     ///< of the listening thread
  std::atomic<bool> hasFailed{false}; ///< set once all ranks have been told
  bool failing = false;               ///< guarded by mutex: a reason is set
  std::vector<pollfd> polled;         ///< of the listening thread; before it starts, of the one that connects
  std::vector<uint32_t> polledRanks;
  Socket wake; ///< eventfd that ends the listening thread
  std::thread listener;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_CONTROL_H
