//===- FillCopy.cpp - Sets and copies strided buffers --------------------------===//
//
// Both first merge the dimensions that memory makes one of, so that the usual packed case is one long run,
// and then hand out rows of the innermost dimension. A copy is blocked by two dimensions when only the
// destination's innermost stride is 1, which is a transposition.
//
//===---------------------------------------------------------------------------===//
#include "Kernel.h"

namespace ds::rt::DS_ISA {
namespace {

constexpr int kMaxRank = 16;
constexpr int64_t kGrainElements = 16384;
constexpr int64_t kTile = 16; // elements of a transposition tile's side: a cache line of f32

/// Up to two views walked together, with adjacent dimensions merged and sizes of 1 dropped.
struct Walk {
  int rank = 0;
  int64_t shape[kMaxRank + 1], a[kMaxRank + 1], b[kMaxRank + 1];

  Walk(const View &x, const View &y) {
    for (uint32_t d = 0; d < x.rank; ++d) {
      if (x.shape[d] == 1)
        continue;
      const int64_t size = x.shape[d];
      if (rank > 0 && a[rank - 1] == size * x.strides[d] && b[rank - 1] == size * y.strides[d]) {
        shape[rank - 1] *= size;
        a[rank - 1] = x.strides[d];
        b[rank - 1] = y.strides[d];
        continue;
      }
      shape[rank] = size;
      a[rank] = x.strides[d];
      b[rank] = y.strides[d];
      ++rank;
    }
    if (rank == 0) {
      shape[0] = a[0] = b[0] = 1;
      rank = 1;
    }
  }

  /// Product of the sizes of dimensions [0, last).
  int64_t outer(int last) const {
    int64_t count = 1;
    for (int d = 0; d < last; ++d)
      count *= shape[d];
    return count;
  }
  /// Offsets of entry `index` of dimensions [0, last), counted in row-major order.
  void offsets(int64_t index, int last, int64_t &atA, int64_t &atB) const {
    atA = atB = 0;
    for (int d = last; d-- > 0;) {
      const int64_t i = index % shape[d];
      index /= shape[d];
      atA += i * a[d];
      atB += i * b[d];
    }
  }
};

template <class T>
void copyRun(const T *from, T *to, int64_t count, int64_t fromStride, int64_t toStride) {
  if (fromStride == 1 && toStride == 1)
    __builtin_memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  else
    for (int64_t i = 0; i < count; ++i)
      to[i * toStride] = from[i * fromStride];
}

/// Splits one long run so that all threads share it; otherwise splits the rows.
template <class T>
void copyRows(const Walk &walk, const T *from, T *to, uint32_t threads) {
  const int last = walk.rank - 1;
  const int64_t inner = walk.shape[last], rows = walk.outer(last);
  if (rows == 1) {
    auto body = [&](int64_t begin, int64_t end) {
      copyRun(from + begin * walk.a[last], to + begin * walk.b[last], end - begin, walk.a[last],
              walk.b[last]);
    };
    return forRanges(inner, kGrainElements, threads, body);
  }
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t atA, atB;
      walk.offsets(row, last, atA, atB);
      copyRun(from + atA, to + atB, inner, walk.a[last], walk.b[last]);
    }
  };
  forRanges(rows, maxOf(1, kGrainElements / maxOf(inner, 1)), threads, body);
}

/// The dimension in which `from` is contiguous is not the innermost: copies tiles of the two.
template <class T>
void copyTransposed(const Walk &walk, const T *from, T *to, uint32_t threads) {
  const int y = walk.rank - 2, x = walk.rank - 1;
  const int64_t tilesY = (walk.shape[y] + kTile - 1) / kTile, matrices = walk.outer(y);
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t atA, atB;
      walk.offsets(unit / tilesY, y, atA, atB);
      const int64_t y0 = unit % tilesY * kTile, y1 = minOf(y0 + kTile, walk.shape[y]);
      for (int64_t x0 = 0; x0 < walk.shape[x]; x0 += kTile)
        for (int64_t j = y0; j < y1; ++j)
          for (int64_t i = x0; i < minOf(x0 + kTile, walk.shape[x]); ++i)
            to[atB + j * walk.b[y] + i * walk.b[x]] = from[atA + j * walk.a[y] + i * walk.a[x]];
    }
  };
  forRanges(matrices * tilesY, maxOf(1, kGrainElements / (kTile * walk.shape[x])), threads, body);
}

template <class T>
void copyTyped(const LibraryCall &call) {
  const View &from = call.operands[0], &to = call.operands[1];
  if (countOf(from) == 0)
    return;
  const Walk walk(from, to);
  const T *source = static_cast<const T *>(from.data);
  T *target = static_cast<T *>(to.data);
  if (walk.rank >= 2 && walk.a[walk.rank - 1] != 1 && walk.a[walk.rank - 2] == 1)
    copyTransposed(walk, source, target, call.threads);
  else
    copyRows(walk, source, target, call.threads);
}

template <class T>
void fillTyped(const LibraryCall &call, T value) {
  const View &out = call.operands[0];
  if (countOf(out) == 0)
    return;
  const Walk walk(out, out);
  T *data = static_cast<T *>(out.data);
  const int last = walk.rank - 1;
  const int64_t inner = walk.shape[last], rows = walk.outer(last), step = walk.a[last];
  if (rows == 1) {
    auto body = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        data[i * step] = value;
    };
    return forRanges(inner, kGrainElements, call.threads, body);
  }
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t at, unused;
      walk.offsets(row, last, at, unused);
      for (int64_t i = 0; i < inner; ++i)
        data[at + i * step] = value;
    }
  };
  forRanges(rows, maxOf(1, kGrainElements / maxOf(inner, 1)), call.threads, body);
}

/// The upper half of a float's bits, rounded to nearest even: bfloat16.
uint16_t toBFloat16(float value) {
  uint32_t word;
  __builtin_memcpy(&word, &value, 4);
  if (value != value)
    return 0x7fc0;
  return static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

} // namespace

void copy(const LibraryCall &call) {
  switch (call.operands[0].dtype) {
  case DType::F64:
  case DType::I64:
    return copyTyped<uint64_t>(call);
  case DType::F32:
  case DType::I32:
    return copyTyped<uint32_t>(call);
  case DType::F16:
  case DType::BF16:
    return copyTyped<uint16_t>(call);
  default:
    return copyTyped<uint8_t>(call);
  }
}

void fill(const LibraryCall &call) {
  const double value = asDouble(call.params[0]);
  switch (call.operands[0].dtype) {
  case DType::F32:
    return fillTyped(call, static_cast<float>(value));
  case DType::F64:
    return fillTyped(call, value);
  case DType::F16: {
    const _Float16 half = static_cast<_Float16>(value);
    uint16_t word;
    __builtin_memcpy(&word, &half, 2);
    return fillTyped(call, word);
  }
  case DType::BF16:
    return fillTyped(call, toBFloat16(static_cast<float>(value)));
  case DType::I64:
    return fillTyped(call, static_cast<int64_t>(value));
  case DType::I32:
    return fillTyped(call, static_cast<int32_t>(value));
  case DType::I8:
    return fillTyped(call, static_cast<int8_t>(value));
  case DType::U8:
    return fillTyped(call, static_cast<uint8_t>(value));
  case DType::Bool:
    return fillTyped(call, static_cast<uint8_t>(value != 0));
  }
}

} // namespace ds::rt::DS_ISA
