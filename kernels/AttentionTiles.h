//===- AttentionTiles.h - The tile products that attention is made of ----------===//
//
// Scores are kept transposed, [key][query], so that maxima and sums over keys are vertical vector operations
// and the only packing is one transposed tile of queries. Every product is then rows of broadcast scalars
// times rows of vectors, which one register-blocked loop does for any strides.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_ATTENTIONTILES_H
#define DS_KERNELS_ATTENTIONTILES_H

#include "AttentionDropout.h"
#include "Cap.h"
#include "Narrow.h"

namespace ds::rt::DS_ISA {

inline constexpr int kTile = 64;     ///< queries and keys of a tile
inline constexpr int kMaxHead = 256; ///< head size that Library.h allows
inline constexpr int kTileVecs = kTile / kLanes;

/// Vectors of a register block: 4 rows of these, their operands and one broadcast fit the register file.
#if defined(__AVX512F__)
inline constexpr int kBlockVecs = 4;
#else
inline constexpr int kBlockVecs = 2;
#endif
inline constexpr int kBlockRows = 4;

/// A scalar operand: element (m, k) is at data[m * row + k * depth].
struct Scalars {
  const float *data;
  int64_t row, depth;
};

/// ROWS x VECS block of c (+)= a * b over `depth`.
template <int ROWS, int VECS>
DS_INLINE void multiplyBlock(const Scalars &a, const float *b, int64_t ldb, float *c, int64_t ldc,
                             int64_t depth, bool accumulate) {
  Vec sums[ROWS][VECS] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vec right[VECS];
    for (int v = 0; v < VECS; ++v)
      right[v] = load(b + k * ldb + v * kLanes);
    for (int m = 0; m < ROWS; ++m) {
      const Vec left = splat(a.data[m * a.row + k * a.depth]);
      for (int v = 0; v < VECS; ++v)
        sums[m][v] += left * right[v];
    }
  }
  for (int m = 0; m < ROWS; ++m)
    for (int v = 0; v < VECS; ++v) {
      float *to = c + m * ldc + v * kLanes;
      store(to, accumulate ? load(to) + sums[m][v] : sums[m][v]);
    }
}

/// The columns that fill no vector.
template <int ROWS>
DS_INLINE void multiplyColumns(const Scalars &a, const float *b, int64_t ldb, float *c, int64_t ldc,
                               int64_t columns, int64_t depth, bool accumulate) {
  for (int m = 0; m < ROWS; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += a.data[m * a.row + k * a.depth] * b[k * ldb + n];
      c[m * ldc + n] = accumulate ? c[m * ldc + n] + sum : sum;
    }
}

template <int ROWS>
DS_INLINE void multiplyRows(const Scalars &a, const float *b, int64_t ldb, float *c, int64_t ldc,
                            int64_t columns, int64_t depth, bool accumulate) {
  int64_t n = 0;
  for (; n + kBlockVecs * kLanes <= columns; n += kBlockVecs * kLanes)
    multiplyBlock<ROWS, kBlockVecs>(a, b + n, ldb, c + n, ldc, depth, accumulate);
  for (; n + kLanes <= columns; n += kLanes)
    multiplyBlock<ROWS, 1>(a, b + n, ldb, c + n, ldc, depth, accumulate);
  multiplyColumns<ROWS>(a, b + n, ldb, c + n, ldc, columns - n, depth, accumulate);
}

/// c[rows, columns] (+)= a[rows, depth] * b[depth, columns].
static inline void multiply(int64_t rows, int64_t columns, int64_t depth, Scalars a, const float *b,
                            int64_t ldb, float *c, int64_t ldc, bool accumulate) {
  int64_t m = 0;
  for (; m + kBlockRows <= rows; m += kBlockRows, a.data += kBlockRows * a.row)
    multiplyRows<kBlockRows>(a, b, ldb, c + m * ldc, ldc, columns, depth, accumulate);
  for (; m < rows; ++m, a.data += a.row)
    multiplyRows<1>(a, b, ldb, c + m * ldc, ldc, columns, depth, accumulate);
}

