//===- Gelu.cpp - GELU and its gradient over the result of a product ------------===//
//
// The tanh form, as x times the logistic function: 0.5 (1 + tanh(u)) = 1 / (1 + exp(-2u)) loses nothing where
// tanh is near -1.
//
//===---------------------------------------------------------------------------===//
#include "Narrow.h"

#include "ds/Runtime/Library.h"

namespace ds::rt::DS_ISA {
namespace {

constexpr int64_t kGrain = 16384;                                ///< elements for one thread
constexpr float kCube = 0.044715f, kSlope = 0.7978845608028654f; // sqrt(2 / pi)

DS_INLINE Vec gate(Vec x) { return 1.0f / (1.0f + vecExp(-2.0f * kSlope * (x + kCube * x * x * x))); }

DS_INLINE Vec gelu(Vec x) { return x * gate(x); }
DS_INLINE Vec slope(Vec x) {
  const Vec s = gate(x);
  return s + 2.0f * x * (s * (1.0f - s)) * (kSlope + 3.0f * kCube * kSlope * x * x);
}

/// to[i] = gelu(from[i]), or to[i] * slope(from[i]).
template <bool isGradient, class T>
DS_INLINE void apply(const T *from, T *to, int64_t count, uint32_t threads) {
  auto one = [](const T *x, T *y) { store(y, isGradient ? load(y) * slope(load(x)) : gelu(load(x))); };
  auto body = [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes)
      one(from + i, to + i);
    for (; i < end; ++i) {
      T x[kLanes] = {from[i]}, y[kLanes] = {to[i]};
      one(x, y);
      to[i] = y[0];
    }
  };
  forRanges(count, kGrain, threads, body);
}

} // namespace

void geluOfProduct(const LibraryCall &call) {
  const View &result = call.operands[2];
  const View *input = &result;
  for (uint32_t k = 3; k < call.numOperands; ++k)
    if (call.operands[k].rank > 1)
      input = &call.operands[k];
  const bool isGradient = static_cast<Activation>(call.params[3]) == Activation::GeluGradient;
  withType(result.dtype, [&](auto element) {
    using T = decltype(element);
    const T *from = elements<T>(*input);
    if (isGradient)
      apply<true>(from, elements<T>(result), countOf(result), call.threads);
    else
      apply<false>(from, elements<T>(result), countOf(result), call.threads);
  });
}

} // namespace ds::rt::DS_ISA
