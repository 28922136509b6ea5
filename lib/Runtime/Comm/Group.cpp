//===- Group.cpp - Brings the ranks of a job together ----------------------------===//
//
// Cards, then control connections, then the data plane of each channel, whose addresses go over the control
// connections. Threads that start here take no signals: those are for the main thread.
//
//===---------------------------------------------------------------------------===//
#include "Collectives.h"
#include "Control.h"
#include "Plugins.h"
#include "Rendezvous.h"
#include "Solo.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;

/// Blocks all signals on this thread, and so on those that it starts, while it lives.
class WithoutSignals {
public:
  WithoutSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};

class ConnectedGroup : public RankGroup {
public:
  ConnectedGroup(const Place &place, milliseconds timeout, std::unique_ptr<Control> control)
      : place(place), timeout(timeout), control(std::move(control)) {}
  ~ConnectedGroup() override;

  uint32_t rank() const override { return place.rank; }
  uint32_t world() const override { return place.world; }
  const std::string &host(uint32_t rank) const override { return control->host(rank); }
  Communicator &channel(uint32_t index) override { return *channels.at(index); }
  Result<std::vector<std::string>> exchange(const std::string &mine, const char *what) override {
    return control->exchange(mine, what, timeout);
  }
  void abort(const std::string &reason) override {
    control->fail(fmt::format("{} gave up: {}", control->name({place.rank}), reason));
  }
  Status finish() override;

  /// Adds a channel whose ranks have `address`. Collective.
  Status addChannel(const GlooApi &gloo, const std::string &address, Deadline deadline);

private:
  Status connectAll(Fabric &fabric, uint32_t index, Deadline deadline);

  const Place place;
  const milliseconds timeout;
  const std::unique_ptr<Control> control;
  std::vector<std::unique_ptr<FabricCommunicator>> channels;
  bool finished = false;
};

ConnectedGroup::~ConnectedGroup() {
  if (!finished)
    control->fail(fmt::format("{} left before the end of the run", control->name({place.rank})));
  control->stop(); // it may be breaking the fabrics
}

Status ConnectedGroup::finish() {
  Status status = control->finish(timeout);
  finished = static_cast<bool>(status);
  if (finished && place.kind == Place::Kind::Pmix)
    (*openPmix())->leave();
  return status;
}

Status ConnectedGroup::addChannel(const GlooApi &gloo, const std::string &address, Deadline deadline) {
  std::string error;
  const milliseconds left(std::max(remainingMs(deadline), 1));
  const GlooOptions options{place.rank, place.world, address.c_str(), left};
  std::unique_ptr<Fabric> fabric(gloo.create(options, error));
  if (!fabric) {
    control->fail(fmt::format("{} cannot open Gloo's TCP transport: {}", control->name({place.rank}), error));
    return Error{ExitCode::Peer, control->failure(), "name the network interface with DS_INTERFACE"};
  }
  Fabric &opened = *fabric;
  const uint32_t index = static_cast<uint32_t>(channels.size());
  channels.push_back(
      std::make_unique<FabricCommunicator>(*control, std::move(fabric), place.rank, index, timeout));
  control->onFailure([&opened] { opened.close(); });
  return connectAll(opened, index, deadline);
}

Status ConnectedGroup::connectAll(Fabric &fabric, uint32_t index, Deadline deadline) {
  const std::string what = fmt::format("addresses of channel {}", index);
  Result<std::vector<std::string>> addresses =
      control->exchange(fabric.address(), what.c_str(), milliseconds(remainingMs(deadline)));
  if (!addresses)
    return addresses.error();
  for (uint32_t peer = 0; peer < place.world; ++peer) {
    if (peer == place.rank || fabric.connect(peer, (*addresses)[peer]))
      continue;
    if (control->failure(milliseconds(500)).empty())
      control->fail(fmt::format("{} did not connect channel {} to {}: {}", control->name({peer}), index,
                                control->name({place.rank}), fabric.reason()));
    return Error{ExitCode::Peer, control->failure(), ""};
  }
  return {};
}

/// Where this rank listens.
Result<std::string> ownAddress(const Place &place) {
  if (const char *interface = std::getenv("DS_INTERFACE"); interface && *interface)
    return interfaceAddress(interface);
  return place.oneHost ? "127.0.0.1" : hostName();
}

Result<std::vector<Card>> meetUnderPmix(const Place &place, const Card &mine, Deadline deadline) {
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

Result<std::unique_ptr<Control>> meet(const Place &place, const std::string &address, Deadline deadline) {
  Card card{hostName(), address, 0, randomHex()};
  Result<Socket> listener = listenOn(address, card.port);
  if (!listener)
    return listener.error();
  Result<std::vector<Card>> cards = place.kind == Place::Kind::Pmix ? meetUnderPmix(place, card, deadline)
                                                                    : meetInDirectory(place, card, deadline);
  if (!cards)
    return cards.error();
  return Control::connect(std::move(*cards), place.rank, *listener, deadline);
}

} // namespace

Result<std::unique_ptr<RankGroup>> connect(const Place &place, const ConnectOptions &options) {
  if (place.world == 1)
    return makeSoloGroup(place, options.channels);
  const WithoutSignals quiet;
  const Deadline deadline = Clock::now() + std::min(options.timeout, kRendezvousLimit);
  const Result<const GlooApi *> gloo = openGloo();
  if (!gloo)
    return gloo.error();
  Result<std::string> address = ownAddress(place);
  if (!address)
    return address.error();
  Result<std::unique_ptr<Control>> control = meet(place, *address, deadline);
  if (!control)
    return control.error();
  auto group = std::make_unique<ConnectedGroup>(place, options.timeout, std::move(*control));
  for (uint32_t index = 0; index < options.channels; ++index)
    if (Status status = group->addChannel(**gloo, *address, deadline); !status)
      return status.error();
  return std::unique_ptr<RankGroup>(std::move(group));
}

} // namespace ds::rt
