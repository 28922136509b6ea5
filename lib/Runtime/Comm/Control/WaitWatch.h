//===- WaitWatch.h - Whom this rank waits for, and what is said of it -------------------===//
//
// A rank that waits knows for whom, but not why: the other may work, wait for a third, or not be there any
// more. So the listening thread asks it when a wait takes long. Who waits itself will tell of its own wait;
// of the others there is a line on stderr.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_WAITWATCH_H
#define DS_LIB_RUNTIME_COMM_CONTROL_WAITWATCH_H

#include "News.h"
#include "Roster.h"
#include "Wires.h"

namespace ds::rt {

/// One wait of a channel of this rank for others.
struct Wait {
  static constexpr uint32_t kNobody = UINT32_MAX;
  Deadline since, until;
  uint64_t sequence = 0; ///< of the collective, and what it is called; texts stay valid
  const char *kind = "", *name = "";
  const std::atomic<uint32_t> *peer = nullptr; ///< for whom; kNobody: for one that others will tell of
  bool isTold = false;                         ///< that it takes long
};

/// "collective 6 of channel 1 (all_reduce norm)"
std::string spellCollective(uint64_t sequence, uint32_t channel, const char *kind, const char *name);

class WaitWatch {
public:
  /// All outlive the watch.
  WaitWatch(const Roster &roster, Wires &wires, News &news) : roster(roster), wires(wires), news(news) {}

  /// Says for what `channel` of this rank waits; nothing when it no longer does. From any thread.
  void note(uint32_t channel, std::optional<Wait> wait);
  /// Until the first wait of this rank is over; 0 if it does not wait.
  std::chrono::milliseconds timeLeft();

  /// How often waits are looked after.
  int lookMs() const { return everyMs; }
  /// Asks about waits that take long, and says what has become of that. Of the listening thread.
  void look();

private:
  void ask();
  void tell();

  const Roster &roster;
  Wires &wires;
  News &news;
  std::mutex mutex;                       ///< guards `waits`
  std::vector<std::optional<Wait>> waits; ///< by channel, while it waits
  std::atomic<int> everyMs{1000};
  /// What a peer has been asked about one of `waits`.
  struct Inquiry {
    uint32_t channel, peer;
    Deadline since, answerBy;
  };
  std::optional<Inquiry> inquiry; ///< of the listening thread
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_WAITWATCH_H