/// Rows of f32: where they lie in an operand of that type, or copies of 16-bit rows.
struct Rows {
  const float *data;
  int64_t stride;
};
DS_INLINE Rows rowsOf(const float *from, int64_t stride, int64_t, int64_t, float *) { return {from, stride}; }
template <class T>
static inline Rows rowsOf(const T *from, int64_t stride, int64_t rows, int64_t width, float *scratch) {
  for (int64_t r = 0; r < rows; ++r)
    convertRow(from + r * stride, scratch + r * width, width);
  return {scratch, width};
}

/// to[d][t] = from[t * stride + d] * factor for a tile of `rows` rows; the columns beyond become 0.
static inline void packTransposed(Rows from, int64_t rows, int64_t width, float factor, float *to) {
  constexpr int kSquare = 8;
  if (rows < kTile)
    __builtin_memset(to, 0, static_cast<size_t>(width) * kTile * sizeof(float));
  for (int64_t t0 = 0; t0 < rows; t0 += kSquare)
    for (int64_t d = 0; d < width; ++d)
      for (int64_t t = t0; t < minOf(t0 + kSquare, rows); ++t)
        to[d * kTile + t] = from.data[t * from.stride + d] * factor;
}

/// Bounds the scores of `nk` keys, and keeps the derivatives of that where there is a place for them.
static inline void boundTile(Cap bound, float *scores, int64_t nk, float *derivatives) {
  for (int64_t at = 0; at < nk * kTile; at += kLanes) {
    const Vec y = bound(load(scores + at));
    store(scores + at, y);
    if (derivatives)
      store(derivatives + at, bound.times(splat(1), y));
  }
}

/// The operands of one call and where a head of them starts.
struct Attention {
  const View *operands;
  int64_t batch, queries, heads, size, keys, groups;
  bool causal;
  float scale;
  int64_t before, after; ///< positions that a query sees to either side of its own
  float cap;             ///< 0: none
  const View *mask;      ///< or null
  const View *slopes;    ///< or null
  Dropout dropout;
  int64_t firstHead = 0,
          allHeads = 0; ///< of an attention of which these are some heads; where it has dropout

  /// The operands from `fixed` on are the mask, of rank 4, the slopes, of rank 1, the generator, of i64, and
  /// the first head, of rank 0.
  explicit Attention(const LibraryCall &call, uint32_t fixed)
      : operands(call.operands), cap(0), mask(nullptr), slopes(nullptr) {
    const View &q = operands[0], &k = operands[1];
    batch = q.shape[0];
    queries = q.shape[1];
    heads = q.shape[2];
    size = q.shape[3];
    keys = k.shape[1];
    groups = k.shape[2];
    causal = call.params[0] != 0;
    scale = static_cast<float>(asDouble(call.params[1]));
    const bool hasForm = call.numParams > 3; // three: a block, which is cuDNN's
    const int64_t all = queries + keys, window = hasForm && call.params[2] != 0 ? call.params[2] : all;
    before = minOf(window, all) - 1;
    after = causal ? 0 : before;
    if (hasForm)
      cap = static_cast<float>(asDouble(call.params[3]));
    const View *generator = nullptr, *first = nullptr;
    for (uint32_t k = fixed; k < call.numOperands; ++k)
      (operands[k].rank == 0             ? first
       : operands[k].rank != 1           ? mask
       : operands[k].dtype == DType::I64 ? generator
                                         : slopes) = &operands[k];
    if (!generator)
      return;
    dropout = Dropout(asDouble(call.params[4]), call.params[5], *generator);
    allHeads = call.params[6];
    if (first)
      firstHead = *static_cast<const int64_t *>(first->data);
  }

