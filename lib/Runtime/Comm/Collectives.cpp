//===- Collectives.cpp - Collectives on a transport of messages -----------------------===//
#include "Collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ds::rt {
namespace {

/// An all-reduce of at most this many bytes is one round: everyone gets everything and combines it.
constexpr uint64_t kSmallBytes = 4096;

} // namespace

TransportCommunicator::TransportCommunicator(Channel &channel, std::vector<uint32_t> members)
    : channel(channel), rounds(channel, std::move(members)), self(rounds.self), ranks(rounds.ranks),
      isa(bestIsa()), sources(ranks), scratch(kSmallBytes * ranks) {}

TransportCommunicator::~TransportCommunicator() = default;

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

//===- Collectives --------------------------------------------------------------===//

/// Every rank's part of `out` to every rank, from this rank's.
Status TransportCommunicator::gather(std::byte *out, const Parts &parts) {
  const uint64_t elementBytes = byteSize(parts.dtype);
  auto part = [&](uint32_t rank) { return out + parts.stride * rank * elementBytes; };
  for (uint32_t step = 1; step < ranks; ++step) {
    const uint32_t to = rounds.peerAt(step), from = rounds.peerAt(ranks - step);
    if (Status status = rounds.postReceive(from, part(from), parts.size(from) * elementBytes); !status)
      return status;
    if (Status status = rounds.postSend(to, part(self), parts.size(self) * elementBytes); !status)
      return status;
  }
  return rounds.settle();
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
      const uint32_t target = rounds.peerAt(step), source = rounds.peerAt(ranks - step);
      if (Status status = rounds.postReceive(source, to + source * bytesPerRank, bytesPerRank); !status)
        return status;
      if (Status status = rounds.postSend(target, from + target * bytesPerRank, bytesPerRank); !status)
        return status;
    }
    std::memcpy(to + self * bytesPerRank, from + self * bytesPerRank, bytesPerRank);
    return rounds.settle();
  });
}

Status TransportCommunicator::broadcast(void *data, uint64_t bytes, uint32_t root, const char *what) {
  return measured(CollectiveKind::Broadcast, what, bytes, [&]() -> Status {
    for (uint32_t step = 1; step < ranks && self == root; ++step)
      if (Status status = rounds.postSend(rounds.peerAt(step), data, bytes); !status)
        return status;
    if (self != root)
      if (Status status = rounds.postReceive(root, data, bytes); !status)
        return status;
    return rounds.settle();
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

Status TransportCommunicator::exchange(std::span<const Message> messages) {
  return rounds.exchange(messages);
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
    const uint32_t to = rounds.peerAt(step), from = rounds.peerAt(ranks - step);
    if (Status status = rounds.postReceive(from, scratch.data() + from * kSmallBytes, bytes); !status)
      return status;
    if (Status status = rounds.postSend(to, in, bytes); !status)
      return status;
    sources[from] = scratch.data() + from * kSmallBytes;
  }
  sources[self] = in;
  if (Status status = rounds.settle(); !status)
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
  return rounds.waitSends();
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
    const uint32_t to = rounds.peerAt(step), from = rounds.peerAt(ranks - step);
    if (Status status =
            rounds.postReceive(from, slots + (step - 1) * blocks.elements * elementBytes, sizeOf(self));
        !status)
      return status;
    if (Status status =
            rounds.postSend(to, parts.in + (parts.stride * to + begin) * elementBytes, sizeOf(to));
        !status)
      return status;
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
      const uint32_t from = rounds.peerAt(ranks - step);
      if (Status status = rounds.wait(from, /*sending=*/false, waiting.deadline); !status)
        return status;
      sources[from] = slots + (step - 1) * blocks.elements * elementBytes;
    }
  }
  sources[self] = parts.in + (parts.stride * self + begin) * elementBytes;
  return combine(parts.out + begin * elementBytes, std::min(blocks.elements, size - begin), parts.dtype,
                 parts.reduction);
}

} // namespace ds::rt
