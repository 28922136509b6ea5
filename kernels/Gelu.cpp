//===- Gelu.cpp - GELU, its gradient and relu over the result of a product ------===//
//
// oneDNN's own relu makes 0 of NaN, so that weights that are lost would go on to train. GELU is the tanh
// form, as x times the logistic function: 0.5 (1 + tanh(u)) = 1 / (1 + exp(-2u)) loses nothing where tanh is
// near -1.
//
//===---------------------------------------------------------------------------===//
#include "Narrow.h"

#include "ds/Runtime/Program/Library.h"

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

/// NaN stays NaN.
DS_INLINE Vec rectified(Vec x) { return x <= 0 ? Vec{} : x; }

template <class T>
DS_INLINE void relu(T *row, int64_t count, int64_t step) {
  int64_t i = 0;
  for (; step == 1 && i + kLanes <= count; i += kLanes)
    store(row + i, rectified(load(row + i)));
  for (; i < count; ++i)
    setFloat(row[i * step], rectified(splat(toFloat(row[i * step])))[0]);
}

/// In place, along the dimension that memory is contiguous in.
template <class T>
void reluInPlace(const View &v, uint32_t threads) {
  uint32_t along = v.rank - 1;
  if (v.rank > 1 && v.strides[along] != 1 && v.strides[along - 1] == 1)
    --along;
  const int64_t count = v.shape[along], runs = count == 0 ? 0 : countOf(v) / count;
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; ++run) {
      int64_t rest = run, offset = 0;
      for (uint32_t d = v.rank; d-- > 0;)
        if (d != along) {
          offset += rest % v.shape[d] * v.strides[d];
          rest /= v.shape[d];
        }
      relu(static_cast<T *>(v.data) + offset, count, v.strides[along]);
    }
  };
  forRanges(runs, maxOf(1, kGrain / maxOf(count, 1)), threads, body);
}

} // namespace

void activateProduct(const LibraryCall &call) {
  const View &result = call.operands[2];
  if (static_cast<Activation>(call.params[3]) == Activation::Relu)
    return withType(result.dtype,
                    [&](auto element) { reluInPlace<decltype(element)>(result, call.threads); });
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
