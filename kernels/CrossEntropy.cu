//===- CrossEntropy.cu - Softmax cross-entropy without the softmax, on CUDA ----===//
//
// A block takes a row. Forward reads it twice, the second time from cache where it fits, and keeps one
// number; backward makes the gradient in one pass, in place if asked. The mean is summed in double over the
// blocks of 64 rows that the CPU's kernel has, in its order.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

namespace ds::rt::cuda {

DS_DEVICE int64_t targetAt(const CrossEntropyCall &call, int64_t i) {
  return call.wideIds ? static_cast<const int64_t *>(call.targets)[i]
                      : static_cast<const int32_t *>(call.targets)[i];
}

/// lse[row] = log of the sum of exponentials; infinities and NaN come out as they should.
template <class T>
DS_DEVICE void rowLogSumExp(const CrossEntropyCall &call) {
  DS_SHARED float memory[32];
  const int64_t row = blockIdx.x;
  const T *logits = static_cast<const T *>(call.logits) + row * call.stride;
  float top = -infinity();
  forRow(logits, call.size, [&](int64_t, float x) { top = x > top ? x : top; });
  top = capped(acrossBlock<false>(top, memory), call.cap); // a cap keeps the order
  const bool isEdge = top == -infinity() || top == infinity();
  float sum = 0;
  if (!isEdge)
    forRow(logits, call.size, [&](int64_t, float x) { sum += expf(capped(x, call.cap) - top); });
  sum = acrossBlock<true>(sum, memory);
  if (threadIdx.x == 0)
    call.lse[row] = isEdge ? top : top + logf(sum);
}

/// One block: the mean over the rows that are not ignored, or their part of the mean over a larger batch.
template <class T>
DS_DEVICE void meanLoss(const CrossEntropyCall &call) {
  constexpr int64_t kBlockRows = 64;
  DS_SHARED double sums[256];
  DS_SHARED int64_t counts[256];
  double total = 0;
  int64_t count = 0;
  const int64_t blocks = (call.rows + kBlockRows - 1) / kBlockRows;
  for (int64_t base = 0; base < blocks; base += blockDim.x) {
    const int64_t first = (base + threadIdx.x) * kBlockRows;
    double sum = 0;
    int64_t number = 0;
    for (int64_t i = first; i < minOf(first + kBlockRows, call.rows); ++i) {
      const int64_t target = targetAt(call, i);
      if (target == call.ignoreIndex)
        continue;
      ++number;
      const bool valid = target >= 0 && target < call.size;
      const float logit =
          valid ? toFloat(static_cast<const T *>(call.logits)[i * call.stride + target]) : quietNaN();
      sum += static_cast<double>(call.lse[i]) - static_cast<double>(capped(logit, call.cap));
    }
    sums[threadIdx.x] = sum;
    counts[threadIdx.x] = number;
    __syncthreads();
    for (int64_t k = 0; threadIdx.x == 0 && k < minOf<int64_t>(blockDim.x, blocks - base); ++k) {
      total += sums[k];
      count += counts[k];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    const double denominator = call.denominator ? *call.denominator : static_cast<double>(count);
    *call.loss = count == 0 ? 0.0f : static_cast<float>(total / denominator); // nothing is 0
    *call.count = static_cast<float>(count);
  }
}

template <class T>
DS_DEVICE void rowGradient(const CrossEntropyCall &call) {
  const int64_t row = blockIdx.x, target = targetAt(call, row);
  const T *from = static_cast<const T *>(call.logits) + row * call.stride;
  T *to = static_cast<T *>(call.dlogits) + row * call.dstride;
  const float factor = target == call.ignoreIndex ? 0.0f : *call.dloss / *call.count, lse = call.lse[row];
  // Every element is read and written by the same thread, for `to` may lie over `from`.
  for (int64_t j = threadIdx.x; j < call.size; j += blockDim.x) {
    const float hit = j == target ? factor : 0.0f;
    const float y = capped(toFloat(from[j]), call.cap);
    const float value = (expf(y - lse) * factor - hit) * slopeOfCap(y, call.cap);
    setFloat(to[j], target == call.ignoreIndex ? 0.0f : value);
  }
}

} // namespace ds::rt::cuda

DS_ENTRIES(ds_cross_entropy_rows, rowLogSumExp, CrossEntropyCall, 512)
DS_ENTRIES(ds_cross_entropy_mean, meanLoss, CrossEntropyCall, 256)
DS_ENTRIES(ds_cross_entropy_backward, rowGradient, CrossEntropyCall, 512)
