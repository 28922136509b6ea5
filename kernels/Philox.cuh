//===- Philox.cuh - Random words by number, on CUDA ----------------------------===//
//
// Philox4x32-10 (Salmon et al., SC'11): the words of the CPU's kernels (Philox.h).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_PHILOX_CUH
#define DS_KERNELS_PHILOX_CUH

#include "CudaPort.h"

namespace ds::rt::cuda {

/// The four words of a block.
DS_DEVICE void philox(uint64_t block, uint64_t stream, uint64_t key, uint32_t words[4]) {
  words[0] = static_cast<uint32_t>(block);
  words[1] = static_cast<uint32_t>(block >> 32);
  words[2] = static_cast<uint32_t>(stream);
  words[3] = static_cast<uint32_t>(stream >> 32);
  uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, low += 0x9E3779B9u, high += 0xBB67AE85u) {
    const uint64_t a = uint64_t(0xD2511F53) * words[0], b = uint64_t(0xCD9E8D57) * words[2];
    words[0] = static_cast<uint32_t>(b >> 32) ^ words[1] ^ low;
    words[1] = static_cast<uint32_t>(b);
    words[2] = static_cast<uint32_t>(a >> 32) ^ words[3] ^ high;
    words[3] = static_cast<uint32_t>(a);
  }
}

} // namespace ds::rt::cuda

#endif // DS_KERNELS_PHILOX_CUH
