//===- Collectives.cpp - Collectives on a fabric of messages -----------------------===//
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

FabricCommunicator::FabricCommunicator(Channel &channel, std::vector<uint32_t> given)
    : channel(channel), members(std::move(given)),
      self(static_cast<uint32_t>(std::lower_bound(members.begin(), members.end(), channel.rank) -
                                 members.begin())),
      ranks(static_cast<uint32_t>(members.size())), isa(bestIsa()), sending(ranks), receiving(ranks),
      sources(ranks), scratch(kSmallBytes * ranks) {}

FabricCommunicator::~FabricCommunicator() = default;

//===- Rounds -------------------------------------------------------------------===//

template <class Body>
Status FabricCommunicator::measured(CollectiveKind kind, const char *what, uint64_t bytes, Body &&body) {
  const Deadline begin = Clock::now();
  if (Status status = channel.begin(spell(kind), what); !status)
    return status;
  if (Status status = body(); !status)
    return status;
  channel.count(kind, ranks, bytes, std::chrono::duration<double>(Clock::now() - begin).count());
  return {};
}

bool FabricCommunicator::postSend(uint32_t peer, const void *data, uint64_t bytes) {
  if (bytes == 0)
    return true;
  ++sending[peer];
  return channel.fabric->postSend(members[peer], data, bytes);
}

bool FabricCommunicator::postReceive(uint32_t peer, void *data, uint64_t bytes) {
  if (bytes == 0)
    return true;
  ++receiving[peer];
  return channel.fabric->postReceive(members[peer], data, bytes);
}

/// Waits for all receives that are posted (all sends): one round, which has the whole time-out.
Status FabricCommunicator::waitReceives() { return waitAll(receiving, /*isSend=*/false); }

Status FabricCommunicator::waitSends() { return waitAll(sending, /*isSend=*/true); }

Status FabricCommunicator::waitAll(const std::vector<uint32_t> &posted, bool isSend) {
  const Channel::Waiting waiting(channel);
  Status status;
  for (uint32_t step = 1; step < ranks && status; ++step)
    while (status && posted[peerAt(step)] > 0)
      status = wait(peerAt(step), isSend, waiting.deadline);
  return status;
}

Status FabricCommunicator::settle() {
  if (Status status = waitReceives(); !status)
    return status;
  return waitSends();
}

Status FabricCommunicator::wait(uint32_t peer, bool isSend, Deadline deadline) {
  const std::chrono::milliseconds left(remainingMs(deadline));
  Fabric &fabric = *channel.fabric;
  const Fabric::Outcome outcome =
      isSend ? fabric.waitSend(members[peer], left) : fabric.waitReceive(members[peer], left);
  if (outcome != Fabric::Outcome::Done)
    return failed(peer, outcome);
  --(isSend ? sending : receiving)[peer];
  return {};
}

/// The number among all ranks of `peer`, for which the wait has been too long, and of the others that have
/// let this one wait as long.
std::vector<uint32_t> FabricCommunicator::missingWith(uint32_t peer) {
  std::vector<uint32_t> missing = {members[peer]};
  constexpr std::chrono::milliseconds kNow(0);
  for (uint32_t other = 0; other < ranks; ++other)
    if (other != peer && receiving[other] > 0 &&
        channel.fabric->waitReceive(members[other], kNow) != Fabric::Outcome::Done)
      missing.push_back(members[other]);
  std::sort(missing.begin(), missing.end());
  return missing;
}

/// Tells all ranks why this collective cannot end. What the control connections know comes first: a broken
/// connection is often the consequence of what they know.
Status FabricCommunicator::failed(uint32_t peer, Fabric::Outcome outcome) {
  Control &control = channel.control;
  const bool late = outcome == Fabric::Outcome::TimedOut;
  const auto patience = std::min(channel.timeout, kNewsPatience);
  std::string known = control.failure(late ? std::chrono::milliseconds(0) : patience);
  if (known.empty()) {
    const std::string name =
        control.name(late ? control.hearOut(missingWith(peer), patience) : std::vector{members[peer]});
    control.fail(
        late ? fmt::format("{} did not take part in {} within {}", name, channel.current(),
                           spellSeconds(channel.timeout))
             : fmt::format("{} did not finish {}: {}", name, channel.current(), channel.fabric->reason()));
    known = control.failure(); // another thread may have been first
  }
  return channel.noticed(known);
}

//===- Collectives --------------------------------------------------------------===//

/// Every rank's part of `out` to every rank, from this rank's.
Status FabricCommunicator::gather(std::byte *out, const Parts &parts) {
  const uint64_t elementBytes = byteSize(parts.dtype);
  auto part = [&](uint32_t rank) { return out + parts.stride * rank * elementBytes; };
  for (uint32_t step = 1; step < ranks; ++step) {
    const uint32_t to = peerAt(step), from = peerAt(ranks - step);
    if (!postReceive(from, part(from), parts.size(from) * elementBytes))
      return failed(from, Fabric::Outcome::Broken);
    if (!postSend(to, part(self), parts.size(self) * elementBytes))
      return failed(to, Fabric::Outcome::Broken);
  }
  return settle();
}

Status FabricCommunicator::allGather(const void *in, void *out, uint64_t bytesPerRank, const char *what) {
  return measured(CollectiveKind::AllGather, what, bytesPerRank * ranks, [&]() -> Status {
    std::byte *to = static_cast<std::byte *>(out);
    if (std::byte *own = to + self * bytesPerRank; own != in)
      std::memcpy(own, in, bytesPerRank);
    return gather(to,
                  Parts{nullptr, nullptr, bytesPerRank, bytesPerRank * ranks, DType::U8, Reduction::None});
  });
}

