//===- Group.cpp - Brings the ranks of a job together ----------------------------===//
//
// Cards, then control connections, then the data plane of each channel, whose addresses go over the control
// connections. Threads that start here take no signals: those are for the main thread.
//
//===---------------------------------------------------------------------------===//
#include "Collectives.h"
#include "Control/Control.h"
#include "Control/Limits.h"
#include "Control/Stacks.h"
#include "LocalTransport.h"
#include "Plugins.h"
#include "Rendezvous.h"
#include "Solo.h"

#include "ds/Runtime/Process/EndSignals.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <thread>
#include <unistd.h>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;

/// How long beyond the time-out a rank may go on once the job has failed, as the local launcher allows.
constexpr milliseconds kLastWords(2000);

/// Blocks all signals but the one that asks for stacks on this thread, and so on those that it starts, while
/// it lives.
class WithoutSignals {
public:
  WithoutSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigdelset(&all, stackSignal());
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};

/// Gloo writes to sockets whose other end may be gone. Whoever has asked for SIGPIPE keeps it.
void ignoreBrokenPipes() {
  struct sigaction action = {};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
}

class ConnectedGroup : public RankGroup {
public:
  ConnectedGroup(const RankIdentity &place, milliseconds timeout, std::unique_ptr<Control> control)
      : place(place), timeout(timeout), control(std::move(control)) {}
  ~ConnectedGroup() override;

  uint32_t rank() const override { return place.rank; }
  uint32_t world() const override { return place.world; }
  const std::string &host(uint32_t rank) const override { return control->host(rank); }
  std::string transport() const override { return local ? "memory" : "gloo"; }
  Communicator &channel(uint32_t index) override { return *channels.at(index)->all; }
  Communicator &subset(uint32_t index, const std::vector<uint32_t> &members) override;
  Result<std::vector<std::string>> exchange(const std::string &mine, const char *what) override {
    return control->exchange(mine, what, timeout);
  }
  void abort(const std::string &reason) override {
    control->fail(fmt::format("{} gave up: {}", control->name({place.rank}), reason));
  }
  std::string failure() override { return control->failure(); }
  void tellOfWait(const std::string &what, milliseconds waited, milliseconds timeout) override {
    control->tellOfWait(what, waited, timeout);
  }
  void showStacks() override { control->showStacks(control->findSilent()); }
  Status finish() override;

  /// Connects `count` channels: memory to memory where all ranks can read each other's, else by Gloo, on
  /// connections between those who left `cards`, made at `reception`.
  Status addChannels(uint32_t count, const std::vector<Card> &cards, Reception &reception, Deadline deadline);

private:
  /// A channel, and who does something together on it.
  struct Members {
    Channel channel;
    std::map<std::vector<uint32_t>, std::unique_ptr<Communicator>> subsets = {};
    Communicator *all = nullptr; ///< one of them
  };

  Result<bool> addLocalChannel(Deadline deadline);
  Status addGlooChannel(const GlooApi &gloo, const std::vector<Card> &cards, Reception &reception,
                        Deadline deadline);
  Status connectToAll(SocketTransport &transport, CallPurpose purpose, const std::vector<Card> &cards,
                      Reception &reception, Deadline deadline);
  Error notConnected(const std::vector<uint32_t> &peers, const std::string &why);
  Transport &use(std::unique_ptr<Transport> transport);

  const RankIdentity place;
  const milliseconds timeout;
  const std::unique_ptr<Control> control;
  std::vector<std::unique_ptr<Members>> channels;
  bool local = false; ///< memory to memory, for all channels
  bool finished = false;
};

ConnectedGroup::~ConnectedGroup() {
  if (!finished)
    control->fail(fmt::format("{} left before the end of the run", control->name({place.rank})));
  control->stop(); // it may be breaking the transports
}

Status ConnectedGroup::finish() {
  Status status = control->finish(timeout);
  finished = static_cast<bool>(status);
  if (finished && place.kind == RankIdentity::Kind::Pmix)
    (*openPmix())->leave();
  return status;
}

Communicator &ConnectedGroup::subset(uint32_t index, const std::vector<uint32_t> &members) {
  Members &on = *channels.at(index);
  std::unique_ptr<Communicator> &subset = on.subsets[members];
  if (!subset && members.size() == 1)
    subset = makeSoloCommunicator();
  if (!subset)
    subset = std::make_unique<TransportCommunicator>(on.channel, members);
  return *subset;
}

