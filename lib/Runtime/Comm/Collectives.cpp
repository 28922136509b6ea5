//===- Collectives.cpp - Collectives on a transport of messages -----------------------===//
#include "Collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ds::rt {
namespace {

/// An all-reduce of at most this many bytes is one round: everyone gets everything and combines it.
constexpr uint64_t kSmallBytes = 4096;
/// How long a broken data connection waits for the news of what broke it.
constexpr std::chrono::milliseconds kNewsPatience(1000);

} // namespace

TransportCommunicator::TransportCommunicator(Channel &channel, std::vector<uint32_t> given)
    : channel(channel), members(std::move(given)),
      self(static_cast<uint32_t>(std::lower_bound(members.begin(), members.end(), channel.rank) -
                                 members.begin())),
      ranks(static_cast<uint32_t>(members.size())), isa(bestIsa()), sending(ranks), receiving(ranks),
      sources(ranks), scratch(kSmallBytes * ranks) {
  awaited.reserve(ranks);
}

TransportCommunicator::~TransportCommunicator() = default;

//===- Rounds -------------------------------------------------------------------===//

template <class Body>
Status TransportCommunicator::measured(CollectiveKind kind, const char *what, uint64_t bytes, Body &&body) {
  const Deadline begin = Clock::now();
  if (Status status = channel.begin(spell(kind), what); !status)
    return status;
  if (Status status = body(); !status)
    return status;
  channel.count(kind, ranks, bytes, std::chrono::duration<double>(Clock::now() - begin).count());
  return {};
}

bool TransportCommunicator::postSend(uint32_t peer, const void *data, uint64_t bytes) {
  if (bytes == 0)
    return true;
  ++sending[peer];
  return channel.transport->postSend(members[peer], data, bytes);
}

bool TransportCommunicator::postReceive(uint32_t peer, void *data, uint64_t bytes) {
  if (bytes == 0)
    return true;
  ++receiving[peer];
  return channel.transport->postReceive(members[peer], data, bytes);
}

/// Waits for all receives that are posted (all sends): one round, which has the whole time-out.
Status TransportCommunicator::waitReceives() { return waitAll(receiving, /*isSend=*/false); }

Status TransportCommunicator::waitSends() { return waitAll(sending, /*isSend=*/true); }

Status TransportCommunicator::waitAll(const std::vector<uint32_t> &posted, bool isSend) {
  const Channel::Waiting waiting(channel);
  Status status;
  for (uint32_t step = 1; step < ranks && status; ++step)
    while (status && posted[peerAt(step)] > 0)
      status = wait(peerAt(step), isSend, waiting.deadline);
  return status;
}

Status TransportCommunicator::settle() {
  if (Status status = waitReceives(); !status)
    return status;
  return waitSends();
}

Status TransportCommunicator::wait(uint32_t peer, bool isSend, Deadline deadline) {
  const std::chrono::milliseconds left(remainingMs(deadline));
  Transport &transport = *channel.transport;
  channel.waitsFor(tellsOf(peer) ? members[peer] : Control::kNobody);
  const Transport::Outcome outcome =
      isSend ? transport.waitSend(members[peer], left) : transport.waitReceive(members[peer], left);
  if (outcome != Transport::Outcome::Done)
    return failed(peer, outcome);
  --(isSend ? sending : receiving)[peer];
  return {};
}

/// Whether this rank is to tell that it waits long for `peer`: in a large group its neighbours do, for all
/// wait for a rank that is late.
bool TransportCommunicator::tellsOf(uint32_t peer) const {
  constexpr uint32_t kMostTellers = 16;
  return ranks <= kMostTellers || peer == peerAt(1) || peer == peerAt(ranks - 1);
}

