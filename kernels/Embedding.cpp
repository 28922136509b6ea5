//===- Embedding.cpp - Looks rows up, and adds their gradients -----------------===//
//
// The backward pass must add the rows that share an id in index order, whatever the number of threads.
// Threads therefore divide the columns, not the ids: each thread walks all ids in order and touches its own
// columns only. An id outside the table reads as NaN and adds nowhere: the host has checked the inputs, so
// this is only ever seen when a program is wrong, and then it must not touch other memory.
//
//===---------------------------------------------------------------------------===//
#include "Kernel.h"

namespace ds::rt::DS_ISA {

void embeddingForward(const LibraryCall &call) {
  const View &table = call.operands[0], &ids = call.operands[1], &out = call.operands[2];
  const int64_t rows = table.shape[0], width = table.shape[1], stride = table.strides[0];
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t id = idAt(ids, i);
      float *to = floats(out) + i * width;
      if (id >= 0 && id < rows)
        __builtin_memcpy(to, floats(table) + id * stride, static_cast<size_t>(width) * sizeof(float));
      else
        for (int64_t c = 0; c < width; ++c)
          to[c] = __builtin_nanf("");
    }
  };
  forRanges(countOf(ids), maxOf(1, 16384 / maxOf(width, 1)), call.threads, body);
}

void embeddingBackward(const LibraryCall &call) {
  const View &ids = call.operands[0], &dout = call.operands[1], &dtable = call.operands[2];
  const int64_t rows = dtable.shape[0], width = dtable.shape[1], stride = dtable.strides[0];
  const bool accumulate = call.params[0] != 0;
  auto clear = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      __builtin_memset(floats(dtable) + r * stride, 0, static_cast<size_t>(width) * sizeof(float));
  };
  if (!accumulate)
    forRanges(rows, maxOf(1, 65536 / maxOf(width, 1)), call.threads, clear);
  const int64_t count = countOf(ids);
  auto add = [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = idAt(ids, i);
      if (id < 0 || id >= rows)
        continue;
      const float *from = floats(dout) + i * width;
      float *to = floats(dtable) + id * stride;
      for (int64_t c = begin; c < end; ++c)
        to[c] += from[c];
    }
  };
  forRanges(width, 64, call.threads, add);
}

} // namespace ds::rt::DS_ISA