Result<bool> ConnectedGroup::addLocalChannel(Deadline deadline) {
  std::unique_ptr<LocalTransport> transport = LocalTransport::create(place.rank, place.world);
  const milliseconds left(remainingMs(deadline));
  Result<std::vector<std::string>> addresses =
      control->exchange(transport ? transport->address() : "", "addresses in this machine", left);
  if (!addresses)
    return addresses.error();
  bool reached = transport != nullptr;
  for (uint32_t peer = 0; peer < place.world; ++peer)
    reached = reached && (peer == place.rank || transport->connect(peer, (*addresses)[peer]));
  Result<std::vector<std::string>> answers =
      control->exchange(reached ? "yes" : "no", "ranks in reach", left);
  if (!answers)
    return answers.error();
  if (std::count(answers->begin(), answers->end(), "yes") != place.world)
    return false;
  use(std::move(transport));
  return true;
}

Status ConnectedGroup::addGlooChannel(const GlooApi &gloo, const std::vector<Card> &cards,
                                      Reception &reception, Deadline deadline) {
  std::string error;
  std::unique_ptr<SocketTransport> made(gloo.create({place.rank, place.world}, error));
  if (!made) {
    control->fail(fmt::format("{} cannot open Gloo's TCP transport: {}", control->name({place.rank}), error));
    return Error{ExitCode::Peer, control->failure(), ""};
  }
  SocketTransport &transport = *made;
  const CallPurpose purpose = kDataCall + static_cast<CallPurpose>(channels.size());
  use(std::move(made));
  return connectToAll(transport, purpose, cards, reception, deadline);
}

/// Calls the ranks below, then takes the calls of those above: nobody waits for a turn.
Status ConnectedGroup::connectToAll(SocketTransport &transport, CallPurpose purpose,
                                    const std::vector<Card> &cards, Reception &reception, Deadline deadline) {
  const auto give = [&](uint32_t peer, Socket socket) -> Status {
    if (transport.connect(peer, socket.release()))
      return {};
    return notConnected({peer}, transport.reason());
  };
  for (uint32_t peer = 0; peer < place.rank; ++peer) {
    Result<Socket> socket = callRank(cards, place.rank, peer, purpose, deadline);
    if (!socket)
      return notConnected({peer}, socket.error().message);
    if (Status given = give(peer, std::move(*socket)); !given)
      return given;
  }
  std::vector<uint32_t> higher(place.world - place.rank - 1);
  std::iota(higher.begin(), higher.end(), place.rank + 1);
  const std::vector<uint32_t> missing =
      reception.await(higher, purpose, deadline, [this] { return control->failed(); });
  if (!missing.empty())
    return notConnected(missing, "no call has come in time");
  for (const uint32_t peer : higher)
    if (Status given = give(peer, reception.take(peer, purpose)); !given)
      return given;
  return {};
}

/// That data cannot travel to `peers`; or why the job has failed, if anybody knows better.
Error ConnectedGroup::notConnected(const std::vector<uint32_t> &peers, const std::string &why) {
  if (control->failure(milliseconds(500)).empty())
    control->fail(fmt::format("{} did not connect to {} for data: {}", control->name(peers),
                              control->name({place.rank}), why));
  return Error{ExitCode::Peer, control->failure(), ""};
}

/// Makes `transport` the next channel; a failure of the job closes it.
Transport &ConnectedGroup::use(std::unique_ptr<Transport> transport) {
  Transport &used = *transport;
  const uint32_t index = static_cast<uint32_t>(channels.size());
  channels.emplace_back(new Members{{*control, std::move(transport), place.rank, index, timeout}});
  std::vector<uint32_t> everybody(place.world);
  std::iota(everybody.begin(), everybody.end(), 0);
  channels.back()->all = &subset(index, everybody);
  control->onFailure([&used] { used.close(); });
  return used;
}

