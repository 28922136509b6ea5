//===- Philox.h - A counter-based random generator -----------------------------===//
//
// Philox4x32-10 (Salmon et al., 2011): a keyed function of a 128-bit counter. It has no state, so that the
// numbers for any step, sample or element can be drawn in any order, by any rank, and again after a restart.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_DATA_PHILOX_H
#define DS_RUNTIME_DATA_PHILOX_H

#include <array>
#include <cstdint>

namespace ds::rt {

/// 128 random bits for `counter` under `key`; the low word of each first.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, uint64_t key) {
  uint32_t keyLow = uint32_t(key), keyHigh = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t(0xD2511F53) * counter[0], product1 = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(product1 >> 32) ^ counter[1] ^ keyLow, uint32_t(product1),
               uint32_t(product0 >> 32) ^ counter[3] ^ keyHigh, uint32_t(product0)};
    keyLow += 0x9E3779B9;
    keyHigh += 0xBB67AE85;
  }
  return counter;
}

} // namespace ds::rt

#endif // DS_RUNTIME_DATA_PHILOX_H
