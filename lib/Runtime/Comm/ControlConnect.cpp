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

/// Time for a stranger to say who it is, and for late callers to come. Where there are many more ranks than
/// processors, a rank may have to wait for its turn between calling and saying so.
constexpr std::chrono::milliseconds kHelloTime(2000), kHelloTimePerRank(20), kLateTime(1000);

/// What a caller says first. It knows both secrets from the rendezvous of this very job.
struct Hello {
  char secretOfCaller[32], secretOfCalled[32];
  uint32_t caller;
};

Hello makeHello(const Card &caller, const Card &called, uint32_t rank) {
  Hello hello{};
  std::memcpy(hello.secretOfCaller, caller.secret.data(), sizeof hello.secretOfCaller);
  std::memcpy(hello.secretOfCalled, called.secret.data(), sizeof hello.secretOfCalled);
  hello.caller = rank;
  return hello;
}

} // namespace

Result<std::unique_ptr<Control>> Control::connect(std::vector<Card> cards, uint32_t rank,
                                                  const Socket &listener, Deadline deadline,
                                                  std::optional<std::chrono::milliseconds> failureLimit) {
  std::unique_ptr<Control> control(new Control(std::move(cards), rank));
  control->failureLimit = failureLimit;
  if (Status joined = control->join(listener, deadline); !joined) {
    control->fail(joined.error().message);
    control->tellLateCallers(listener);
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
Status Control::join(const Socket &listener, Deadline deadline) {
  Status joined = callLower(deadline);
  if (joined)
    joined = answerHigher(listener, deadline);
  else
    hearNews(kNewsTime);
  if (failed())
    return Error{ExitCode::Peer, failure() + "; noticed while the ranks connected", ""};
  return joined;
}

/// Hears what the peers that are connected have to say, until one tells of a failure.
void Control::hearNews(std::chrono::milliseconds patience) {
  const Deadline until = Clock::now() + patience;
  while (!failed() && remainingMs(until) > 0)
    hear(/*other=*/-1, remainingMs(until));
}

/// The ranks above that have not called yet.
std::vector<uint32_t> Control::missingCallers() const {
  std::vector<uint32_t> ranks;
  for (uint32_t peer = rank + 1; peer < world(); ++peer)
    if (!peers[peer])
      ranks.push_back(peer);
  return ranks;
}

/// Tells ranks that call after this one has given up why, lest they take its end for the reason.
void Control::tellLateCallers(const Socket &listener) {
  const Deadline until = Clock::now() + kLateTime;
  while (!missingCallers().empty() && remainingMs(until) > 0) {
    Socket socket = acceptFrom(listener, until);
    if (const std::optional<uint32_t> caller = socket ? admit(std::move(socket), until) : std::nullopt)
      write(*caller, Frame::Abort, failure(), until);
  }
}

/// Calls them all, even after one could not be reached: the others must be told.
Status Control::callLower(Deadline deadline) {
  Status first;
  for (uint32_t peer = 0; peer < rank; ++peer) {
    Result<Socket> socket = connectTo(cards[peer].address, cards[peer].port, deadline);
    const Hello hello = makeHello(cards[rank], cards[peer], rank);
    if (socket && sendAll(*socket, &hello, sizeof hello, deadline)) {
      peers[peer] = std::make_unique<Peer>();
      peers[peer]->socket = std::move(*socket);
    } else if (first) {
      first = Error{ExitCode::Peer,
                    fmt::format("{} came to the rendezvous but takes no connection{}", name({peer}),
                                socket ? "" : ": " + socket.error().message),
                    ""};
    }
  }
  return first;
}

/// Waits for the calls of the ranks above, and hears meanwhile what those that are connected have to say.
Status Control::answerHigher(const Socket &listener, Deadline deadline) {
  const Deadline begin = Clock::now();
  while (!missingCallers().empty() && !failed()) {
    if (!hear(listener.get(), remainingMs(deadline))) {
      if (remainingMs(deadline) == 0)
        break;
      continue;
    }
    if (Socket socket = acceptFrom(listener, Clock::now()))
      admit(std::move(socket), deadline);
  }
  if (failed() || missingCallers().empty())
    return {};
  const auto waited = std::chrono::round<std::chrono::milliseconds>(deadline - begin);
  return Error{ExitCode::Peer,
               fmt::format("{} came to the rendezvous but did not connect within {}", name(missingCallers()),
                           spellSeconds(waited)),
               ""};
}

/// Takes a connection from a rank of this job that is not connected yet, and says which.
std::optional<uint32_t> Control::admit(Socket socket, Deadline deadline) {
  Hello hello;
  if (!receiveAll(socket, &hello, sizeof hello,
                  std::min(deadline, Clock::now() + kHelloTime + world() * kHelloTimePerRank)))
    return std::nullopt;
  if (hello.caller <= rank || hello.caller >= world() || peers[hello.caller])
    return std::nullopt;
  const Hello expected = makeHello(cards[hello.caller], cards[rank], hello.caller);
  if (std::memcmp(&hello, &expected, sizeof hello) != 0)
    return std::nullopt;
  peers[hello.caller] = std::make_unique<Peer>();
  peers[hello.caller]->socket = std::move(socket);
  return hello.caller;
}

} // namespace ds::rt
