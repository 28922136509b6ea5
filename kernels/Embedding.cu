//===- Embedding.cu - Looks rows up, and adds their gradients, on CUDA ---------===//
//
// Backward: the block of a token does nothing if an earlier token has its id; else it adds the rows of all
// tokens with this id in index order, in f32, and writes the table's row once. No sorting, no atomics, no
// scratch memory, and the sums of the CPU's kernel. The price is reading the ids again for every distinct id.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

namespace ds::rt::cuda {

DS_DEVICE int64_t idAt(const EmbeddingCall &call, int64_t i) {
  return call.wideIds ? static_cast<const int64_t *>(call.ids)[i] : static_cast<const int32_t *>(call.ids)[i];
}

/// A block is one row. An id outside the table reads as NaN.
template <class T>
DS_DEVICE void lookUp(const EmbeddingCall &call) {
  const int64_t i = blockIdx.x, id = idAt(call, i);
  T *to = static_cast<T *>(call.out) + i * call.width;
  const bool inside = id >= 0 && id < call.rows;
  const T *from = static_cast<const T *>(call.table) + (inside ? id : 0) * call.tableStride;
  for (int64_t c = threadIdx.x; c < call.width; c += blockDim.x) {
    T value;
    setFloat(value, quietNaN());
    to[c] = inside ? from[c] : value;
  }
}

/// Whether a token before `i` has the id; the same for all threads.
DS_DEVICE bool isRepeated(const EmbeddingCall &call, int64_t i, int64_t id) {
  for (int64_t first = 0; first < i; first += blockDim.x) {
    const int64_t j = first + threadIdx.x;
    if (__syncthreads_or(j < i && idAt(call, j) == id))
      return true;
  }
  return false;
}

template <class T, class Table>
DS_DEVICE void addRows(const EmbeddingCall &call) {
  constexpr int kColumns = 4; // of a thread at once
  DS_SHARED int32_t isMatch[256];
  const int64_t token = blockIdx.x, id = idAt(call, token);
  if (id < 0 || id >= call.rows || isRepeated(call, token, id))
    return;
  Table *to = static_cast<Table *>(call.out) + id * call.tableStride;
  const T *rows = static_cast<const T *>(call.table);
  for (int64_t base = 0; base < call.width; base += kColumns * blockDim.x) {
    float sums[kColumns];
    for (int k = 0; k < kColumns; ++k) {
      const int64_t c = base + k * blockDim.x + threadIdx.x;
      sums[k] = c < call.width ? toFloat(to[c]) : 0.0f;
    }
    for (int64_t first = token; first < call.numIds; first += blockDim.x) {
      const int64_t j = first + threadIdx.x;
      const bool mine = j < call.numIds && idAt(call, j) == id;
      isMatch[threadIdx.x] = mine;
      if (__syncthreads_or(mine)) {
        const int count = static_cast<int>(minOf<int64_t>(blockDim.x, call.numIds - first));
        for (int m = 0; m < count; ++m) {
          if (!isMatch[m])
            continue;
          const T *from = rows + (first + m) * call.width + base + threadIdx.x;
          for (int k = 0; k < kColumns; ++k)
            if (base + k * blockDim.x + threadIdx.x < call.width)
              sums[k] += toFloat(from[k * blockDim.x]);
        }
      }
      __syncthreads(); // isMatch is written again
    }
    for (int k = 0; k < kColumns; ++k) {
      const int64_t c = base + k * blockDim.x + threadIdx.x;
      if (c < call.width)
        setFloat(to[c], sums[k]);
    }
  }
}

template <class T>
DS_DEVICE void addGradients(const EmbeddingCall &call) {
  if (call.floatTable)
    addRows<T, float>(call);
  else
    addRows<T, T>(call);
}

} // namespace ds::rt::cuda

DS_ENTRIES(ds_embedding_forward, lookUp, EmbeddingCall, 256)
DS_ENTRIES(ds_embedding_backward, addGradients, EmbeddingCall, 256)
