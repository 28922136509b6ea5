//===- CudaEmulation.h - The words of CUDA that the .cu files use, as C++ ------===//
//
// One block runs at a time, its threads as fibers of one thread, so what a block shares is static.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_CUDA_CUDAEMULATION_H
#define DS_UNITTESTS_CUDA_CUDAEMULATION_H

#include "Fibers.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define DS_SHARED static
#define DS_DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(emulation::dynamicShared)
#define DS_KERNEL static void
#define DS_DEVICE static inline
#define DS_DEVICE_MEMBER inline
#define DS_EXPECT_ALIGNED(address, bytes) emulation::expectAligned(address, bytes)
#define __launch_bounds__(...)

namespace ds::rt::cuda::emulation {

inline ds::test::Block *block;
inline unsigned blockNumber, blocks, threads;
alignas(16) inline char dynamicShared[227 << 10];

/// Ends the process at an access that a GPU would not make.
inline void expectAligned(const volatile void *address, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(address) % bytes == 0)
    return;
  std::fprintf(stderr, "an access of %zu bytes is at %p\n", bytes, const_cast<void *>(address));
  std::abort();
}

inline float halfToFloat(uint16_t bits) {
  _Float16 half;
  std::memcpy(&half, &bits, 2);
  return static_cast<float>(half);
}
inline uint16_t halfFromFloat(float value) {
  const _Float16 half = static_cast<_Float16>(value);
  uint16_t bits;
  std::memcpy(&bits, &half, 2);
  return bits;
}

/// What reads like a field of threadIdx and its like.
template <unsigned (*read)()>
struct Register {
  struct Value {
    operator unsigned() const { return read(); }
  } x;
};
inline unsigned readThread() { return block->current(); }
inline unsigned readBlock() { return blockNumber; }
inline unsigned readBlocks() { return blocks; }
inline unsigned readThreads() { return threads; }

inline float asFloat(uint32_t word) {
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}
inline uint32_t asWord(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return word;
}

} // namespace ds::rt::cuda::emulation

namespace ds::rt::cuda {

inline emulation::Register<emulation::readThread> threadIdx;
inline emulation::Register<emulation::readBlock> blockIdx;
inline emulation::Register<emulation::readBlocks> gridDim;
inline emulation::Register<emulation::readThreads> blockDim;

inline void __syncthreads() { emulation::block->blockBarrier(); }
inline int __syncthreads_or(int value) { return emulation::block->any(value != 0); }
inline float __shfl_xor_sync(unsigned, float value, int mask) {
  return emulation::asFloat(emulation::block->shuffle(emulation::asWord(value), mask));
}
inline float __shfl_sync(unsigned, float value, int lane) {
  return emulation::asFloat(emulation::block->broadcast(emulation::asWord(value), lane));
}

inline uint32_t __match_any_sync(unsigned, int32_t value) {
  uint32_t equal = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (emulation::block->broadcast(static_cast<uint32_t>(value), lane) == static_cast<uint32_t>(value))
      equal |= 1u << lane;
  return equal;
}
inline int __popc(uint32_t value) { return __builtin_popcount(value); }
inline int32_t atomicAdd(int32_t *to, int32_t value) {
  const int32_t before = *to;
  *to += value;
  return before;
}

} // namespace ds::rt::cuda

#endif // DS_UNITTESTS_CUDA_CUDAEMULATION_H
