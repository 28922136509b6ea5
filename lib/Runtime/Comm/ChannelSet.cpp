//===- ChannelSet.cpp - The channels of a rank, as they are connected --------------===//
#include "ChannelSet.h"
#include "Control/Limits.h"
#include "LocalTransport.h"
#include "Plugins.h"
#include "Solo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace ds::rt {

using std::chrono::milliseconds;

ChannelSet::ChannelSet(const RankIdentity &place, milliseconds timeout, std::vector<Card> cards,
                       std::unique_ptr<Reception> reception, Control &control)
    : place(place), timeout(timeout), cards(std::move(cards)), control(control),
      reception(std::move(reception)) {}

Communicator &ChannelSet::subset(uint32_t index, const std::vector<uint32_t> &members) {
  Members &on = *channels.at(index);
  std::unique_ptr<Communicator> &subset = on.subsets[members];
  if (!subset && members.size() == 1)
    subset = makeSoloCommunicator();
  if (!subset)
    subset = std::make_unique<TransportCommunicator>(on.channel, members);
  return *subset;
}

Result<bool> ChannelSet::addLocalChannel(Deadline deadline) {
  std::unique_ptr<LocalTransport> transport = LocalTransport::create(place.rank, place.world);
  const milliseconds left(remainingMs(deadline));
  Result<std::vector<std::string>> addresses =
      control.exchange(transport ? transport->address() : "", "addresses in this machine", left);
  if (!addresses)
    return addresses.error();
  bool reached = transport != nullptr;
  for (uint32_t peer = 0; peer < place.world; ++peer)
    reached = reached && (peer == place.rank || transport->connect(peer, (*addresses)[peer]));
  Result<std::vector<std::string>> answers = control.exchange(reached ? "yes" : "no", "ranks in reach", left);
  if (!answers)
    return answers.error();
  if (std::count(answers->begin(), answers->end(), "yes") != place.world)
    return false;
  use(std::move(transport));
  return true;
}

Status ChannelSet::addGlooChannel(const GlooApi &gloo, Deadline deadline) {
  std::string error;
  std::unique_ptr<SocketTransport> made(gloo.create({place.rank, place.world}, error));
  if (!made) {
    control.fail(fmt::format("{} cannot open Gloo's TCP transport: {}", control.name({place.rank}), error));
    return noticed();
  }
  SocketTransport &transport = *made;
  const CallPurpose purpose = kDataCall + static_cast<CallPurpose>(channels.size());
  use(std::move(made));
  return connectToAll(transport, purpose, deadline);
}

/// Calls the ranks below, then takes the calls of those above: nobody waits for a turn.
Status ChannelSet::connectToAll(SocketTransport &transport, CallPurpose purpose, Deadline deadline) {
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
      reception->await(higher, purpose, deadline, [this] { return control.failed(); });
  if (!missing.empty())
    return notConnected(missing, "no call has come in time");
  for (const uint32_t peer : higher)
    if (Status given = give(peer, reception->take(peer, purpose)); !given)
      return given;
  return {};
}

/// That data cannot travel to `peers`; or why the job has failed, if anybody knows better.
Error ChannelSet::notConnected(const std::vector<uint32_t> &peers, const std::string &why) {
  if (control.failure(milliseconds(500)).empty())
    control.fail(fmt::format("{} did not connect to {} for data: {}", control.name(peers),
                             control.name({place.rank}), why));
  return noticed();
}

/// Why the job has failed, and when this rank heard of it.
Error ChannelSet::noticed() const {
  return Error{ExitCode::Peer, control.failure() + "; noticed while the ranks connected for data", ""};
}

/// Makes `transport` the next channel; a failure of the job closes it.
Transport &ChannelSet::use(std::unique_ptr<Transport> transport) {
  Transport &used = *transport;
  const uint32_t index = static_cast<uint32_t>(channels.size());
  channels.emplace_back(new Members{{control, std::move(transport), place.rank, index, timeout}});
  std::vector<uint32_t> everybody(place.world);
  std::iota(everybody.begin(), everybody.end(), 0);
  channels.back()->all = &subset(index, everybody);
  control.onFailure([&used] { used.close(); });
  return used;
}

Status ChannelSet::connect(uint32_t count, bool last, Deadline deadline) {
  const char *transport = std::getenv("DS_TRANSPORT");
  if (channels.empty())
    local = place.oneHost && std::string(transport ? transport : "") != "gloo";
  while (local && channels.size() < count) {
    Result<bool> added = addLocalChannel(deadline);
    if (!added)
      return added.error();
    local = *added;
  }
  if (channels.size() < count)
    if (Status status = connectByGloo(count, deadline); !status)
      return status;
  if (last)
    reception.reset();
  return {};
}

Status ChannelSet::connectByGloo(uint32_t count, Deadline deadline) {
  const uint64_t more = descriptorsOfRank(place.world, count - static_cast<uint32_t>(channels.size()), true);
  if (Status status = reserveDescriptors(more, fmt::format("rank {} of {}", place.rank, place.world));
      !status) {
    giveUp(status.error().message);
    return status;
  }
  const Result<const GlooApi *> gloo = openGloo();
  if (!gloo)
    giveUp(gloo.error().message);
  while (gloo && channels.size() < count)
    if (Status status = addGlooChannel(**gloo, deadline); !status)
      return status;
  return gloo ? Status() : Status(gloo.error());
}

/// Tells the others why this rank connects to nobody.
void ChannelSet::giveUp(const std::string &reason) {
  control.fail(fmt::format("{} gave up: {}", control.name({place.rank}), reason));
}

} // namespace ds::rt