  /// Row `row` of head `head` of a [B, T, H, D] operand.
  template <class T>
  T *rowOf(int operand, int64_t b, int64_t row, int64_t head) const {
    const View &view = operands[operand];
    return elements<T>(view) + b * view.strides[0] + row * view.strides[1] + head * view.strides[2];
  }
  int64_t rowStride(int operand) const { return operands[operand].strides[1]; }
  /// `count` rows as f32; `scratch` is a tile for those that are not.
  template <class T>
  Rows load(int operand, int64_t b, int64_t row, int64_t head, int64_t count, float *scratch) const {
    return rowsOf(rowOf<T>(operand, b, row, head), rowStride(operand), count, size, scratch);
  }
  int64_t tilesOf(int64_t rows) const { return (rows + kTile - 1) / kTile; }
  /// The key at query t's own position.
  int64_t ownKey(int64_t t) const { return t + keys - queries; }
  /// The first key that query `t` sees, if it sees any, and one past the last.
  int64_t firstKey(int64_t t) const { return maxOf(0, ownKey(t) - before); }
  int64_t visibleKeys(int64_t t) const { return maxOf(0, minOf(keys, ownKey(t) + after + 1)); }
  /// One past the last key that any query of the tile [t0, t0 + nq) sees.
  int64_t visibleKeys(int64_t t0, int64_t nq) const { return visibleKeys(t0 + nq - 1); }

  /// Bounds the scores of a tile, where there is a cap, and keeps the derivatives of that, if asked.
  void capScores(float *scores, int64_t nk, float *derivatives) const {
    if (cap != 0)
      boundTile(Cap{cap}, scores, nk, derivatives);
  }

  /// What the probabilities of the tile of keys s0.. and queries t0.. are multiplied by, where there is
  /// dropout.
  void drawFactors(float *factors, int64_t b, int64_t h, int64_t t0, int64_t nq, int64_t s0,
                   int64_t nk) const {
    for (int64_t t = 0; t < nq; ++t) {
      const int64_t first = ((b * allHeads + firstHead + h) * queries + t0 + t) * keys + s0;
      dropout.factors(static_cast<uint64_t>(first), nk, factors + t, kTile);
    }
  }

  /// Adds slope * (s - t) to the tile's scores; t counts keys.
  void addSlopes(float *scores, int64_t h, int64_t t0, int64_t s0, int64_t nk) const {
    const float slope = floats(*slopes)[h * slopes->strides[0]];
    for (int64_t s = 0; s < nk; ++s) {
      const int64_t distance = s0 + s - ownKey(t0);
      for (int t = 0; t < kTile; ++t)
        scores[s * kTile + t] += slope * static_cast<float>(static_cast<int32_t>(distance) - t);
    }
  }

  /// Adds mask and slopes and hides what causality and the window hide in the tile of keys s0.. and queries
  /// t0...
  void applyMask(float *scores, int64_t b, int64_t h, int64_t t0, int64_t nq, int64_t s0, int64_t nk) const {
    if (mask) {
      auto stride = [&](int d) { return mask->shape[d] == 1 ? 0 : mask->strides[d]; };
      const float *base = floats(*mask) + b * stride(0) + h * stride(1) + s0;
      for (int64_t t = 0; t < nq; ++t)
        for (int64_t s = 0; s < nk; ++s)
          scores[s * kTile + t] += base[(t0 + t) * stride(2) + s];
    }
    if (slopes)
      addSlopes(scores, h, t0, s0, nk);
    if (s0 + nk <= visibleKeys(t0) && s0 >= firstKey(t0 + nq - 1))
      return;
    for (int64_t s = 0; s < nk; ++s) {
      const int64_t own = s0 + s - ownKey(t0); // the query of the tile at the key's position
      for (int64_t t = 0; t < minOf(own - after, kTile); ++t)
        scores[s * kTile + t] = -__builtin_inff();
      for (int64_t t = maxOf(own + before + 1, 0); t < kTile; ++t)
        scores[s * kTile + t] = -__builtin_inff();
    }
  }
};

} // namespace ds::rt::DS_ISA

#endif // DS_KERNELS_ATTENTIONTILES_H