Status FabricCommunicator::allToAll(const void *in, void *out, uint64_t bytesPerRank, const char *what) {
  return measured(CollectiveKind::AllToAll, what, bytesPerRank * ranks, [&]() -> Status {
    const std::byte *from = static_cast<const std::byte *>(in);
    std::byte *to = static_cast<std::byte *>(out);
    for (uint32_t step = 1; step < ranks; ++step) {
      const uint32_t target = peerAt(step), source = peerAt(ranks - step);
      if (!postReceive(source, to + source * bytesPerRank, bytesPerRank))
        return failed(source, Fabric::Outcome::Broken);
      if (!postSend(target, from + target * bytesPerRank, bytesPerRank))
        return failed(target, Fabric::Outcome::Broken);
    }
    std::memcpy(to + self * bytesPerRank, from + self * bytesPerRank, bytesPerRank);
    return settle();
  });
}

Status FabricCommunicator::broadcast(void *data, uint64_t bytes, uint32_t root, const char *what) {
  return measured(CollectiveKind::Broadcast, what, bytes, [&]() -> Status {
    for (uint32_t step = 1; step < ranks && self == root; ++step)
      if (!postSend(peerAt(step), data, bytes))
        return failed(peerAt(step), Fabric::Outcome::Broken);
    if (self != root && !postReceive(root, data, bytes))
      return failed(root, Fabric::Outcome::Broken);
    return settle();
  });
}

Status FabricCommunicator::send(const void *data, uint64_t bytes, uint32_t to, const char *what) {
  return measured(CollectiveKind::Send, what, bytes, [&]() -> Status {
    return postSend(to, data, bytes) ? settle() : failed(to, Fabric::Outcome::Broken);
  });
}

Status FabricCommunicator::recv(void *data, uint64_t bytes, uint32_t from, const char *what) {
  return measured(CollectiveKind::Recv, what, bytes, [&]() -> Status {
    return postReceive(from, data, bytes) ? settle() : failed(from, Fabric::Outcome::Broken);
  });
}

Status FabricCommunicator::barrier(const char *what) {
  if (Status status = channel.begin("barrier", what); !status)
    return status;
  return gather(scratch.data(), Parts{nullptr, nullptr, 1, ranks, DType::U8, Reduction::None});
}

Status FabricCommunicator::reduceScatter(const void *in, void *out, void *staging, uint64_t elements,
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

Status FabricCommunicator::allReduce(const void *in, void *out, void *staging, uint64_t elements, DType dtype,
                                     Reduction reduction, const char *what) {
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

//===- Reductions ---------------------------------------------------------------===//

/// Combines what `sources` point to, in rank order.
Status FabricCommunicator::combine(std::byte *out, uint64_t elements, DType dtype, Reduction reduction) {
  const ReduceCall call{sources.data(), out, static_cast<int64_t>(elements), ranks, dtype, reduction};
  if (reduceParts(call, isa))
    return {};
  return Error{ExitCode::Internal,
               fmt::format("{} '{}' cannot combine {} by {}", channel.currentKind(), channel.currentName(),
                           spell(dtype), spell(reduction)),
               ""};
}

Status FabricCommunicator::reduceSmall(const std::byte *in, std::byte *out, uint64_t elements, DType dtype,
                                       Reduction reduction) {
  const uint64_t bytes = elements * byteSize(dtype);
  for (uint32_t step = 1; step < ranks; ++step) {
    const uint32_t to = peerAt(step), from = peerAt(ranks - step);
    if (!postReceive(from, scratch.data() + from * kSmallBytes, bytes))
      return failed(from, Fabric::Outcome::Broken);
    if (!postSend(to, in, bytes))
      return failed(to, Fabric::Outcome::Broken);
    sources[from] = scratch.data() + from * kSmallBytes;
  }
  sources[self] = in;
  if (Status status = settle(); !status)
    return status;
  return combine(out, elements, dtype, reduction);
}

/// Staging has room for one block of `reduceBlockElements` from every rank, of which this one needs none:
/// with more than one block to come, that is room for two smaller ones from each of the others.
FabricCommunicator::Blocks FabricCommunicator::chooseBlocks(const Parts &parts) const {
  const Collective whole{CollectiveKind::ReduceScatter, parts.reduction, parts.dtype, parts.stride, {}, {}};
  const uint64_t elements = reduceBlockElements(whole, ranks);
  if (elements >= parts.stride)
    return {elements, 1};
  return {elements * ranks / (2 * (ranks - 1)), 2};
}

/// The reduction of this rank's part. Receives run one block ahead of the sums, sends with them.
Status FabricCommunicator::reduceInBlocks(const Parts &parts, std::byte *staging) {
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
Status FabricCommunicator::postBlock(const Parts &parts, std::byte *staging, Blocks blocks, uint64_t index) {
  const uint64_t elementBytes = byteSize(parts.dtype), begin = index * blocks.elements;
  auto sizeOf = [&](uint32_t part) {
    const uint64_t size = parts.size(part);
    return size <= begin ? 0 : std::min(blocks.elements, size - begin) * elementBytes;
  };
  std::byte *slots = staging + index % blocks.depth * (ranks - 1) * blocks.elements * elementBytes;
  for (uint32_t step = 1; step < ranks; ++step) {
    const uint32_t to = peerAt(step), from = peerAt(ranks - step);
    if (!postReceive(from, slots + (step - 1) * blocks.elements * elementBytes, sizeOf(self)))
      return failed(from, Fabric::Outcome::Broken);
    if (!postSend(to, parts.in + (parts.stride * to + begin) * elementBytes, sizeOf(to)))
      return failed(to, Fabric::Outcome::Broken);
  }
  return {};
}

Status FabricCommunicator::combineBlock(const Parts &parts, std::byte *staging, Blocks blocks,
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
