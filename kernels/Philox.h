//===- Philox.h - Random words by number, several at a time ---------------------===//
//
// Philox4x32-10 (Salmon et al., SC'11): four words of a block depend on a key and on the block's number and
// stream alone, so that any part of a sequence can be made anywhere, and again.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_PHILOX_H
#define DS_KERNELS_PHILOX_H

#include "Kernel.h"

namespace ds::rt::DS_ISA {

inline constexpr int kPhiloxBlocks = 16; ///< made side by side, one per lane

/// The words of blocks first, first + 1, ...: words[w][i] is word w of block first + i.
DS_INLINE void philox(uint64_t first, uint64_t stream, uint64_t key, uint32_t words[4][kPhiloxBlocks]) {
  for (int i = 0; i < kPhiloxBlocks; ++i) {
    words[0][i] = static_cast<uint32_t>(first + i);
    words[1][i] = static_cast<uint32_t>((first + i) >> 32);
    words[2][i] = static_cast<uint32_t>(stream);
    words[3][i] = static_cast<uint32_t>(stream >> 32);
  }
  uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, low += 0x9E3779B9, high += 0xBB67AE85)
    for (int i = 0; i < kPhiloxBlocks; ++i) {
      const uint64_t a = uint64_t(0xD2511F53) * words[0][i], b = uint64_t(0xCD9E8D57) * words[2][i];
      words[0][i] = static_cast<uint32_t>(b >> 32) ^ words[1][i] ^ low;
      words[1][i] = static_cast<uint32_t>(b);
      words[2][i] = static_cast<uint32_t>(a >> 32) ^ words[3][i] ^ high;
      words[3][i] = static_cast<uint32_t>(a);
    }
}

} // namespace ds::rt::DS_ISA

#endif // DS_KERNELS_PHILOX_H
