//===- Permutation.h - A shuffled order that needs no memory -------------------===//
//
// A Feistel network over the next power of four, walked until it lands inside the range, is a bijection of
// the range: sample i of epoch e is computed, not looked up. No table of 8 bytes a sample, nothing to save in
// a checkpoint, the same on every machine. The round function is Philox keyed by the seed.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_DATA_PERMUTATION_H
#define DS_RUNTIME_DATA_PERMUTATION_H

#include "ds/Runtime/Data/Philox.h"

#include <bit>
#include <cstdint>

namespace ds::rt {

/// A bijection of [0, size), chosen by seed and epoch. `size` is at least 1 and at most 2^62.
class Permutation {
public:
  Permutation(uint64_t size, uint64_t seed, uint64_t epoch)
      : size(size), seed(seed), epoch(epoch), halfBits(unsigned(std::bit_width(size - 1) + 1) / 2),
        mask((uint64_t(1) << halfBits) - 1) {}

  /// Where `index` < size goes. On average fewer than four walks.
  uint64_t operator()(uint64_t index) const {
    do
      index = network(index);
    while (index >= size);
    return index;
  }

private:
  static constexpr uint32_t kRounds = 8;

  uint64_t network(uint64_t value) const {
    uint64_t left = value >> halfBits, right = value & mask;
    for (uint32_t round = 0; round < kRounds; ++round) {
      // The half has at most 31 bits; the epoch's 64 and the round fill the rest of the counter.
      auto random = philox4x32({uint32_t(right), round, uint32_t(epoch), uint32_t(epoch >> 32)}, seed);
      uint64_t next = left ^ ((uint64_t(random[1]) << 32 | random[0]) & mask);
      left = right;
      right = next;
    }
    return left << halfBits | right;
  }

  uint64_t size, seed, epoch;
  unsigned halfBits;
  uint64_t mask;
};

} // namespace ds::rt

#endif // DS_RUNTIME_DATA_PERMUTATION_H
