//===- CrossEntropy.cu - Softmax cross-entropy without the softmax, on CUDA ----===//
//
// A block takes a row and reads it once: each thread keeps a maximum and the sum of exponentials below it,
// which it scales when the maximum grows. Forward and gradient in one keep the row meanwhile, as much of it
// as shared memory has, and write the gradient, in place if asked: memory is read once and written once. What
// a row has beyond that is read again, last first, from where cache may still have it.
//
// The terms of the rows are summed in double over the blocks of 64 rows that the CPU's kernel has, in its
// order. Exponentials of 16-bit logits are the processor's own, to a few units of f32's last place, where the
// result is rounded to 16 bits or is a sum of many.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

namespace ds::rt::cuda {

DS_DEVICE int64_t targetAt(const CrossEntropyCall &call, int64_t i) {
  return call.wideIds ? static_cast<const int64_t *>(call.targets)[i]
                      : static_cast<const int32_t *>(call.targets)[i];
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// e^x, for logits of type T.
template <class T>
DS_DEVICE float expFor(float x) {
  return sizeof(T) == sizeof(float) ? expf(x) : fastExp(x);
}

template <bool hasCap>
DS_DEVICE float bounded(float x, float cap) {
  return hasCap ? capped(x, cap) : x;
}

/// The largest of some numbers, and the sum of e^(x - top) over them; NaN among them is in the sum alone.
struct ExpSum {
  float top, sum;
};

/// Adds `count` numbers.
template <class T, int count>
DS_DEVICE void addTo(ExpSum &to, const float (&x)[count]) {
  float top = to.top;
#pragma unroll
  for (int k = 0; k < count; ++k)
    top = fmaxf(top, x[k]);
  if (top > to.top) {
    to.sum *= expFor<T>(to.top - top);
    to.top = top;
  }
  const float shift = top == -infinity() ? 0.0f : top; // infinities have no difference
  float terms[count];
#pragma unroll
  for (int k = 0; k < count; ++k)
    terms[k] = expFor<T>(x[k] - shift);
#pragma unroll
  for (int width = 1; width < count; width *= 2)
#pragma unroll
    for (int k = 0; k + width < count; k += 2 * width)
      terms[k] += terms[k + width];
  to.sum += terms[0];
}

/// The log of all threads' sums, for all threads; infinities and NaN come out as they should.
template <class T>
DS_DEVICE float logSumExp(ExpSum mine, float *memory) {
  const float top = acrossBlock<false>(mine.top, memory);
  const float sum = acrossBlock<true>(mine.sum * expFor<T>(mine.top - top), memory);
  return top == -infinity() || top == infinity() ? top : top + logf(sum);
}

/// Vectors that a thread has under way; a cap takes registers, and longer than memory.
template <bool hasCap>
constexpr int kReadAtOnce = hasCap ? 1 : 4;

/// Sums a row's elements over the threads' shares of it; of the first `kept` vectors copies are left in
/// `copy`.
template <class T, bool hasCap>
DS_DEVICE ExpSum sumRow(const T *row, const RowParts<T> &parts, int kept, Vector<T> *copy, float cap) {
  ExpSum sum{-infinity(), 0.0f};
  const auto addOne = [&](int j) {
    const float x[1] = {bounded<hasCap>(toFloat(row[j]), cap)};
    addTo<T>(sum, x);
  };
  const auto vectorAt = [&](int v) {
    return wholeAt<const Vector<T>>(row + parts.head + v * Vector<T>::kSize);
  };
  constexpr int kAtOnce = kReadAtOnce<hasCap>;
  const int step = blockDim.x, thread = threadIdx.x;
  if (thread < parts.head)
    addOne(thread);
  for (int first = thread; first < parts.vectors; first += kAtOnce * step) {
    Vector<T> loaded[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (first + u * step < parts.vectors)
        loaded[u] = vectorAt(first + u * step);
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int v = first + u * step;
      if (v >= parts.vectors)
        break;
      if (v < kept)
        copy[v] = loaded[u];
      float x[Vector<T>::kSize];
#pragma unroll
      for (int k = 0; k < Vector<T>::kSize; ++k)
        x[k] = bounded<hasCap>(toFloat(loaded[u].values[k]), cap);
      addTo<T>(sum, x);
    }
  }
  if (parts.tail() + thread < parts.size)
    addOne(parts.tail() + thread);
  return sum;
}

/// What makes a row's gradient, but for the target's element.
struct Slope {
  float lse, factor, cap;

  template <class T, bool hasCap>
  DS_DEVICE_MEMBER float at(float logit) const {
    const float y = bounded<hasCap>(logit, cap), value = expFor<T>(y - lse) * factor;
    return hasCap ? value * slopeOfCap(y, cap) : value;
  }
  /// The target's own, of the logit with its cap.
  template <class T, bool hasCap>
  DS_DEVICE_MEMBER float atTarget(float y) const {
    const float value = expFor<T>(y - lse) * factor - factor;
    return hasCap ? value * slopeOfCap(y, cap) : value;
  }
};

/// Writes a vector's gradient, at once where `to` lies as the logits do.
template <class T, bool hasCap>
DS_DEVICE void writeVector(const Vector<T> &logits, T *to, bool isAligned, const Slope &slope) {
  Vector<T> result;
#pragma unroll
  for (int k = 0; k < Vector<T>::kSize; k += 2)
    setPair(&result.values[k], slope.at<T, hasCap>(toFloat(logits.values[k])),
            slope.at<T, hasCap>(toFloat(logits.values[k + 1])));
  if (isAligned)
    wholeAt<Vector<T>>(to) = result;
  else
    for (int k = 0; k < Vector<T>::kSize; ++k)
      to[k] = result.values[k];
}

/// Writes a row's gradient without the target's share. Every element is read and written by one thread, the
/// one that has its copy, for `to` may lie over the row. Of what has no copy it has `kAtOnce` vectors under
/// way.
template <class T, bool hasCap, int kAtOnce>
DS_DEVICE void writeRow(const T *row, T *to, const RowParts<T> &parts, int kept, const Vector<T> *copy,
                        const Slope &slope) {
  const bool isAligned = (reinterpret_cast<uint64_t>(row) ^ reinterpret_cast<uint64_t>(to)) % 16 == 0;
  const auto vectorAt = [&](int v) {
    return wholeAt<const Vector<T>>(row + parts.head + v * Vector<T>::kSize);
  };
  const int step = blockDim.x, thread = threadIdx.x;
  const auto write = [&](int v, const Vector<T> &logits) {
    writeVector<T, hasCap>(logits, to + parts.head + v * Vector<T>::kSize, isAligned, slope);
  };
  const auto writeOne = [&](int j) { setFloat(to[j], slope.at<T, hasCap>(toFloat(row[j]))); };
  if (parts.tail() + thread < parts.size)
    writeOne(parts.tail() + thread);
  // Down from the thread's last vector, as long as there is no copy.
  int last = thread + (parts.vectors - 1 - thread) / step * step;
  if (thread >= parts.vectors)
    last = -1;
  for (; last >= kept; last -= kAtOnce * step) {
    Vector<T> loaded[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (last - u * step >= kept)
        loaded[u] = vectorAt(last - u * step);
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (last - u * step >= kept)
        write(last - u * step, loaded[u]);
  }
  const int copies = minOf(kept, parts.vectors);
#pragma unroll 1 // a vector is enough to hide shared memory behind, and registers are few
  for (int v = thread; v < copies; v += step) {
    const Vector<T> whole = copy[v]; // by value, for its elements are not to be loaded one by one
    write(v, whole);
  }
  if (thread < parts.head)
    writeOne(thread);
}

/// A row whose target is ignored has no gradient.
template <class T>
DS_DEVICE void clearRow(T *to, int64_t size) {
  const RowParts<T> parts(to, static_cast<int>(size));
  const int step = blockDim.x, thread = threadIdx.x;
  T zero;
  setFloat(zero, 0.0f);
  Vector<T> zeros;
  for (int k = 0; k < Vector<T>::kSize; ++k)
    zeros.values[k] = zero;
  if (thread < parts.head)
    to[thread] = zero;
  for (int v = thread; v < parts.vectors; v += step)
    wholeAt<Vector<T>>(to + parts.head + v * Vector<T>::kSize) = zeros;
  if (parts.tail() + thread < parts.size)
    to[parts.tail() + thread] = zero;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// lse[row] = log of the sum of exponentials.
template <class T, bool hasCap>
DS_DEVICE void rowLogSumExp(const CrossEntropyCall &call) {
  DS_SHARED float memory[32];
  const T *row = static_cast<const T *>(call.logits) + blockIdx.x * call.stride;
  const RowParts<T> parts(row, static_cast<int>(call.size));
  const float lse = logSumExp<T>(
      sumRow<T, hasCap>(row, parts, /*kept=*/0, static_cast<Vector<T> *>(nullptr), call.cap), memory);
  if (threadIdx.x == 0)
    call.lse[blockIdx.x] = lse;
}

/// One block: how many targets are not ignored; exact below 2^24, as the float is.
DS_DEVICE void countTargets(const CrossEntropyCall &call) {
  DS_SHARED float memory[32];
  int64_t count = 0;
  for (int64_t i = threadIdx.x; i < call.rows; i += blockDim.x)
    count += targetAt(call, i) != call.ignoreIndex;
  const float all = acrossBlock<true>(static_cast<float>(count), memory);
  if (threadIdx.x == 0)
    *call.count = all;
}

/// One block: writes the sum of term(row) as the mean over the rows that count, or as their part of the mean
/// over a larger batch.
template <class Term>
DS_DEVICE void writeMean(const CrossEntropyCall &call, Term term) {
  constexpr int64_t kBlockRows = 64;
  DS_SHARED double sums[256];
  double total = 0;
  const int64_t blocks = (call.rows + kBlockRows - 1) / kBlockRows;
  for (int64_t base = 0; base < blocks; base += blockDim.x) {
    const int64_t first = (base + threadIdx.x) * kBlockRows;
    double sum = 0;
    for (int64_t i = first; i < minOf(first + kBlockRows, call.rows); ++i)
      sum += term(i);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int64_t k = 0; threadIdx.x == 0 && k < minOf<int64_t>(blockDim.x, blocks - base); ++k)
      total += sums[k];
    __syncthreads();
  }
  if (threadIdx.x != 0)
    return;
  const double denominator = call.denominator ? *call.denominator : *call.count;
  *call.loss = *call.count == 0 ? 0.0f : static_cast<float>(total / denominator); // nothing is 0
}

/// The logit of a row's target, with its cap; NaN where there is no such class.
template <class T>
DS_DEVICE float targetLogit(const CrossEntropyCall &call, int64_t row, int64_t target) {
  const bool isClass = target >= 0 && target < call.size;
  return isClass ? capped(toFloat(static_cast<const T *>(call.logits)[row * call.stride + target]), call.cap)
                 : quietNaN();
}

template <class T>
DS_DEVICE void meanLoss(const CrossEntropyCall &call) {
  writeMean(call, [&](int64_t i) {
    const int64_t target = targetAt(call, i);
    return target == call.ignoreIndex
               ? 0.0
               : static_cast<double>(call.lse[i]) - static_cast<double>(targetLogit<T>(call, i, target));
  });
}

/// The same of terms that are there.
DS_DEVICE void meanOfTerms(const CrossEntropyCall &call) {
  writeMean(call, [&](int64_t i) { return static_cast<double>(call.lse[i]); });
}

//===----------------------------------------------------------------------===//
// Gradient
//===----------------------------------------------------------------------===//

/// Adds the target's share, once all threads have written; `y` was read before they did.
template <class T, bool hasCap>
DS_DEVICE void writeTarget(const CrossEntropyCall &call, T *to, int64_t target, float y, const Slope &slope) {
  __syncthreads();
  if (threadIdx.x == 0 && target >= 0 && target < call.size)
    setFloat(to[target], slope.atTarget<T, hasCap>(y));
}

template <class T, bool hasCap>
DS_DEVICE void rowGradient(const CrossEntropyCall &call) {
  const int64_t row = blockIdx.x, target = targetAt(call, row);
  const T *from = static_cast<const T *>(call.logits) + row * call.stride;
  T *to = static_cast<T *>(call.dlogits) + row * call.dstride;
  if (target == call.ignoreIndex)
    return clearRow(to, call.size);
  const float y = threadIdx.x == 0 ? targetLogit<T>(call, row, target) : 0.0f;
  const Slope slope{call.lse[row], *call.dloss / *call.count, call.cap};
  __syncthreads(); // `to` may lie over `from`
  writeRow<T, hasCap, kReadAtOnce<hasCap>>(from, to, RowParts<T>(from, static_cast<int>(call.size)),
                                           /*kept=*/0, static_cast<Vector<T> *>(nullptr), slope);
  writeTarget<T, hasCap>(call, to, target, y, slope);
}

/// Both: the term of the row in the loss, in place of its sum of exponentials, and its gradient.
template <class T, bool hasCap>
DS_DEVICE void rowWithGradient(const CrossEntropyCall &call) {
  DS_SHARED float memory[32];
  DS_DYNAMIC_SHARED(Vector<BFloat16>, shared);
  auto *copy = reinterpret_cast<Vector<T> *>(shared);
  const int64_t row = blockIdx.x, target = targetAt(call, row);
  const T *from = static_cast<const T *>(call.logits) + row * call.stride;
  T *to = static_cast<T *>(call.dlogits) + row * call.dstride;
  if (target == call.ignoreIndex) {
    if (threadIdx.x == 0)
      call.lse[row] = 0;
    return clearRow(to, call.size);
  }
  const float y = threadIdx.x == 0 ? targetLogit<T>(call, row, target) : 0.0f;
  const RowParts<T> parts(from, static_cast<int>(call.size));
  const float lse = logSumExp<T>(sumRow<T, hasCap>(from, parts, call.kept, copy, call.cap), memory);
  if (threadIdx.x == 0)
    call.lse[row] = static_cast<float>(static_cast<double>(lse) - static_cast<double>(y));
  const float divisor = call.denominator ? *call.denominator : *call.count;
  const Slope slope{lse, *call.dloss / divisor, call.cap};
  writeRow<T, hasCap, hasCap ? 1 : 2>(from, to, parts, call.kept, copy, slope);
  writeTarget<T, hasCap>(call, to, target, y, slope);
}

// Entries have the cap apart, so that rows without one are not held up by it.
#define DS_WITH_CAP(name, function)                                                                          \
  template <class T>                                                                                         \
  DS_DEVICE void name(const CrossEntropyCall &call) {                                                        \
    if (call.cap == 0)                                                                                       \
      function<T, false>(call);                                                                              \
    else                                                                                                     \
      function<T, true>(call);                                                                               \
  }
DS_WITH_CAP(crossEntropyRows, rowLogSumExp)
DS_WITH_CAP(crossEntropyBackward, rowGradient)
DS_WITH_CAP(crossEntropyWithGradient, rowWithGradient)
#undef DS_WITH_CAP

} // namespace ds::rt::cuda

#define DS_ONE_BLOCK 256, 1  // of a multiprocessor: it may have all registers
#define DS_TWO_BLOCKS 512, 2 // one waits for memory while the other computes
DS_ENTRIES(ds_cross_entropy_rows, crossEntropyRows, CrossEntropyCall, 512)
DS_ENTRIES(ds_cross_entropy_mean, meanLoss, CrossEntropyCall, DS_ONE_BLOCK)
DS_ENTRIES(ds_cross_entropy_backward, crossEntropyBackward, CrossEntropyCall, 512)
DS_ENTRIES(ds_cross_entropy_with_gradient, crossEntropyWithGradient, CrossEntropyCall, DS_TWO_BLOCKS)
DS_KERNEL __launch_bounds__(1024) ds_cross_entropy_count(ds::rt::cuda::CrossEntropyCall call) {
  ds::rt::cuda::countTargets(call);
}
DS_KERNEL __launch_bounds__(256) ds_cross_entropy_terms(ds::rt::cuda::CrossEntropyCall call) {
  ds::rt::cuda::meanOfTerms(call);
}
