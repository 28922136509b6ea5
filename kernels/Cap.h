//===- Cap.h - Scores and logits that a smooth cap bounds ----------------------===//
//
// cap * tanh(x / cap) takes the place of x (Gemma 2, arXiv 2408.00118, section 2). Its derivative is 1 - (y /
// cap)^2 of the result y, so that backward needs no logarithm and no second exponential. What has no cap is
// passed on as it is, by a type of its own: its code and its bits are those of a kernel that knows no caps.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_CAP_H
#define DS_KERNELS_CAP_H

#include "Kernel.h"

namespace ds::rt::DS_ISA {

/// tanh to a few units in the last place: a polynomial near 0, where 1 - 2 / (e^2x + 1) would cancel.
DS_INLINE Vec vecTanh(Vec x) {
  const Vec magnitude = (Vec)((IntVec)x & 0x7fffffff), square = x * x;
  Vec p = splat(-5.70498872745e-3f);
  p = p * square + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  const Vec small = p * square * x + x;
  const Vec large = 1.0f - 2.0f / (vecExp(2.0f * magnitude) + 1.0f);
  const Vec signedLarge = x < Vec{} ? -large : large; // NaN is neither, and stays
  return magnitude < splat(0.625f) ? small : signedLarge;
}

/// Nothing is bounded.
struct NoCap {
  __attribute__((always_inline)) Vec operator()(Vec x) const { return x; }
  __attribute__((always_inline)) Vec times(Vec gradient, Vec) const { return gradient; }
};

struct Cap {
  float cap;
  /// What takes the place of x.
  __attribute__((always_inline)) Vec operator()(Vec x) const { return cap * vecTanh(x / cap); }
  /// `gradient` by y as one by the x that y came of.
  __attribute__((always_inline)) Vec times(Vec gradient, Vec y) const {
    const Vec ratio = y / cap;
    return gradient * (1.0f - ratio * ratio);
  }
};

} // namespace ds::rt::DS_ISA

#endif // DS_KERNELS_CAP_H
