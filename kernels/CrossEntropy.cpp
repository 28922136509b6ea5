//===- CrossEntropy.cpp - Softmax cross-entropy without the softmax ------------===//
//
// Forward reads each row of logits twice (maximum, then the sum of exponentials, the second time from cache)
// and keeps one number per row, from which backward makes the gradient in one pass over memory, in place if
// asked. Both at once do a row after the other, while it is in cache. The mean is summed in double over fixed
// blocks of 64 rows, so it does not depend on the number of threads.
//
//===---------------------------------------------------------------------------===//
#include "Cap.h"
#include "Narrow.h"

namespace ds::rt::DS_ISA {
namespace {

constexpr int64_t kBlockRows = 64;
constexpr int kUnroll = 4;

template <class T>
float rowMax(const T *row, int64_t size) {
  Vec best[kUnroll];
  for (Vec &lane : best)
    lane = splat(-__builtin_inff());
  int64_t j = 0;
  for (; j + kUnroll * kLanes <= size; j += kUnroll * kLanes)
    for (int u = 0; u < kUnroll; ++u)
      best[u] = vecMax(load(row + j + u * kLanes), best[u]);
  float result = maxLanes(vecMax(vecMax(best[0], best[1]), vecMax(best[2], best[3])));
  for (; j < size; ++j)
    result = toFloat(row[j]) > result ? toFloat(row[j]) : result;
  return result;
}

/// One logit, bounded.
template <class Bound>
DS_INLINE float bounded(Bound bound, float x) {
  return bound(splat(x))[0];
}

/// Sum of exp(row[j] - shift).
template <class T, class Bound>
float rowExpSum(const T *row, int64_t size, float shift, Bound bound) {
  Vec sums[kUnroll] = {};
  int64_t j = 0;
  for (; j + kUnroll * kLanes <= size; j += kUnroll * kLanes)
    for (int u = 0; u < kUnroll; ++u)
      sums[u] += vecExp(bound(load(row + j + u * kLanes)) - shift);
  float total = sumLanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; j < size; ++j)
    total += vecExp(splat(bounded(bound, toFloat(row[j])) - shift))[0];
  return total;
}

/// log sum exp of a row; NaN and infinities come out as they should.
template <class T, class Bound>
float logSumExp(const T *row, int64_t size, Bound bound) {
  const float top = bounded(bound, rowMax(row, size)); // a bound keeps the order
  if (top == -__builtin_inff() || top == __builtin_inff())
    return top;
  return top + __builtin_logf(rowExpSum(row, size, top, bound));
}

/// to[j] = exp(from[j] - shift) * factor, of bounded elements and by the elements themselves.
template <class T, class Bound>
void scaledExp(const T *from, T *to, int64_t size, float shift, float factor, Bound bound) {
  const auto one = [&](Vec x) {
    const Vec y = bound(x);
    return bound.times(vecExp(y - shift) * factor, y);
  };
  int64_t j = 0;
  for (; j + kUnroll * kLanes <= size; j += kUnroll * kLanes)
    for (int u = 0; u < kUnroll; ++u)
      store(to + j + u * kLanes, one(load(from + j + u * kLanes)));
  for (; j < size; ++j)
    setFloat(to[j], one(splat(toFloat(from[j])))[0]);
}

/// How many targets are not `ignore`.
DS_INLINE int64_t countTargets(const View &targets, int64_t rows, int64_t ignore) {
  int64_t count = 0;
  for (int64_t i = 0; i < rows; ++i)
    count += idAt(targets, i) != ignore;
  return count;
}

/// term(i) of rows [0, rows), summed block by block.
template <class Term>
DS_INLINE double sumOfRows(int64_t rows, Term term) {
  double total = 0;
  for (int64_t block = 0; block < rows; block += kBlockRows) {
    double sum = 0;
    for (int64_t i = block; i < minOf(block + kBlockRows, rows); ++i)
      sum += term(i);
    total += sum;
  }
  return total;
}

/// A row's part of the loss: lse less the logit of its target; NaN where there is no such class.
template <class T, class Bound>
DS_INLINE double termOf(const T *row, int64_t size, int64_t target, float lse, Bound bound) {
  const bool valid = target >= 0 && target < size;
  return valid ? static_cast<double>(lse) - bounded(bound, toFloat(row[target])) : __builtin_nan("");
}

/// The sum as the mean over `count` rows, or its part of that over a batch of more. Nothing is 0, and no
/// share of any mean.
DS_INLINE float meanOf(double total, int64_t count, const View *denominator) {
  const double divisor = denominator ? *floats(*denominator) : static_cast<double>(count);
  return count == 0 ? 0 : static_cast<float>(total / divisor);
}

template <class T, class Bound>
void forward(const LibraryCall &call, Bound bound) {
  const View &logits = call.operands[0], &targets = call.operands[1];
  float *lse = floats(call.operands[3]);
  const int64_t rows = logits.shape[0], size = logits.shape[1], stride = logits.strides[0];
  const int64_t ignore = call.params[0];
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      lse[i] = logSumExp(elements<T>(logits) + i * stride, size, bound);
  };
  forRanges(rows, 1, call.threads, body);
  const int64_t count = countTargets(targets, rows, ignore);
  const double total = sumOfRows(rows, [&](int64_t i) {
    const int64_t target = idAt(targets, i);
    return target == ignore ? 0 : termOf(elements<T>(logits) + i * stride, size, target, lse[i], bound);
  });
  *floats(call.operands[2]) = meanOf(total, count, call.numOperands > 5 ? &call.operands[5] : nullptr);
  *floats(call.operands[4]) = static_cast<float>(count);
}

