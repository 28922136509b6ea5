//===- Embedding.cpp - Looks rows up, and adds their gradients -----------------===//
//
// The backward pass must add the rows that share an id in index order, whatever the number of threads.
// Threads therefore divide the columns, not the ids: each thread walks all ids in order and touches its own
// columns only. A table of 16-bit elements must not round after every row: the ids are sorted first, in
// planned scratch memory, so that a table row is summed in f32 and written once. An id outside the table
// adds nowhere. Of a part of a table it reads as 0, for another part has its row; else as NaN: the host has
// checked the inputs, so this is only ever seen when a program is wrong, and then it must not touch other
// memory.
//
//===---------------------------------------------------------------------------===//
#include "Narrow.h"

namespace ds::rt::DS_ISA {
namespace {

constexpr int64_t kColumns = 64; ///< of a table row that are summed at a time

template <class T>
void lookUp(const LibraryCall &call) {
  const View &table = call.operands[0], &ids = call.operands[1], &out = call.operands[2];
  const int64_t rows = table.shape[0], width = table.shape[1], stride = table.strides[0];
  const bool isPart = call.numParams > 0 && call.params[0] != 0;
  const float outside = isPart ? 0.0f : __builtin_nanf("");
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t id = idAt(ids, i);
      T *to = elements<T>(out) + i * width;
      if (id >= 0 && id < rows)
        __builtin_memcpy(to, elements<T>(table) + id * stride, static_cast<size_t>(width) * sizeof(T));
      else
        for (int64_t c = 0; c < width; ++c)
          setFloat(to[c], outside);
    }
  };
  forRanges(countOf(ids), maxOf(1, 16384 / maxOf(width, 1)), call.threads, body);
}

/// Adds rows of T to a table of f32.
template <class T>
void addRows(const LibraryCall &call) {
  const View &ids = call.operands[0], &dout = call.operands[1], &dtable = call.operands[2];
  const int64_t rows = dtable.shape[0], width = dtable.shape[1], count = countOf(ids);
  auto add = [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = idAt(ids, i);
      if (id < 0 || id >= rows)
        continue;
      const T *from = elements<T>(dout) + i * width;
      float *to = floats(dtable) + id * dtable.strides[0];
      int64_t c = begin;
      for (; c + kLanes <= end; c += kLanes)
        store(to + c, load(to + c) + load(from + c));
      for (; c < end; ++c)
        to[c] += toFloat(from[c]);
    }
  };
  forRanges(width, kColumns, call.threads, add);
}

/// The numbers [0, count) by id, equal ids in order: a radix sort of the ids' bytes. Returns which half of
/// `scratch`, of 2 * count numbers, holds them.
const int32_t *sortById(const View &ids, int64_t count, int64_t rows, int32_t *scratch) {
  int32_t *from = scratch, *to = scratch + count;
  for (int64_t i = 0; i < count; ++i)
    from[i] = static_cast<int32_t>(i);
  auto keyOf = [&](int32_t i) {
    const int64_t id = idAt(ids, i);
    return static_cast<uint64_t>(id >= 0 && id < rows ? id : rows);
  };
  for (int shift = 0; shift < 64 && static_cast<uint64_t>(rows) >> shift != 0; shift += 8) {
    int64_t starts[257] = {};
    for (int64_t i = 0; i < count; ++i)
      ++starts[(keyOf(from[i]) >> shift & 255) + 1];
    for (int digit = 0; digit < 256; ++digit)
      starts[digit + 1] += starts[digit];
    for (int64_t i = 0; i < count; ++i)
      to[starts[keyOf(from[i]) >> shift & 255]++] = from[i];
    int32_t *swap = from;
    from = to;
    to = swap;
  }
  return from;
}

/// Adds rows of T to a table of T, each table row rounded once.
template <class T>
void addSortedRows(const LibraryCall &call) {
  const View &ids = call.operands[0], &dout = call.operands[1], &dtable = call.operands[2];
  const int64_t rows = dtable.shape[0], width = dtable.shape[1], count = countOf(ids);
  const int32_t *order = sortById(ids, count, rows, static_cast<int32_t *>(call.workspace));
  auto addBlock = [&](int64_t first, int64_t last, int64_t id, int64_t begin, int64_t end) {
    float sums[kColumns];
    T *to = elements<T>(dtable) + id * dtable.strides[0] + begin;
    convertRow(to, sums, end - begin);
    for (int64_t k = first; k < last; ++k) {
      const T *from = elements<T>(dout) + order[k] * width + begin;
      int64_t c = 0;
      for (; c + kLanes <= end - begin; c += kLanes)
        store(sums + c, load(sums + c) + load(from + c));
      for (; c < end - begin; ++c)
        sums[c] += toFloat(from[c]);
    }
    convertRow(sums, to, end - begin);
  };
  auto add = [&](int64_t begin, int64_t end) {
    for (int64_t first = 0, last; first < count; first = last) {
      const int64_t id = idAt(ids, order[first]);
      for (last = first + 1; last < count && idAt(ids, order[last]) == id;)
        ++last;
      if (id < 0 || id >= rows)
        continue;
      for (int64_t c = begin; c < end; c += kColumns)
        addBlock(first, last, id, c, minOf(end, c + kColumns));
    }
  };
  forRanges(width, kColumns, call.threads, add);
}

} // namespace

void embeddingForward(const LibraryCall &call) {
  withType(call.operands[0].dtype, [&](auto element) { lookUp<decltype(element)>(call); });
}

void embeddingBackward(const LibraryCall &call) {
  const View &dout = call.operands[1], &dtable = call.operands[2];
  const int64_t rows = dtable.shape[0], width = dtable.shape[1], stride = dtable.strides[0];
  const int64_t bytes = dtable.dtype == DType::F32 ? 4 : 2;
  auto clear = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      __builtin_memset(static_cast<char *>(dtable.data) + r * stride * bytes, 0,
                       static_cast<size_t>(width * bytes));
  };
  if (call.params[0] == 0)
    forRanges(rows, maxOf(1, 65536 / maxOf(width, 1)), call.threads, clear);
  if (dtable.dtype == DType::F32)
    return withType(dout.dtype, [&](auto element) { addRows<decltype(element)>(call); });
  if (dtable.dtype == DType::BF16)
    return addSortedRows<BFloat16>(call);
  addSortedRows<Half>(call);
}

} // namespace ds::rt::DS_ISA