/// The number among all ranks of `peer`, for which the wait has been too long, and of the others that have
/// let this one wait as long.
std::vector<uint32_t> TransportCommunicator::missingWith(uint32_t peer) {
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
/// connection is often the consequence of what they know.
Status TransportCommunicator::failed(uint32_t peer, Transport::Outcome outcome) {
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
  return channel.noticed(known);
}

//===- Collectives --------------------------------------------------------------===//

/// Every rank's part of `out` to every rank, from this rank's.
Status TransportCommunicator::gather(std::byte *out, const Parts &parts) {
  const uint64_t elementBytes = byteSize(parts.dtype);
  auto part = [&](uint32_t rank) { return out + parts.stride * rank * elementBytes; };
  for (uint32_t step = 1; step < ranks; ++step) {
    const uint32_t to = peerAt(step), from = peerAt(ranks - step);
    if (!postReceive(from, part(from), parts.size(from) * elementBytes))
      return failed(from, Transport::Outcome::Broken);
    if (!postSend(to, part(self), parts.size(self) * elementBytes))
      return failed(to, Transport::Outcome::Broken);
  }
  return settle();
}

Status TransportCommunicator::allGather(const void *in, void *out, uint64_t bytesPerRank, const char *what) {
  return measured(CollectiveKind::AllGather, what, bytesPerRank * ranks, [&]() -> Status {
    std::byte *to = static_cast<std::byte *>(out);
    if (std::byte *own = to + self * bytesPerRank; own != in)
      std::memcpy(own, in, bytesPerRank);
    return gather(to,
                  Parts{nullptr, nullptr, bytesPerRank, bytesPerRank * ranks, DType::U8, Reduction::None});
  });
}

Status TransportCommunicator::allToAll(const void *in, void *out, uint64_t bytesPerRank, const char *what) {
  return measured(CollectiveKind::AllToAll, what, bytesPerRank * ranks, [&]() -> Status {
    const std::byte *from = static_cast<const std::byte *>(in);
    std::byte *to = static_cast<std::byte *>(out);
    for (uint32_t step = 1; step < ranks; ++step) {
      const uint32_t target = peerAt(step), source = peerAt(ranks - step);
      if (!postReceive(source, to + source * bytesPerRank, bytesPerRank))
        return failed(source, Transport::Outcome::Broken);
      if (!postSend(target, from + target * bytesPerRank, bytesPerRank))
        return failed(target, Transport::Outcome::Broken);
    }
    std::memcpy(to + self * bytesPerRank, from + self * bytesPerRank, bytesPerRank);
    return settle();
  });
}

Status TransportCommunicator::broadcast(void *data, uint64_t bytes, uint32_t root, const char *what) {
  return measured(CollectiveKind::Broadcast, what, bytes, [&]() -> Status {
    for (uint32_t step = 1; step < ranks && self == root; ++step)
      if (!postSend(peerAt(step), data, bytes))
        return failed(peerAt(step), Transport::Outcome::Broken);
    if (self != root && !postReceive(root, data, bytes))
      return failed(root, Transport::Outcome::Broken);
    return settle();
  });
}

Status TransportCommunicator::barrier(const char *what) {
  if (Status status = channel.begin("barrier", what); !status)
    return status;
  return gather(scratch.data(), Parts{nullptr, nullptr, 1, ranks, DType::U8, Reduction::None});
}

Status TransportCommunicator::reduceScatter(const void *in, void *out, void *staging, uint64_t elements,
                                            DType dtype, Reduction reduction, const char *what) {
  const Parts parts{static_cast<const std::byte *>(in),
                    static_cast<std::byte *>(out),
                    elements,
                    elements * ranks,
                    dtype,
                    reduction};
  return measured(CollectiveKind::ReduceScatter, what, parts.total * byteSize(dtype),
                  [&] { return reduceInBlocks(parts, static_cast<std::byte *>(staging)); });
}

Status TransportCommunicator::allReduce(const void *in, void *out, void *staging, uint64_t elements,
                                        DType dtype, Reduction reduction, const char *what) {
  const uint64_t elementBytes = byteSize(dtype);
  const std::byte *from = static_cast<const std::byte *>(in);
  std::byte *to = static_cast<std::byte *>(out);
  return measured(CollectiveKind::AllReduce, what, elements * elementBytes, [&]() -> Status {
    if (elements * elementBytes <= kSmallBytes)
      return reduceSmall(from, to, elements, dtype, reduction);
    const uint64_t stride = (elements + ranks - 1) / ranks;
    const Parts parts{
        from, to + std::min(stride * self, elements) * elementBytes, stride, elements, dtype, reduction};
    if (Status status = reduceInBlocks(parts, static_cast<std::byte *>(staging)); !status)
      return status;
    return gather(to, parts);
  });
}

//===- Messages -----------------------------------------------------------------===//

static CollectiveKind kindOf(const Message &message) {
  return message.isSend ? CollectiveKind::Send : CollectiveKind::Recv;
}

/// All are posted before any is waited for. Then receives, whichever comes first: the sender may need to go
/// on before others can send. Sends need nothing more of this rank.
Status TransportCommunicator::exchange(std::span<const Message> messages) {
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

Status TransportCommunicator::post(const Message &message) {
  channel.rename(spell(kindOf(message)), message.what);
  const bool isPosted = message.isSend ? postSend(message.partner, message.data, message.bytes)
                                       : postReceive(message.partner, message.data, message.bytes);
  return isPosted ? Status() : failed(message.partner, Transport::Outcome::Broken);
}

Status TransportCommunicator::awaitReceives(std::span<const Message> messages) {
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
const Message &TransportCommunicator::oldest(std::span<const Message> messages, uint32_t member) const {
  const auto isOfMember = [&](const Message &message) {
    return !message.isSend && message.bytes > 0 && members[message.partner] == member;
  };
  auto over = std::count_if(messages.begin(), messages.end(), isOfMember);
  auto found = std::find_if(messages.begin(), messages.end(), isOfMember);
  for (over -= receiving[found->partner]; over > 0; --over)
    found = std::find_if(found + 1, messages.end(), isOfMember);
  return *found;
}

Status TransportCommunicator::await(const Message &message, Deadline deadline) {
  channel.rename(spell(kindOf(message)), message.what);
  const Channel::Waiting waiting(channel);
  return wait(message.partner, message.isSend, deadline);
}

//===- Reductions ---------------------------------------------------------------===//

/// Combines what `sources` point to, in rank order.
Status TransportCommunicator::combine(std::byte *out, uint64_t elements, DType dtype, Reduction reduction) {
  const ReduceCall call{sources.data(), out, static_cast<int64_t>(elements), ranks, dtype, reduction};
  if (reduceParts(call, isa))
    return {};
  return Error{ExitCode::Internal,
               fmt::format("{} '{}' cannot combine {} by {}", channel.currentKind(), channel.currentName(),
                           spell(dtype), spell(reduction)),
               ""};
}

Status TransportCommunicator::reduceSmall(const std::byte *in, std::byte *out, uint64_t elements, DType dtype,
                                          Reduction reduction) {
  const uint64_t bytes = elements * byteSize(dtype);
  for (uint32_t step = 1; step < ranks; ++step) {
    const uint32_t to = peerAt(step), from = peerAt(ranks - step);
    if (!postReceive(from, scratch.data() + from * kSmallBytes, bytes))
      return failed(from, Transport::Outcome::Broken);
    if (!postSend(to, in, bytes))
      return failed(to, Transport::Outcome::Broken);
    sources[from] = scratch.data() + from * kSmallBytes;
  }
  sources[self] = in;
  if (Status status = settle(); !status)
    return status;
  return combine(out, elements, dtype, reduction);
}

/// Staging has room for one block of `reduceBlockElements` from every rank, of which this one needs none:
/// with more than one block to come, that is room for two smaller ones from each of the others.
TransportCommunicator::Blocks TransportCommunicator::chooseBlocks(const Parts &parts) const {
  const Collective whole{CollectiveKind::ReduceScatter, parts.reduction, parts.dtype, parts.stride, {}, {}};
  const uint64_t elements = reduceBlockElements(whole, ranks);
  if (elements >= parts.stride)
    return {elements, 1};
  return {elements * ranks / (2 * (ranks - 1)), 2};
}

/// The reduction of this rank's part. Receives run one block ahead of the sums, sends with them.
Status TransportCommunicator::reduceInBlocks(const Parts &parts, std::byte *staging) {
  const Blocks blocks = chooseBlocks(parts);
  const uint64_t count = blocks.elements ? (parts.stride + blocks.elements - 1) / blocks.elements : 0;
  if (count > 0)
    if (Status status = postBlock(parts, staging, blocks, 0); !status)
      return status;
  for (uint64_t index = 0; index < count; ++index) {
    if (index + 1 < count)
      if (Status status = postBlock(parts, staging, blocks, index + 1); !status)
        return status;
    if (Status status = combineBlock(parts, staging, blocks, index); !status)
      return status;
  }
  return waitSends();
}

/// Posts block `index` of every part: to the rank whose part it is, and from all for this rank's.
Status TransportCommunicator::postBlock(const Parts &parts, std::byte *staging, Blocks blocks,
                                        uint64_t index) {
  const uint64_t elementBytes = byteSize(parts.dtype), begin = index * blocks.elements;
  auto sizeOf = [&](uint32_t part) {
    const uint64_t size = parts.size(part);
    return size <= begin ? 0 : std::min(blocks.elements, size - begin) * elementBytes;
  };
  std::byte *slots = staging + index % blocks.depth * (ranks - 1) * blocks.elements * elementBytes;
  for (uint32_t step = 1; step < ranks; ++step) {
    const uint32_t to = peerAt(step), from = peerAt(ranks - step);
    if (!postReceive(from, slots + (step - 1) * blocks.elements * elementBytes, sizeOf(self)))
      return failed(from, Transport::Outcome::Broken);
    if (!postSend(to, parts.in + (parts.stride * to + begin) * elementBytes, sizeOf(to)))
      return failed(to, Transport::Outcome::Broken);
  }
  return {};
}

Status TransportCommunicator::combineBlock(const Parts &parts, std::byte *staging, Blocks blocks,
                                           uint64_t index) {
  const uint64_t elementBytes = byteSize(parts.dtype), begin = index * blocks.elements,
                 size = parts.size(self);
  if (size <= begin)
    return {};
  const std::byte *slots = staging + index % blocks.depth * (ranks - 1) * blocks.elements * elementBytes;
  {
    const Channel::Waiting waiting(channel);
    for (uint32_t step = 1; step < ranks; ++step) {
      const uint32_t from = peerAt(ranks - step);
      if (Status status = wait(from, /*sending=*/false, waiting.deadline); !status)
        return status;
      sources[from] = slots + (step - 1) * blocks.elements * elementBytes;
    }
  }
  sources[self] = parts.in + (parts.stride * self + begin) * elementBytes;
  return combine(parts.out + begin * elementBytes, std::min(blocks.elements, size - begin), parts.dtype,
                 parts.reduction);
}

} // namespace ds::rt
