//===- Reduce.cpp - Combines the parts of all ranks ------------------------------===//
//
// out[i] = parts[0][i] + parts[1][i] + ..., in this order and with fp32 in between for the types of 16 bits:
// the bits do not depend on which rank computes them, nor on how many elements are combined at once. A block
// of sums stays in the first-level cache while the parts stream by, so that memory is read and written once.
//
//===---------------------------------------------------------------------------===//
#include "Kernel.h"

namespace ds::rt::DS_ISA {
namespace {

constexpr int64_t kBlock = 1024;

struct BFloat16 {
  uint16_t bits;
};

DS_INLINE float widen(BFloat16 value) { return __builtin_bit_cast(float, uint32_t(value.bits) << 16); }
DS_INLINE float widen(_Float16 value) { return static_cast<float>(value); }
DS_INLINE float widen(float value) { return value; }
DS_INLINE double widen(double value) { return value; }
DS_INLINE int64_t widen(int64_t value) { return value; }
DS_INLINE int32_t widen(int32_t value) { return value; }

/// Rounds to nearest even; a NaN stays one, and keeps its sign.
DS_INLINE void narrow(float value, BFloat16 &to) {
  const uint32_t word = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = (word + 0x7fffu + (word >> 16 & 1u)) >> 16;
  const uint32_t quiet = word >> 16 | 0x40u;
  to.bits = static_cast<uint16_t>(value == value ? rounded : quiet);
}
DS_INLINE void narrow(float value, _Float16 &to) { to = static_cast<_Float16>(value); }
template <class T>
DS_INLINE void narrow(T value, T &to) {
  to = value;
}

struct Sum {
  DS_INLINE float apply(float a, float b) { return a + b; }
  DS_INLINE double apply(double a, double b) { return a + b; }
  DS_INLINE int64_t apply(int64_t a, int64_t b) { // wraps
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  DS_INLINE int32_t apply(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
};

/// NaN if either is: a comparison with one is false, so each is written to keep `a`, then `b`.
struct Max {
  template <class T>
  DS_INLINE T apply(T a, T b) {
    const T larger = a < b ? b : a;
    return b == b ? larger : b;
  }
};
struct Min {
  template <class T>
  DS_INLINE T apply(T a, T b) {
    const T smaller = b < a ? b : a;
    return b == b ? smaller : b;
  }
};

template <class T, class Op>
void combine(const ReduceCall &call) {
  using Wide = decltype(widen(T{}));
  Wide sums[kBlock];
  for (int64_t begin = 0; begin < call.elements; begin += kBlock) {
    const int64_t count = minOf(kBlock, call.elements - begin);
    const T *first = static_cast<const T *>(call.parts[0]) + begin;
    for (int64_t i = 0; i < count; ++i)
      sums[i] = widen(first[i]);
    for (uint32_t part = 1; part < call.numParts; ++part) {
      const T *next = static_cast<const T *>(call.parts[part]) + begin;
      for (int64_t i = 0; i < count; ++i)
        sums[i] = Op::apply(sums[i], widen(next[i]));
    }
    T *out = static_cast<T *>(call.out) + begin;
    for (int64_t i = 0; i < count; ++i)
      narrow(sums[i], out[i]);
  }
}

template <class T>
bool combineAs(const ReduceCall &call) {
  switch (call.reduction) {
  case Reduction::Sum:
    return combine<T, Sum>(call), true;
  case Reduction::Max:
    return combine<T, Max>(call), true;
  case Reduction::Min:
    return combine<T, Min>(call), true;
  case Reduction::None:
    return false;
  }
  return false;
}

} // namespace

bool reduceParts(const ReduceCall &call) {
  switch (call.dtype) {
  case DType::F32:
    return combineAs<float>(call);
  case DType::BF16:
    return combineAs<BFloat16>(call);
  case DType::F16:
    return combineAs<_Float16>(call);
  case DType::F64:
    return combineAs<double>(call);
  case DType::I64:
    return combineAs<int64_t>(call);
  case DType::I32:
    return combineAs<int32_t>(call);
  default:
    return false;
  }
}

} // namespace ds::rt::DS_ISA