/// Writes the gradient of one row; `to` may lie over `from`.
template <class T, class Bound>
DS_INLINE void rowGradient(const T *from, T *to, int64_t size, int64_t target, float lse, float factor,
                           Bound bound) {
  const bool valid = target >= 0 && target < size;
  const float hit = valid ? bounded(bound, toFloat(from[target])) : 0;
  scaledExp(from, to, size, lse, factor, bound);
  if (valid)
    setFloat(to[target], bound.times(splat(vecExp(splat(hit - lse))[0] * factor - factor), splat(hit))[0]);
}

template <class T, class Bound>
void backward(const LibraryCall &call, Bound bound) {
  const View &logits = call.operands[0], &targets = call.operands[1], &dlogits = call.operands[5];
  const float *lse = floats(call.operands[2]);
  const float factor = *floats(call.operands[4]) / *floats(call.operands[3]);
  const int64_t rows = logits.shape[0], size = logits.shape[1];
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t target = idAt(targets, i);
      T *to = elements<T>(dlogits) + i * dlogits.strides[0];
      if (target == call.params[0])
        __builtin_memset(to, 0, static_cast<size_t>(size) * sizeof(T));
      else
        rowGradient(elements<T>(logits) + i * logits.strides[0], to, size, target, lse[i], factor, bound);
    }
  };
  forRanges(rows, 1, call.threads, body);
}

template <class T, class Bound>
void withGradient(const LibraryCall &call, Bound bound) {
  const View &logits = call.operands[0], &targets = call.operands[1], &dlogits = call.operands[5];
  const View *denominator = call.numOperands > 6 ? &call.operands[6] : nullptr;
  float *terms = static_cast<float *>(call.workspace);
  const int64_t rows = logits.shape[0], size = logits.shape[1], ignore = call.params[0];
  const int64_t count = countTargets(targets, rows, ignore);
  const float divisor = denominator ? *floats(*denominator) : static_cast<float>(count);
  const float factor = *floats(call.operands[2]) / divisor;
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t target = idAt(targets, i);
      const T *from = elements<T>(logits) + i * logits.strides[0];
      T *to = elements<T>(dlogits) + i * dlogits.strides[0];
      terms[i] = 0;
      if (target == ignore) {
        __builtin_memset(to, 0, static_cast<size_t>(size) * sizeof(T));
        continue;
      }
      const float lse = logSumExp(from, size, bound);
      terms[i] = static_cast<float>(termOf(from, size, target, lse, bound));
      rowGradient(from, to, size, target, lse, factor, bound);
    }
  };
  forRanges(rows, 1, call.threads, body);
  const double total = sumOfRows(rows, [&](int64_t i) { return static_cast<double>(terms[i]); });
  *floats(call.operands[3]) = meanOf(total, count, denominator);
  *floats(call.operands[4]) = static_cast<float>(count);
}

/// Calls body(element, bound) with a value of the logits' type and with the bound that the params say.
template <class Body>
DS_INLINE void withForm(const LibraryCall &call, Body &&body) {
  const float cap = call.numParams > 1 ? static_cast<float>(asDouble(call.params[1])) : 0;
  withType(call.operands[0].dtype,
           [&](auto element) { cap != 0 ? body(element, Cap{cap}) : body(element, NoCap{}); });
}

} // namespace

void crossEntropyForward(const LibraryCall &call) {
  withForm(call, [&](auto element, auto bound) { forward<decltype(element)>(call, bound); });
}

void crossEntropyBackward(const LibraryCall &call) {
  withForm(call, [&](auto element, auto bound) { backward<decltype(element)>(call, bound); });
}

void crossEntropyWithGradient(const LibraryCall &call) {
  withForm(call, [&](auto element, auto bound) { withGradient<decltype(element)>(call, bound); });
}

} // namespace ds::rt::DS_ISA
