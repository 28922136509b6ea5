//===- CudaPort.h - CUDA kernels as nvcc sees them, and as a test does ---------===//
//
// The .cu files of this directory are written against what is here. Under nvcc that is CUDA itself; with
// DS_EMULATE_CUDA they are plain C++ that a test runs thread by thread on the CPU, where every __syncthreads
// and every exchange within a warp is a switch to another thread.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_CUDAPORT_H
#define DS_KERNELS_CUDAPORT_H

#include "CudaCalls.h"

#ifdef DS_EMULATE_CUDA
#include "CudaEmulation.h"
#else
#define DS_SHARED __shared__
#define DS_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#define DS_KERNEL extern "C" __global__ void
#define DS_DEVICE static __device__ __forceinline__
#define DS_DEVICE_MEMBER __device__ __forceinline__
#define DS_EXPECT_ALIGNED(address, bytes) // a GPU stops where it is not
#endif

namespace ds::rt::cuda {

constexpr unsigned kAllLanes = 0xffffffffu;

/// 16-bit floats as bits; computed with as f32.
struct BFloat16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};

DS_DEVICE uint32_t wordOf(float value) {
  uint32_t word;
  memcpy(&word, &value, 4);
  return word;
}
DS_DEVICE float floatOf(uint32_t word) {
  float value;
  memcpy(&value, &word, 4);
  return value;
}

DS_DEVICE float toFloat(float value) { return value; }
DS_DEVICE float toFloat(BFloat16 value) { return floatOf(uint32_t(value.bits) << 16); }
DS_DEVICE void setFloat(float &to, float value) { to = value; }
/// Rounds to nearest even; NaN stays NaN. The bits are those of the CPU's kernels.
DS_DEVICE void setFloat(BFloat16 &to, float value) {
  const uint32_t word = wordOf(value);
  const uint32_t rounded = (word + 0x7fffu + (word >> 16 & 1u)) >> 16;
  to.bits = static_cast<uint16_t>(value == value ? rounded : (word >> 16 | 0x40u));
}
#ifdef DS_EMULATE_CUDA
DS_DEVICE float toFloat(Half value) { return emulation::halfToFloat(value.bits); }
DS_DEVICE void setFloat(Half &to, float value) { to.bits = emulation::halfFromFloat(value); }
template <class T>
DS_DEVICE void setPair(T *to, float first, float second) {
  setFloat(to[0], first);
  setFloat(to[1], second);
}
DS_DEVICE float exp2Of(float x) { return std::exp2(x); }
#else
DS_DEVICE float toFloat(Half value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
DS_DEVICE void setFloat(Half &to, float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(value)); }
/// Two neighbours; NaN may have other bits than setFloat gives.
DS_DEVICE void setPair(float *to, float first, float second) {
  to[0] = first;
  to[1] = second;
}
DS_DEVICE void setPair(BFloat16 *to, float first, float second) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  memcpy(to, &pair, 4);
}
DS_DEVICE void setPair(Half *to, float first, float second) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  memcpy(to, &pair, 4);
}
/// 2^x to 2 units in the last place; results below the smallest normal number are 0.
DS_DEVICE float exp2Of(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
#endif
/// e^x by the processor's power of two: off by about |x| units in the last place.
DS_DEVICE float fastExp(float x) { return exp2Of(x * 1.44269504088896341f); }

DS_DEVICE float infinity() { return floatOf(0x7f800000u); }
DS_DEVICE float quietNaN() { return floatOf(0x7fc00000u); }
template <class T>
DS_DEVICE T minOf(T a, T b) {
  return a < b ? a : b;
}
template <class T>
DS_DEVICE T maxOf(T a, T b) {
  return a > b ? a : b;
}

/// What takes the place of x under a cap; 0 is none.
DS_DEVICE float capped(float x, float cap) { return cap == 0 ? x : cap * tanhf(x / cap); }
/// The derivative of that by x, from the result y.
DS_DEVICE float slopeOfCap(float y, float cap) {
  const float ratio = cap == 0 ? 0.0f : y / cap;
  return 1 - ratio * ratio;
}

/// The larger; NaN only where both are.
DS_DEVICE float warpMax(float value) {
  for (int mask = 16; mask > 0; mask /= 2)
    value = maxOf(__shfl_xor_sync(kAllLanes, value, mask), value);
  return value;
}
DS_DEVICE float warpSum(float value) {
  for (int mask = 16; mask > 0; mask /= 2)
    value += __shfl_xor_sync(kAllLanes, value, mask);
  return value;
}

/// The maximum or sum over the block, for all threads; `memory` has 32 floats that nothing else uses between
/// the barrier before and the one after.
template <bool isSum>
DS_DEVICE float acrossBlock(float value, float *memory) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  value = isSum ? warpSum(value) : warpMax(value);
  __syncthreads();
  if (lane == 0)
    memory[warp] = value;
  __syncthreads();
  value = lane < warps ? memory[lane] : (isSum ? 0.0f : -infinity());
  return isSum ? warpSum(value) : warpMax(value);
}

/// What lies at `at`, as one access of a GPU: its address is a multiple of V's alignment.
template <class V, class T>
DS_DEVICE V &wholeAt(T *at) {
  DS_EXPECT_ALIGNED(at, alignof(V));
  return *reinterpret_cast<V *>(at);
}

/// 16 bytes of elements.
template <class T>
struct alignas(16) Vector {
  static constexpr int kSize = 16 / sizeof(T);
  T values[kSize];
};

/// A row as single elements up to its first address of 16 bytes, vectors, and the elements behind the last.
template <class T>
struct RowParts {
  int size, head, vectors;

  DS_DEVICE_MEMBER RowParts(const T *row, int size) : size(size) {
    const int misplaced = static_cast<int>(reinterpret_cast<uint64_t>(row) % 16);
    head = minOf(size, misplaced ? (16 - misplaced) / static_cast<int>(sizeof(T)) : 0);
    vectors = (size - head) / Vector<T>::kSize;
  }
  DS_DEVICE_MEMBER int tail() const { return head + vectors * Vector<T>::kSize; }
};

} // namespace ds::rt::cuda

/// Entries `name_f32`, `name_bf16` and `name_f16` of the template `function`, which takes a `Call`. `bounds`:
/// threads of a block at most, and blocks of a multiprocessor at least, if registers are to be left for them.
#define DS_ENTRIES(name, function, Call, bounds)                                                             \
  DS_KERNEL __launch_bounds__(bounds) name##_f32(ds::rt::cuda::Call call) {                                  \
    ds::rt::cuda::function<float>(call);                                                                     \
  }                                                                                                          \
  DS_KERNEL __launch_bounds__(bounds) name##_bf16(ds::rt::cuda::Call call) {                                 \
    ds::rt::cuda::function<ds::rt::cuda::BFloat16>(call);                                                    \
  }                                                                                                          \
  DS_KERNEL __launch_bounds__(bounds) name##_f16(ds::rt::cuda::Call call) {                                  \
    ds::rt::cuda::function<ds::rt::cuda::Half>(call);                                                        \
  }

#endif // DS_KERNELS_CUDAPORT_H
