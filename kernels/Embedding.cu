//===- Embedding.cu - Looks rows up, and adds their gradients, on CUDA ---------===//
//
// Backward: the tokens are sorted by id first (SortIds.cu). The rows of one id are then added in the order of
// the tokens, in f32, and the table's row is written once, with the bits of the CPU's kernel. Few rows are a
// warp's work; many are shared out by columns, so that more threads have rows under way.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

namespace ds::rt::cuda {

DS_DEVICE int64_t idAt(const EmbeddingCall &call, int64_t i) {
  return call.wideIds ? static_cast<const int64_t *>(call.ids)[i] : static_cast<const int32_t *>(call.ids)[i];
}

/// A block is one row. An id outside the table reads as NaN, or as 0 where the table is a part of one.
template <class T>
DS_DEVICE void lookUp(const EmbeddingCall &call) {
  const int64_t i = blockIdx.x, id = idAt(call, i);
  T *to = static_cast<T *>(call.out) + i * call.width;
  const bool inside = id >= 0 && id < call.rows;
  const T *from = static_cast<const T *>(call.table) + (inside ? id : 0) * call.tableStride;
  for (int64_t c = threadIdx.x; c < call.width; c += blockDim.x) {
    T value;
    setFloat(value, call.isPart ? 0.0f : quietNaN());
    to[c] = inside ? from[c] : value;
  }
}

//===----------------------------------------------------------------------===//
// Gradient
//===----------------------------------------------------------------------===//

/// `count` neighbours, loaded and stored at once where that is possible.
template <class T, int count>
struct alignas(count * sizeof(T) < 16 ? count * sizeof(T) : 16) Pack {
  T values[count];
};

/// Adds the rows of the sorted places [first, last) to columns [column, column + count) of a table's row, in
/// order, `kAtOnce` rows under way.
template <class T, class Table, int count, int kAtOnce>
DS_DEVICE void addColumns(const EmbeddingCall &call, Table *to, int64_t column, int first, int last) {
  const T *rows = static_cast<const T *>(call.table) + column;
  auto *target = &wholeAt<Pack<Table, count>>(to + column);
  Pack<Table, count> result = *target;
  float sums[count];
#pragma unroll
  for (int k = 0; k < count; ++k)
    sums[k] = toFloat(result.values[k]);
  for (int place = first; place < last; place += kAtOnce) {
    Pack<T, count> loaded[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (place + u < last)
        loaded[u] = wholeAt<const Pack<T, count>>(rows + call.order[place + u] * call.width);
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (place + u < last)
#pragma unroll
        for (int k = 0; k < count; ++k)
          sums[k] += toFloat(loaded[u].values[k]);
  }
#pragma unroll
  for (int k = 0; k < count; ++k)
    setFloat(result.values[k], sums[k]);
  *target = result;
}

/// Whether an id's places begin at `place`: it is one of the table and not the id before.
DS_DEVICE bool isFirst(const EmbeddingCall &call, int place) {
  return place < call.numIds && call.keys[place] < call.rows &&
         (place == 0 || call.keys[place - 1] != call.keys[place]);
}

/// A warp has a place, and adds up the rows of an id that begins there, unless they are many.
template <class T, class Table, int count>
DS_DEVICE void addFew(const EmbeddingCall &call) {
  const int place = static_cast<int>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
  if (!isFirst(call, place))
    return;
  const int32_t key = call.keys[place];
  int last = place + 1;
  while (last < call.numIds && last <= place + kFewRows && call.keys[last] == key)
    ++last;
  if (last - place > kFewRows)
    return;
  Table *to = static_cast<Table *>(call.out) + key * call.tableStride;
  for (int64_t column = threadIdx.x % 32 * count; column < call.width; column += 32 * count)
    addColumns<T, Table, count, 4>(call, to, column, place, last);
}

/// A block has kFewRows places, of which an id with more rows than that begins at one at most, and some
/// columns.
template <class T, class Table, int count>
DS_DEVICE void addMany(const EmbeddingCall &call) {
  const int64_t wide = blockDim.x * count; // columns of a block
  const int tiles = static_cast<int>((call.width + wide - 1) / wide);
  const int base = static_cast<int>(blockIdx.x) / tiles * kFewRows;
  int first = -1;
  for (int place = base; place < base + kFewRows; ++place)
    if (place + kFewRows < call.numIds && call.keys[place] == call.keys[place + kFewRows] &&
        isFirst(call, place))
      first = place;
  const int64_t column = static_cast<int>(blockIdx.x) % tiles * wide + threadIdx.x * count;
  if (first < 0 || column >= call.width)
    return;
  const int32_t key = call.keys[first];
  int last = first + kFewRows, end = static_cast<int>(call.numIds);
  while (end - last > 1) { // keys rise: the last place that has this one
    const int middle = last + (end - last) / 2;
    (call.keys[middle] == key ? last : end) = middle;
  }
  Table *to = static_cast<Table *>(call.out) + key * call.tableStride;
  addColumns<T, Table, count, 16>(call, to, column, first, last + 1);
}

/// Calls one of them for the table's type and as many columns at once as rows are aligned for.
#define DS_FOR_TABLE(name, function, atOnce)                                                                 \
  template <class T>                                                                                         \
  DS_DEVICE void name(const EmbeddingCall &call) {                                                           \
    constexpr int kWide = atOnce;                                                                            \
    if (call.floatTable && call.aligned)                                                                     \
      function<T, float, kWide>(call);                                                                       \
    else if (call.floatTable)                                                                                \
      function<T, float, 1>(call);                                                                           \
    else if (call.aligned)                                                                                   \
      function<T, T, kWide>(call);                                                                           \
    else                                                                                                     \
      function<T, T, 1>(call);                                                                               \
  }
DS_FOR_TABLE(embeddingFew, addFew, 16 / sizeof(T))
DS_FOR_TABLE(embeddingMany, addMany, 2)
#undef DS_FOR_TABLE

} // namespace ds::rt::cuda

DS_ENTRIES(ds_embedding_forward, lookUp, EmbeddingCall, 256)
DS_ENTRIES(ds_embedding_few, embeddingFew, EmbeddingCall, 256)
#define DS_ALL_REGISTERS 128, 1 // for the rows under way
DS_ENTRIES(ds_embedding_many, embeddingMany, EmbeddingCall, DS_ALL_REGISTERS)
