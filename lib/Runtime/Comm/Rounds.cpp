//===- Rounds.cpp - Messages that a rank posts and waits for --------------------------===//
#include "Collectives.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {

/// How long a broken data connection waits for the news of what broke it.
static constexpr std::chrono::milliseconds kNewsPatience(1000);

Rounds::Rounds(Channel &channel, std::vector<uint32_t> given)
    : members(std::move(given)),
      self(static_cast<uint32_t>(std::lower_bound(members.begin(), members.end(), channel.rank) -
                                 members.begin())),
      ranks(static_cast<uint32_t>(members.size())), channel(channel), sending(ranks), receiving(ranks) {
  awaited.reserve(ranks);
}

Status Rounds::postSend(uint32_t peer, const void *data, uint64_t bytes) {
  if (bytes == 0)
    return {};
  ++sending[peer];
  const bool isPosted = channel.transport->postSend(members[peer], data, bytes);
  return isPosted ? Status() : failed(peer, Transport::Outcome::Broken);
}

Status Rounds::postReceive(uint32_t peer, void *data, uint64_t bytes) {
  if (bytes == 0)
    return {};
  ++receiving[peer];
  const bool isPosted = channel.transport->postReceive(members[peer], data, bytes);
  return isPosted ? Status() : failed(peer, Transport::Outcome::Broken);
}

/// Waits for all receives that are posted (all sends): one round, which has the whole time-out.
Status Rounds::waitReceives() { return waitAll(receiving, /*isSend=*/false); }

Status Rounds::waitSends() { return waitAll(sending, /*isSend=*/true); }

Status Rounds::waitAll(const std::vector<uint32_t> &posted, bool isSend) {
  const Channel::Waiting waiting(channel);
  Status status;
  for (uint32_t step = 1; step < ranks && status; ++step)
    while (status && posted[peerAt(step)] > 0)
      status = wait(peerAt(step), isSend, waiting.deadline);
  return status;
}

Status Rounds::settle() {
  if (Status status = waitReceives(); !status)
    return status;
  return waitSends();
}

Status Rounds::wait(uint32_t peer, bool isSend, Deadline deadline) {
  const std::chrono::milliseconds left(remainingMs(deadline));
  Transport &transport = *channel.transport;
  channel.waitsFor(tellsOf(peer) ? members[peer] : Wait::kNobody);
  const Transport::Outcome outcome =
      isSend ? transport.waitSend(members[peer], left) : transport.waitReceive(members[peer], left);
  if (outcome != Transport::Outcome::Done)
    return failed(peer, outcome);
  --(isSend ? sending : receiving)[peer];
  return {};
}

/// Whether this rank is to tell that it waits long for `peer`: in a large group its neighbours do, for all
/// wait for a rank that is late.
bool Rounds::tellsOf(uint32_t peer) const {
  constexpr uint32_t kMostTellers = 16;
  return ranks <= kMostTellers || peer == peerAt(1) || peer == peerAt(ranks - 1);
}

/// The number among all ranks of `peer`, for which the wait has been too long, and of the others that have
/// let this one wait as long.
std::vector<uint32_t> Rounds::missingWith(uint32_t peer) {
  std::vector<uint32_t> missing = {members[peer]};
  constexpr std::chrono::milliseconds kNow(0);
  for (uint32_t other = 0; other < ranks; ++other)
    if (other != peer && receiving[other] > 0 &&
        channel.transport->waitReceive(members[other], kNow) != Transport::Outcome::Done)
      missing.push_back(members[other]);
  std::sort(missing.begin(), missing.end());
  return missing;
}

/// Tells all ranks why this collective cannot end. What the control connections know comes first: a broken
/// connection is often the consequence of what they know. Messages of other ranks that are still coming in
/// are cut off: the caller frees what they are written to.
Status Rounds::failed(uint32_t peer, Transport::Outcome outcome) {
  Control &control = channel.control;
  const bool late = outcome == Transport::Outcome::TimedOut;
  const auto patience = std::min(channel.timeout, kNewsPatience);
  std::string known = control.failure(late ? std::chrono::milliseconds(0) : patience);
  if (known.empty()) {
    const std::vector<uint32_t> blamed =
        late ? control.hearOut(missingWith(peer), patience) : std::vector{members[peer]};
    if (late && !control.failed())
      control.showStacks(blamed);
    const std::string name = control.name(blamed);
    control.fail(
        late ? fmt::format("{} did not take part in {} within {}", name, channel.current(),
                           spellSeconds(channel.timeout))
             : fmt::format("{} did not finish {}: {}", name, channel.current(), channel.transport->reason()));
    known = control.failure(); // another thread may have been first
  }
  channel.transport->close();
  return channel.noticed(known);
}

static CollectiveKind kindOf(const Message &message) {
  return message.isSend ? CollectiveKind::Send : CollectiveKind::Recv;
}

/// All are posted before any is waited for. Then receives, whichever comes first: the sender may need to go
/// on before others can send. Sends need nothing more of this rank.
Status Rounds::exchange(std::span<const Message> messages) {
  if (messages.empty())
    return {};
  const Deadline begin = Clock::now();
  const Message &first = messages.front();
  if (Status status = channel.begin(spell(kindOf(first)), first.what); !status)
    return status;
  for (const Message &message : messages)
    if (Status status = post(message); !status)
      return status;
  if (Status status = awaitReceives(messages); !status)
    return status;
  for (const Message &message : messages)
    if (message.isSend && message.bytes > 0)
      if (Status status = await(message, Clock::now() + channel.timeout); !status)
        return status;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const Message &message : messages) {
    channel.rename(spell(kindOf(message)), message.what);
    channel.count(kindOf(message), ranks, message.bytes, seconds / static_cast<double>(messages.size()));
  }
  return {};
}

Status Rounds::post(const Message &message) {
  channel.rename(spell(kindOf(message)), message.what);
  return message.isSend ? postSend(message.partner, message.data, message.bytes)
                        : postReceive(message.partner, message.data, message.bytes);
}

Status Rounds::awaitReceives(std::span<const Message> messages) {
  for (;;) {
    awaited.clear();
    for (uint32_t step = 1; step < ranks; ++step)
      if (receiving[peerAt(step)] > 0)
        awaited.push_back(members[peerAt(step)]);
    if (awaited.empty())
      return {};
    const Deadline deadline = Clock::now() + channel.timeout;
    uint32_t next = awaited.front();
    if (awaited.size() > 1) {
      const Message &named = oldest(messages, next);
      channel.rename(spell(kindOf(named)), named.what);
      const Channel::Waiting waiting(channel);
      channel.waitsFor(next);
      next = channel.transport->awaitAny(awaited, channel.timeout);
    }
    if (Status status = await(oldest(messages, next), deadline); !status)
      return status;
  }
}

/// The first message from `member` that has not been waited for.
const Message &Rounds::oldest(std::span<const Message> messages, uint32_t member) const {
  const auto isOfMember = [&](const Message &message) {
    return !message.isSend && message.bytes > 0 && members[message.partner] == member;
  };
  auto over = std::count_if(messages.begin(), messages.end(), isOfMember);
  auto found = std::find_if(messages.begin(), messages.end(), isOfMember);
  for (over -= receiving[found->partner]; over > 0; --over)
    found = std::find_if(found + 1, messages.end(), isOfMember);
  return *found;
}

Status Rounds::await(const Message &message, Deadline deadline) {
  channel.rename(spell(kindOf(message)), message.what);
  const Channel::Waiting waiting(channel);
  return wait(message.partner, message.isSend, deadline);
}

} // namespace ds::rt
