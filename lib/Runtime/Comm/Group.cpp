//===- Group.cpp - Brings the ranks of a job together ----------------------------===//
//
// Cards, then control connections, then the data plane of each channel, whose addresses go over the control
// connections. Threads that start here take no signals: those are for the main thread.
//
//===---------------------------------------------------------------------------===//
#include "ChannelSet.h"
#include "Control/Control.h"
#include "Control/Limits.h"
#include "Control/Stacks.h"
#include "Plugins.h"
#include "Rendezvous.h"
#include "Solo.h"

#include "ds/Runtime/Process/EndSignals.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>
#include <unistd.h>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;

/// How long beyond the time-out a rank may go on once the job has failed, as the local launcher allows.
constexpr milliseconds kLastWords(2000);
/// Channels that a rank asks for at most; what says more is no rank of this build.
constexpr int kMostAsked = 64;

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
  ConnectedGroup(const RankIdentity &place, milliseconds timeout, std::vector<Card> cards,
                 std::unique_ptr<Reception> reception, std::unique_ptr<Control> connected)
      : place(place), timeout(timeout), control(std::move(connected)),
        channels(place, timeout, std::move(cards), std::move(reception), *control) {}
  ~ConnectedGroup() override;

  uint32_t rank() const override { return place.rank; }
  uint32_t world() const override { return place.world; }
  const std::string &host(uint32_t rank) const override { return control->card(rank).host; }
  void setPlaces(std::vector<std::string> places) override { control->places().set(std::move(places)); }
  std::string name(uint32_t rank) const override { return control->name({rank}); }
  std::string transport() const override { return channels.isLocal() ? "memory" : "gloo"; }
  Communicator &channel(uint32_t index) override { return channels.all(index); }
  Communicator &subset(uint32_t index, const std::vector<uint32_t> &members) override {
    return channels.subset(index, members);
  }
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
  Status addChannels(uint32_t count) override;
  Status finish() override;

  /// The first round of channels; the last as well where no more are asked for.
  Status connectFirst(const ConnectOptions &options, Deadline deadline) {
    return channels.connect(options.channels, /*last=*/!options.more, deadline);
  }

private:
  const RankIdentity place;
  const milliseconds timeout;
  const std::unique_ptr<Control> control;
  ChannelSet channels;
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

Status ConnectedGroup::addChannels(uint32_t count) {
  const Result<std::vector<std::string>> wanted = exchange(std::to_string(count), "number of channels");
  if (!wanted)
    return wanted.error();
  for (const std::string &each : *wanted)
    count = std::max(count, static_cast<uint32_t>(std::clamp(std::atoi(each.c_str()), 1, kMostAsked)));
  const WithoutSignals quiet;
  return channels.connect(count, /*last=*/true, Clock::now() + std::min(timeout, kRendezvousLimit));
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
  auto reception = std::make_unique<Reception>(*cards, place.rank, std::move(*listener));
  Result<std::unique_ptr<Control>> control =
      Control::connect(*cards, place.rank, *reception, deadline,
                       {.failureLimit = options.timeout + kLastWords, .absence = absenceFor(place)});
  if (!control)
    return control.error();
  auto group = std::make_unique<ConnectedGroup>(place, options.timeout, *cards, std::move(reception),
                                                std::move(*control));
  if (Status status = group->connectFirst(options, deadline); !status)
    return status.error();
  return std::unique_ptr<RankGroup>(std::move(group));
}

} // namespace

std::string RankGroup::name(uint32_t rank) const {
  return fmt::format("rank {} on host {}", rank, host(rank));
}

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
