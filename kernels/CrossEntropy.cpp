//===- CrossEntropy.cpp - Softmax cross-entropy without the softmax ------------===//
//
// Forward reads each row of logits twice (maximum, then the sum of exponentials, the second time from cache)
// and keeps one number per row, from which backward makes the gradient in one pass over memory, in place if
// asked. The mean is summed in double over fixed blocks of 64 rows, so it does not depend on the number of
// threads.
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
  double total = 0;
  int64_t count = 0;
  for (int64_t block = 0; block < rows; block += kBlockRows) {
    double sum = 0;
    for (int64_t i = block; i < minOf(block + kBlockRows, rows); ++i) {
      const int64_t target = idAt(targets, i);
      if (target == ignore)
        continue;
      ++count;
      const bool valid = target >= 0 && target < size;
      if (valid)
        sum +=
            static_cast<double>(lse[i]) - bounded(bound, toFloat(elements<T>(logits)[i * stride + target]));
      else
        sum += __builtin_nan("");
    }
    total += sum;
  }
  const bool isPart = call.numOperands > 5; // of a batch whose mean is over more rows
  const double denominator = isPart ? *floats(call.operands[5]) : static_cast<double>(count);
  // Nothing is 0, and no share of any mean.
  *floats(call.operands[2]) = count == 0 ? 0 : static_cast<float>(total / denominator);
  *floats(call.operands[4]) = static_cast<float>(count);
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
      const T *from = elements<T>(logits) + i * logits.strides[0];
      T *to = elements<T>(dlogits) + i * dlogits.strides[0];
      if (target == call.params[0]) {
        __builtin_memset(to, 0, static_cast<size_t>(size) * sizeof(T));
        continue;
      }
      const bool valid = target >= 0 && target < size;
      const float hit = valid ? bounded(bound, toFloat(from[target])) : 0; // `to` may lie over `from`
      scaledExp(from, to, size, lse[i], factor, bound);
      if (valid)
        setFloat(to[target],
                 bound.times(splat(vecExp(splat(hit - lse[i]))[0] * factor - factor), splat(hit))[0]);
    }
  };
  forRanges(rows, 1, call.threads, body);
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

} // namespace ds::rt::DS_ISA
