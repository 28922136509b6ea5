//===- AttentionParts.cu - Adds up the gradients that blocks of scores give ------===//
//
// A block of AttentionPieces.h gives a part of the gradients of its queries, keys and values, in 16 bits. The
// sum of the parts is kept in f32, in the order of the launches, and rounded once where the last one comes.
// What is read and written is eight elements at a time: heads are multiples of that.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

namespace ds::rt::cuda {

/// Sums of the vector `at` of a part: rows, heads and elements of a head follow each other there.
template <class T>
DS_DEVICE void addVector(const AttentionPart &part, int size, int64_t at) {
  struct alignas(16) Narrow {
    T values[kAttentionVector];
  };
  struct alignas(16) Quad {
    float values[4];
  };
  const int64_t perHead = size / kAttentionVector, head = at / perHead;
  const int64_t row = head / part.heads;
  const bool ends = row < part.ended;
  const Narrow more = static_cast<const Narrow *>(part.part)[at];
  Quad *sums = reinterpret_cast<Quad *>(part.sum) + 2 * at;
  float total[kAttentionVector];
  for (int half = 0; half < 2; ++half) {
    Quad sum{};
    if (row < part.summed)
      sum = sums[half];
    for (int k = 0; k < 4; ++k)
      total[4 * half + k] = sum.values[k] += toFloat(more.values[4 * half + k]);
    if (!ends)
      sums[half] = sum;
  }
  if (!ends)
    return;
  T *out = static_cast<T *>(part.out) + row * part.rowStride + (head - row * part.heads) * part.headStride;
  Narrow rounded;
  for (int k = 0; k < kAttentionVector; ++k)
    setFloat(rounded.values[k], total[k]);
  reinterpret_cast<Narrow *>(out)[at % perHead] = rounded;
}

template <class T>
DS_DEVICE void addParts(const AttentionPartsCall &call) {
  int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
#pragma unroll
  for (const AttentionPart &part : call.parts) { // one without rows is passed over
    const int64_t vectors = part.rows * part.heads * (call.size / kAttentionVector);
    if (at >= 0 && at < vectors)
      addVector<T>(part, call.size, at);
    at -= vectors;
  }
}

/// Of a block the slopes count rows and columns from its own first ones; the logarithms make up for it.
DS_DEVICE void shiftRows(const AttentionShiftCall &call) {
  const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, head = at / call.rows,
                row = at % call.rows;
  if (head < call.heads)
    call.to[head * call.toStrides[0] + row * call.toStrides[1]] =
        call.from[head * call.fromStrides[0] + row * call.fromStrides[1]] + call.slopes[head] * call.distance;
}

} // namespace ds::rt::cuda

DS_KERNEL __launch_bounds__(256) ds_attention_parts_bf16(ds::rt::cuda::AttentionPartsCall call) {
  ds::rt::cuda::addParts<ds::rt::cuda::BFloat16>(call);
}
DS_KERNEL __launch_bounds__(256) ds_attention_parts_f16(ds::rt::cuda::AttentionPartsCall call) {
  ds::rt::cuda::addParts<ds::rt::cuda::Half>(call);
}
DS_KERNEL __launch_bounds__(256) ds_attention_shift(ds::rt::cuda::AttentionShiftCall call) {
  ds::rt::cuda::shiftRows(call);
}