Status ConnectedGroup::addChannels(uint32_t count, const std::vector<Card> &cards, Reception &reception,
                                   Deadline deadline) {
  const char *transport = std::getenv("DS_TRANSPORT");
  local = place.oneHost && std::string(transport ? transport : "") != "gloo";
  while (local && channels.size() < count) {
    Result<bool> added = addLocalChannel(deadline);
    if (!added)
      return added.error();
    local = *added;
  }
  if (channels.size() == count)
    return {};
  const uint64_t more = descriptorsOfRank(place.world, count - static_cast<uint32_t>(channels.size()), true);
  if (Status status = reserveDescriptors(more, fmt::format("rank {} of {}", place.rank, place.world));
      !status) {
    abort(status.error().message);
    return status;
  }
  const Result<const GlooApi *> gloo = openGloo();
  if (!gloo)
    abort(gloo.error().message);
  while (gloo && channels.size() < count)
    if (Status status = addGlooChannel(**gloo, cards, reception, deadline); !status)
      return status;
  return gloo ? Status() : Status(gloo.error());
}

/// Where this rank listens.
Result<std::string> ownAddress(const RankIdentity &place) {
  if (const char *interface = std::getenv("DS_INTERFACE"); interface && *interface)
    return interfaceAddress(interface);
  return place.oneHost ? "127.0.0.1" : hostName();
}

Result<std::vector<Card>> meetUnderPmix(const RankIdentity &place, const Card &mine, Deadline deadline) {
  const Deadline begin = Clock::now();
  const PmixApi &pmix = **openPmix();
  std::string text;
  if (!pmix.publish(spellCard(mine), text))
    return Error{ExitCode::Peer, "PMIx: " + text, ""};
  std::vector<std::optional<Card>> cards(place.world);
  while (true) {
    uint32_t found = 0;
    for (uint32_t rank = 0; rank < place.world; ++rank) {
      if (!cards[rank] && pmix.lookUp(rank, text))
        cards[rank] = parseCard(text);
      found += cards[rank].has_value();
    }
    if (found == place.world)
      break;
    if (Clock::now() >= deadline)
      return missingRanks(cards, std::chrono::round<milliseconds>(deadline - begin));
    std::this_thread::sleep_for(milliseconds(2)); // a server may answer "not found" at once
  }
  std::vector<Card> all;
  for (std::optional<Card> &card : cards)
    all.push_back(std::move(*card));
  return all;
}

/// The launcher's note of a rank that will not come, as long as this rank looks for it.
std::function<std::string()> absenceFor(const RankIdentity &place) {
  if (place.kind != RankIdentity::Kind::Directory)
    return {}; // other launchers end all ranks with one
  return [place] { return toldAbsence(place, ::geteuid()); };
}

/// Meets the others, and connects to them.
Result<std::unique_ptr<RankGroup>> join(const RankIdentity &place, const ConnectOptions &options) {
  const Deadline deadline = Clock::now() + std::min(options.timeout, kRendezvousLimit);
  const Result<std::string> address = ownAddress(place);
  if (!address)
    return address.error();
  Card card{hostName(), *address, 0, randomHex()};
  Result<Socket> listener = listenOn(*address, card.port);
  if (!listener)
    return listener.error();
  const Result<std::vector<Card>> cards = place.kind == RankIdentity::Kind::Pmix
                                              ? meetUnderPmix(place, card, deadline)
                                              : meetInDirectory(place, card, deadline);
  if (!cards)
    return cards.error();
  Reception reception(*cards, place.rank, std::move(*listener)); // nobody calls once all are connected
  Result<std::unique_ptr<Control>> control =
      Control::connect(*cards, place.rank, reception, deadline,
                       {.failureLimit = options.timeout + kLastWords, .absence = absenceFor(place)});
  if (!control)
    return control.error();
  auto group = std::make_unique<ConnectedGroup>(place, options.timeout, std::move(*control));
  if (Status status = group->addChannels(options.channels, *cards, reception, deadline); !status)
    return status.error();
  return std::unique_ptr<RankGroup>(std::move(group));
}

} // namespace

Result<std::unique_ptr<RankGroup>> connect(const RankIdentity &place, const ConnectOptions &options) {
  releaseEndSignals();
  if (place.world == 1)
    return makeSoloGroup(place, options.channels);
  prepareStacks();
  const WithoutSignals quiet;
  ignoreBrokenPipes();
  const std::string who = fmt::format("rank {} of {}", place.rank, place.world);
  if (Status status = reserveDescriptors(descriptorsOfRank(place.world, options.channels, false), who);
      !status)
    return status.error();
  return join(place, options);
}

} // namespace ds::rt
