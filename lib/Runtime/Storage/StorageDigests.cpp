//===- StorageDigests.cpp - Whether what was written is what is read ----------------===//
#include "StorageDigests.h"

#include <xxhash.h>

#include <algorithm>

namespace ds::rt {

constexpr uint64_t kDigestBytes = uint64_t(1) << 20;

void StorageDigests::note(uint64_t offset, const std::byte *data, uint64_t bytes) {
  auto old = digests.lower_bound(offset);
  if (old != digests.begin() && std::prev(old)->first + std::prev(old)->second.bytes > offset)
    --old;
  while (old != digests.end() && old->first < offset + bytes)
    old = digests.erase(old);
  for (uint64_t at = 0; at < bytes; at += kDigestBytes) {
    const uint64_t size = std::min(kDigestBytes, bytes - at);
    digests.emplace(offset + at, Digest{size, XXH3_64bits(data + at, size)});
  }
}

std::optional<StorageDigests::Piece> StorageDigests::findDamaged(uint64_t offset, const std::byte *data,
                                                                 uint64_t bytes) const {
  for (auto known = digests.lower_bound(offset); known != digests.end(); ++known) {
    const auto &[at, digest] = *known;
    if (at + digest.bytes > offset + bytes)
      break;
    if (XXH3_64bits(data + (at - offset), digest.bytes) != digest.value)
      return Piece{at, digest.bytes};
  }
  return {};
}

} // namespace ds::rt
