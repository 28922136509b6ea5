//===- Kernel.h - What the kernels share: vectors, exp, typed views ------------===//
//
// Every kernel file is compiled once per instruction set, into a namespace of its own (DS_ISA). Nothing with
// external linkage may be shared between those: no std:: template and no inline function outside the
// namespace, or the linker might keep the AVX-512 copy for a machine without AVX-512.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_KERNEL_H
#define DS_KERNELS_KERNEL_H

#include "ds/Kernels/Kernels.h"
#include "ds/Kernels/Parallel.h"

#include <stdint.h>

#ifndef DS_ISA
#error "compile kernels with -DDS_ISA=<name of the instruction set>"
#endif

namespace ds::rt::DS_ISA {

#define DS_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

/// As many floats as one register holds.
typedef float Vec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef int32_t IntVec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

DS_INLINE Vec load(const float *from) { return *reinterpret_cast<const Vec *>(from); }
DS_INLINE void store(float *to, Vec value) { *reinterpret_cast<Vec *>(to) = value; }
DS_INLINE Vec splat(float value) { return Vec{} + value; }
DS_INLINE Vec vecMax(Vec a, Vec b) { return a > b ? a : b; }

/// Sum of the lanes, in lane order by halves: the same on every machine of this width.
DS_INLINE float sumLanes(Vec v) {
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      v[i] += v[i + half];
  return v[0];
}
DS_INLINE float maxLanes(Vec v) {
  float best = v[0];
  for (int i = 1; i < kLanes; ++i)
    best = v[i] > best ? v[i] : best;
  return best;
}

/// e^x to about one unit in the last place; 0 below the smallest normal number, infinity above the largest,
/// NaN stays NaN. x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial of degree 6 in r, then n into the
/// exponent.
DS_INLINE Vec vecExp(Vec x) {
  const float kRound = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
  const Vec low = splat(-87.33654f), high = splat(88.72283f);
  const Vec in = x > high ? high : (x < low ? low : x);
  const Vec shifted = in * 1.44269504088896341f + kRound;
  const Vec n = shifted - kRound;
  const Vec r = (in - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^n in two halves, for n = 128 has no float of its own.
  const IntVec exponent = (IntVec)shifted - (IntVec)splat(kRound);
  const IntVec half = exponent >> 1;
  const Vec scale0 = (Vec)((half + 127) << 23), scale1 = (Vec)((exponent - half + 127) << 23);
  Vec y = p * scale0 * scale1;
  y = x < low ? Vec{} : y;
  y = x > high ? splat(__builtin_inff()) : y;
  return x == x ? y : x;
}

/// Element i of a packed list of ids, of either integer type.
DS_INLINE int64_t idAt(const View &ids, int64_t i) {
  return ids.dtype == DType::I64 ? static_cast<const int64_t *>(ids.data)[i]
                                 : static_cast<const int32_t *>(ids.data)[i];
}
DS_INLINE int64_t countOf(const View &view) {
  int64_t count = 1;
  for (uint32_t d = 0; d < view.rank; ++d)
    count *= view.shape[d];
  return count;
}
DS_INLINE float *floats(const View &view) { return static_cast<float *>(view.data); }
DS_INLINE int64_t minOf(int64_t a, int64_t b) { return a < b ? a : b; }
DS_INLINE int64_t maxOf(int64_t a, int64_t b) { return a > b ? a : b; }
DS_INLINE double asDouble(int64_t bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/// parallelRanges and parallelTasks for a lambda.
template <class Body>
DS_INLINE void forRanges(int64_t extent, int64_t grain, uint32_t threads, Body &body) {
  parallelRanges(extent, grain, threads, &body, [](void *context, int64_t begin, int64_t end) {
    (*static_cast<Body *>(context))(begin, end);
  });
}
template <class Body>
DS_INLINE void forTasks(int64_t count, uint32_t threads, Body &body) {
  parallelTasks(count, threads, &body, [](void *context, int64_t index, uint32_t worker) {
    (*static_cast<Body *>(context))(index, worker);
  });
}

void attentionForward(const LibraryCall &call);
void attentionBackward(const LibraryCall &call);
void embeddingForward(const LibraryCall &call);
void embeddingBackward(const LibraryCall &call);
void crossEntropyForward(const LibraryCall &call);
void crossEntropyBackward(const LibraryCall &call);
void fill(const LibraryCall &call);
void copy(const LibraryCall &call);
void activateProduct(const LibraryCall &call);
void sumOfSquares(const LibraryCall &call);
void widenBlock(const WidenCall &call);
void finishBlock(const FinishCall &call);
void fillRandom(const RandomCall &call);
void probe(const ProbeCall &call);
bool reduceParts(const ReduceCall &call);

} // namespace ds::rt::DS_ISA

#endif // DS_KERNELS_KERNEL_H
