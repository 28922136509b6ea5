//===- ControlConnect.cpp - How control connections come about -------------------===//
//
// Rank r calls all ranks below it and is called by those above. The operating system takes connections for a
// process that listens, so the calls come first and nobody waits for a turn.
//
//===---------------------------------------------------------------------------===//
#include "Control.h"

#include "Limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace ds::rt {
namespace {

/// Time for late callers to come, and how often those who wait look at what the launcher tells.
constexpr std::chrono::milliseconds kLateTime(1000), kLookAgain(50);

} // namespace

Result<std::unique_ptr<Control>> Control::connect(std::vector<Card> cards, uint32_t rank,
                                                  Reception &reception, Deadline deadline, Options options) {
  std::unique_ptr<Control> control(new Control(std::move(cards), rank, std::move(options)));
  if (Status joined = control->join(reception, deadline); !joined) {
    control->fail(joined.error().message);
    control->tellLateCallers(reception);
    return joined.error();
  }
  if (Status started = control->listen(); !started) {
    control->fail(fmt::format("{} gave up: {}", control->name({rank}), started.error().message));
    return started.error();
  }
  return control;
}

/// Starts the thread that listens.
Status Control::listen() {
  if (!wake)
    return Error{ExitCode::Io, fmt::format("no event for the thread that listens: {}", std::strerror(errno)),
                 "raise the limit with `ulimit -n`"};
  try {
    listener = std::thread([this] { listenUntilStopped(); });
  } catch (const std::system_error &error) {
    return Error{ExitCode::Io, fmt::format("cannot start a thread: {}", error.code().message()),
                 processHint()};
  }
  return {};
}

/// A rank that cannot be reached may have given up for another's sake: whoever knows why has told its peers.
Status Control::join(Reception &reception, Deadline deadline) {
  Status joined = callLower(deadline);
  if (joined)
    joined = answerHigher(reception, deadline);
  else
    hearNews(kNewsTime);
  if (failed())
    return Error{ExitCode::Peer, failure() + "; noticed while the ranks connected", ""};
  return joined;
}

/// Hears what the peers that are connected have to say, until one tells of a failure or the launcher does.
void Control::hearNews(std::chrono::milliseconds patience) {
  const Deadline until = Clock::now() + patience;
  while (!failed() && remainingMs(until) > 0 && !isAbsenceTold())
    hear(/*other=*/-1, std::min(remainingMs(until), static_cast<int>(kLookAgain.count())));
}

/// Whether the launcher has told of a rank that will not come; that is a failure.
bool Control::isAbsenceTold() {
  const std::string absence = options.absence ? options.absence() : std::string();
  if (!absence.empty())
    fail(absence);
  return !absence.empty();
}

/// The ranks above that have not called yet.
std::vector<uint32_t> Control::missingCallers() const {
  std::vector<uint32_t> ranks;
  for (uint32_t peer = rank + 1; peer < world(); ++peer)
    if (!peers[peer])
      ranks.push_back(peer);
  return ranks;
}

/// Makes peers of the ranks that have called.
void Control::takeCalls(Reception &reception) {
  reception.work();
  for (const uint32_t caller : missingCallers())
    if (Socket socket = reception.take(caller, kNewsCall)) {
      peers[caller] = std::make_unique<Peer>();
      peers[caller]->socket = std::move(socket);
    }
}

/// Tells ranks that call after this one has given up why, lest they take its end for the reason.
void Control::tellLateCallers(Reception &reception) {
  const Deadline until = Clock::now() + kLateTime;
  for (std::vector<uint32_t> missing = missingCallers(); !missing.empty() && remainingMs(until) > 0;
       missing = missingCallers()) {
    reception.await({missing.front()}, kNewsCall, std::min(until, Clock::now() + kLookAgain),
                    [] { return false; });
    takeCalls(reception);
    for (const uint32_t caller : missing)
      if (peers[caller])
        write(caller, Frame::Abort, failure(), until);
  }
}

/// Calls them all, even after one could not be reached: the others must be told.
Status Control::callLower(Deadline deadline) {
  Status first;
  for (uint32_t peer = 0; peer < rank; ++peer) {
    Result<Socket> socket = callRank(cards, rank, peer, kNewsCall, deadline);
    if (socket) {
      peers[peer] = std::make_unique<Peer>();
      peers[peer]->socket = std::move(*socket);
    } else if (first) {
      first = Error{ExitCode::Peer,
                    fmt::format("{} came to the rendezvous but takes no connection: {}", name({peer}),
                                socket.error().message),
                    ""};
    }
  }
  return first;
}

/// Waits for the calls of the ranks above, and hears meanwhile what those that are connected have to say, and
/// the launcher: a rank that has left its card and died calls nobody, and holds no connection to be missed
/// by.
Status Control::answerHigher(Reception &reception, Deadline deadline) {
  const Deadline begin = Clock::now();
  for (;;) {
    takeCalls(reception);
    if (missingCallers().empty() || remainingMs(deadline) == 0 || isAbsenceTold())
      break;
    hear(reception.descriptor(), std::min(remainingMs(deadline), static_cast<int>(kLookAgain.count())));
    if (failed())
      break;
  }
  if (failed() || missingCallers().empty())
    return {};
  const auto waited = std::chrono::round<std::chrono::milliseconds>(deadline - begin);
  return Error{ExitCode::Peer,
               fmt::format("{} came to the rendezvous but did not connect within {}", name(missingCallers()),
                           spellSeconds(waited)),
               ""};
}

} // namespace ds::rt
