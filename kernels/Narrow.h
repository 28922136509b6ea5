//===- Narrow.h - f32, bf16 and f16 in memory, f32 in registers ----------------===//
//
// Kernels that take any of the three are templates on the element's type and compute in f32. Conversions
// round to nearest even and keep NaN, with the same bits on every instruction set.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_NARROW_H
#define DS_KERNELS_NARROW_H

#include "Kernel.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace ds::rt::DS_ISA {

struct BFloat16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};

typedef uint32_t WordVec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint16_t ShortVec __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));

DS_INLINE WordVec splatWord(uint32_t value) { return WordVec{} + value; }
DS_INLINE ShortVec shorts(const void *from) { return *static_cast<const ShortVec *>(from); }
DS_INLINE WordVec words(const void *from) { return __builtin_convertvector(shorts(from), WordVec); }

DS_INLINE Vec load(const BFloat16 *from) { return (Vec)(words(from) << 16); }
DS_INLINE void store(BFloat16 *to, Vec value) {
  const WordVec bits = (WordVec)value, upper = bits >> 16;
  const WordVec rounded = (bits + 0x7fff + (upper & 1)) >> 16;
  const WordVec result = value != value ? upper | 0x40 : rounded;
  *reinterpret_cast<ShortVec *>(to) = __builtin_convertvector(result, ShortVec);
}

#if defined(__AVX512F__)
DS_INLINE Vec load(const Half *from) { return (Vec)_mm512_cvtph_ps((__m256i)shorts(from)); }
DS_INLINE void store(Half *to, Vec value) {
  *reinterpret_cast<ShortVec *>(to) = (ShortVec)_mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT);
}
#elif defined(__F16C__)
DS_INLINE Vec load(const Half *from) { return (Vec)_mm256_cvtph_ps((__m128i)shorts(from)); }
DS_INLINE void store(Half *to, Vec value) {
  *reinterpret_cast<ShortVec *>(to) = (ShortVec)_mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT);
}
#else
/// The exponent is rebiased in place; denormals are an integer times 2^-24.
DS_INLINE Vec load(const Half *from) {
  const WordVec bits = words(from), magnitude = bits & 0x7fff, shifted = magnitude << 13;
  const WordVec special = shifted | (magnitude > 0x7c00 ? splatWord(0x7fc00000) : splatWord(0x7f800000));
  const Vec denormal = __builtin_convertvector((IntVec)magnitude, Vec) * 0x1p-24f;
  const WordVec finite = magnitude >= 0x400 ? shifted + 0x38000000 : (WordVec)denormal;
  return (Vec)((magnitude >= 0x7c00 ? special : finite) | (bits & 0x8000) << 16);
}
/// Adding 0.5 leaves a denormal's rounded mantissa in the low bits; else rounding carries into the exponent.
DS_INLINE void store(Half *to, Vec value) {
  const WordVec bits = (WordVec)value, magnitude = bits & 0x7fffffff;
  const WordVec normal = (magnitude + 0xc8000fff + (magnitude >> 13 & 1)) >> 13;
  const WordVec denormal = (WordVec)((Vec)magnitude + 0.5f) - 0x3f000000;
  const WordVec finite = magnitude >= 0x38800000 ? normal : denormal;
  const WordVec large = magnitude >= 0x477ff000 ? splatWord(0x7c00) : finite;
  const WordVec result = value != value ? (magnitude >> 13 & 0x3ff) | 0x7e00 : large;
  *reinterpret_cast<ShortVec *>(to) = __builtin_convertvector(result | (bits >> 16 & 0x8000), ShortVec);
}
#endif

/// One element, by way of a vector, so that it gets the vector's bits.
DS_INLINE float toFloat(float value) { return value; }
template <class T>
DS_INLINE float toFloat(T value) {
  T all[kLanes] = {value};
  return load(all)[0];
}
DS_INLINE void setFloat(float &to, float value) { to = value; }
template <class T>
DS_INLINE void setFloat(T &to, float value) {
  T all[kLanes];
  store(all, splat(value));
  to = all[0];
}

/// to[i] = from[i] for `count` consecutive elements of any two types.
template <class From, class To>
DS_INLINE void convertRow(const From *from, To *to, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store(to + i, load(from + i));
  for (; i < count; ++i)
    setFloat(to[i], toFloat(from[i]));
}

/// Calls body(element) with a value of the type that `dtype` names.
template <class Body>
DS_INLINE void withType(DType dtype, Body &&body) {
  if (dtype == DType::BF16)
    return body(BFloat16{});
  if (dtype == DType::F16)
    return body(Half{});
  body(float{});
}

template <class T>
DS_INLINE T *elements(const View &view) {
  return static_cast<T *>(view.data);
}

} // namespace ds::rt::DS_ISA

#endif // DS_KERNELS_NARROW_H
