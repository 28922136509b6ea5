//===- Blocks.cpp - Blocks of a 16-bit product to f32 and back -----------------===//
//
// What surrounds an f32 product whose operands are not f32: blocks of them are widened, its sums are finished
// and rounded. Each element is read once and written once, a row (or what the memory makes one) at a time.
//
//===---------------------------------------------------------------------------===//
#include "Narrow.h"

namespace ds::rt::DS_ISA {
namespace {

constexpr int64_t kGrainElements = 16384;

template <class T>
void widen(const WidenCall &call) {
  const int64_t runs = call.byRows ? call.rows : call.columns;
  const int64_t length = call.byRows ? call.columns : call.rows;
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; ++run)
      convertRow(static_cast<const T *>(call.from) + run * call.stride, call.to + run * length, length);
  };
  forRanges(runs, maxOf(1, kGrainElements / maxOf(length, 1)), call.threads, body);
}

/// One row of the result: T its type, B the bias's.
template <class T, class B>
struct FinishRow {
  const FinishCall &call;

  Vec biasAt(int64_t r, int64_t c) const {
    if (!call.bias)
      return Vec{};
    const B *bias = static_cast<const B *>(call.bias);
    return call.biasByRow ? splat(toFloat(bias[r])) : load(bias + c);
  }
  /// NaN stays NaN.
  Vec activate(Vec x) const { return call.relu ? (x <= 0 ? Vec{} : x) : x; }

  void packed(int64_t r, T *to) const {
    const float *from = call.sums + r * call.columns;
    int64_t c = 0;
    for (; c + kLanes <= call.columns; c += kLanes) {
      Vec x = load(from + c) + biasAt(r, c);
      if (call.accumulate)
        x += load(to + c);
      store(to + c, activate(x));
    }
    strided(r, c, to, 1);
  }
  /// The elements from column `first` on.
  void strided(int64_t r, int64_t first, T *to, int64_t step) const {
    const B *bias = static_cast<const B *>(call.bias);
    for (int64_t c = first; c < call.columns; ++c) {
      float x = call.sums[r * call.columns + c] + (bias ? toFloat(bias[call.biasByRow ? r : c]) : 0.0f);
      if (call.accumulate)
        x += toFloat(to[c * step]);
      setFloat(to[c * step], activate(splat(x))[0]);
    }
  }
};

template <class T, class B>
void finish(const FinishCall &call) {
  const FinishRow<T, B> row{call};
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T *to = static_cast<T *>(call.result) + r * call.rowStride;
      if (call.columnStride == 1)
        row.packed(r, to);
      else
        row.strided(r, 0, to, call.columnStride);
    }
  };
  forRanges(call.rows, maxOf(1, kGrainElements / maxOf(call.columns, 1)), call.threads, body);
}

} // namespace

void widenBlock(const WidenCall &call) {
  withType(call.dtype, [&](auto element) { widen<decltype(element)>(call); });
}

void finishBlock(const FinishCall &call) {
  withType(call.resultType, [&](auto result) {
    withType(call.biasType, [&](auto bias) { finish<decltype(result), decltype(bias)>(call); });
  });
}

} // namespace ds::rt::DS_ISA
