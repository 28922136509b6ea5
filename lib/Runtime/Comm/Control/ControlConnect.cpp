//===- ControlConnect.cpp - How control connections come about -------------------===//
//
// Rank r calls all ranks below it and is called by those above. The operating system takes connections for a
// process that listens, so the calls come first and nobody waits for a turn.
//
//===---------------------------------------------------------------------------===//
#include "Control.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {
namespace {

/// Time for late callers to come, and how often those who wait look at what the launcher tells.
constexpr std::chrono::milliseconds kLateTime(1000), kLookAgain(50);

/// Connects a rank to all others.
class Connector {
public:
  /// What it connects, and where others call; all outlive it.
  struct Ends {
    const Roster &roster;
    Wires &wires;
    News &news;
    Hearer &hearer;
    Reception &reception;
    const std::function<std::string()> &absence; ///< see Connector::Options
  };

  explicit Connector(const Ends &ends) : ends(ends) {}

  Status join(Deadline deadline);
  void tellLateCallers();

private:
  void hearNews(std::chrono::milliseconds patience);
  bool hear(int other, Deadline until);
  bool isAbsenceTold();
  std::vector<uint32_t> missingCallers() const;
  void takeCalls();
  Status callLower(Deadline deadline);
  Status answerHigher(Deadline deadline);

  const Ends ends;
};

/// A rank that cannot be reached may have given up for another's sake: whoever knows why has told its peers.
Status Connector::join(Deadline deadline) {
  Status joined = callLower(deadline);
  if (joined)
    joined = answerHigher(deadline);
  else
    hearNews(kNewsTime);
  if (ends.news.failed())
    return Error{ExitCode::Peer, ends.news.failure() + "; noticed while the ranks connected", ""};
  return joined;
}

/// Hears what the peers that are connected have to say, until one tells of a failure or the launcher does.
void Connector::hearNews(std::chrono::milliseconds patience) {
  const Deadline until = Clock::now() + patience;
  while (!ends.news.failed() && remainingMs(until) > 0 && !isAbsenceTold())
    hear(/*other=*/-1, until);
}

/// Hears peers, and whether there is something on `other`, for as long as the launcher need not be looked at.
bool Connector::hear(int other, Deadline until) {
  return ends.wires.hear(other, std::min(remainingMs(until), static_cast<int>(kLookAgain.count())),
                         ends.hearer);
}

/// Whether the launcher has told of a rank that will not come; that is a failure.
bool Connector::isAbsenceTold() {
  const std::string absence = ends.absence ? ends.absence() : std::string();
  if (!absence.empty())
    ends.news.fail(absence);
  return !absence.empty();
}

/// The ranks above that have not called yet.
std::vector<uint32_t> Connector::missingCallers() const {
  std::vector<uint32_t> ranks;
  for (uint32_t peer = ends.roster.rank + 1; peer < ends.roster.world(); ++peer)
    if (!ends.wires.has(peer))
      ranks.push_back(peer);
  return ranks;
}

/// Makes peers of the ranks that have called.
void Connector::takeCalls() {
  ends.reception.work();
  for (const uint32_t caller : missingCallers())
    if (Socket socket = ends.reception.take(caller, kNewsCall))
      ends.wires.add(caller, std::move(socket));
}

/// Tells ranks that call after this one has given up why, lest they take its end for the reason.
void Connector::tellLateCallers() {
  const Deadline until = Clock::now() + kLateTime;
  for (std::vector<uint32_t> missing = missingCallers(); !missing.empty() && remainingMs(until) > 0;
       missing = missingCallers()) {
    ends.reception.await({missing.front()}, kNewsCall, std::min(until, Clock::now() + kLookAgain),
                         [] { return false; });
    takeCalls();
    for (const uint32_t caller : missing)
      if (ends.wires.has(caller))
        ends.wires.write(caller, Frame::Abort, ends.news.failure(), until);
  }
}

/// Calls them all, even after one could not be reached: the others must be told.
Status Connector::callLower(Deadline deadline) {
  Status first;
  for (uint32_t peer = 0; peer < ends.roster.rank; ++peer) {
    Result<Socket> socket = callRank(ends.roster.cards, ends.roster.rank, peer, kNewsCall, deadline);
    if (socket) {
      ends.wires.add(peer, std::move(*socket));
    } else if (first) {
      first = Error{ExitCode::Peer,
                    fmt::format("{} came to the rendezvous but takes no connection: {}",
                                ends.roster.name({peer}), socket.error().message),
                    ""};
    }
  }
  return first;
}

/// Waits for the calls of the ranks above, and hears meanwhile what those that are connected have to say, and
/// the launcher: a rank that has left its card and died calls nobody, and holds no connection to be missed
/// by.
Status Connector::answerHigher(Deadline deadline) {
  const Deadline begin = Clock::now();
  for (;;) {
    takeCalls();
    if (missingCallers().empty() || remainingMs(deadline) == 0 || isAbsenceTold())
      break;
    hear(ends.reception.descriptor(), deadline);
    if (ends.news.failed())
      break;
  }
  if (ends.news.failed() || missingCallers().empty())
    return {};
  const auto waited = std::chrono::round<std::chrono::milliseconds>(deadline - begin);
  return Error{ExitCode::Peer,
               fmt::format("{} came to the rendezvous but did not connect within {}",
                           ends.roster.name(missingCallers()), spellSeconds(waited)),
               ""};
}

} // namespace

Result<std::unique_ptr<Control>> Control::connect(std::vector<Card> cards, uint32_t rank,
                                                  Reception &reception, Deadline deadline, Options options) {
  std::unique_ptr<Control> control(new Control(std::move(cards), rank, std::move(options)));
  Connector connector(
      {control->roster, control->wires, control->news, *control, reception, control->options.absence});
  if (Status joined = connector.join(deadline); !joined) {
    control->fail(joined.error().message);
    connector.tellLateCallers();
    return joined.error();
  }
  if (Status started = control->listener.start(); !started) {
    control->fail(fmt::format("{} gave up: {}", control->name({rank}), started.error().message));
    return started.error();
  }
  return control;
}

} // namespace ds::rt
