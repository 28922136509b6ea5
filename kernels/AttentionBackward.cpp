//===- AttentionBackward.cpp - Tiled attention, backward -----------------------===//
//
// One task is one key head of one sample: it walks the query heads that read it, their query tiles and the
// key tiles those see, in that fixed order, and adds to dk and dv in place, so that grouped-query sums do not
// depend on the number of threads. Scores are recomputed from q, k and lse; five products per pair of tiles.
// Gradients of 16-bit elements are summed in f32 too, dk and dv of a head in the thread's part of the planned
// scratch memory, and rounded once.
//
//===---------------------------------------------------------------------------===//
#include "AttentionTiles.h"

namespace ds::rt::DS_ISA {
namespace {

enum Operand { kQ, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv, kFixed };

/// What belongs to the query tile at hand, and the scores of the pair of tiles.
struct Tile {
  alignas(64) float lse[kTile];   ///< +infinity for a query that sees nothing: its probabilities are 0
  alignas(64) float delta[kTile]; ///< sum of dout * out
  alignas(64) float queries[kMaxHead * kTile];
  alignas(64) float dout[kMaxHead * kTile];
  alignas(64) float probs[kTile * kTile];
  alignas(64) float dscores[kTile * kTile];
  alignas(64) float derivatives[kTile * kTile]; ///< of the scores' cap, where there is one
  alignas(64) float factors[kTile * kTile];     ///< of probabilities, where some are dropped
  alignas(64) float dropped[kTile * kTile];     ///< the probabilities times these
};

/// Tiles of f32 rows for operands of other types; nothing for f32.
template <class T>
struct Copies {
  alignas(64) float queries[kTile * kMaxHead];
  alignas(64) float douts[kTile * kMaxHead];
  alignas(64) float keys[kTile * kMaxHead];
  alignas(64) float values[kTile * kMaxHead]; ///< out, before the keys are visited
  alignas(64) float dq[kTile * kMaxHead];
};
template <>
struct Copies<float> {
  static constexpr float *queries = nullptr, *douts = nullptr, *keys = nullptr, *values = nullptr;
};

/// f32 rows that gradients are added to: the result itself, or what is rounded into it at the end.
struct Sums {
  float *data;
  int64_t stride;
};

/// Query rows of the tile, as they are multiplied row by row.
struct QueryRows {
  Rows queries, dout;
};

template <class T>
QueryRows loadTile(const Attention &op, Tile &tile, Copies<T> &copies, int64_t b, int64_t h, int64_t t0,
                   int64_t rows) {
  const View &lse = op.operands[kLse];
  for (int64_t t = 0; t < kTile; ++t) {
    tile.lse[t] = __builtin_inff();
    tile.delta[t] = 0;
  }
  const Rows queries = op.load<T>(kQ, b, t0, h, rows, copies.queries);
  const Rows douts = op.load<T>(kDout, b, t0, h, rows, copies.douts);
  const Rows outs = op.load<T>(kOut, b, t0, h, rows, copies.values);
  for (int64_t t = 0; t < rows; ++t) {
    const float value = floats(lse)[b * lse.strides[0] + h * lse.strides[1] + (t0 + t) * lse.strides[2]];
    tile.lse[t] = value == -__builtin_inff() ? __builtin_inff() : value;
    const float *dout = douts.data + t * douts.stride, *out = outs.data + t * outs.stride;
    Vec sums{};
    int64_t d = 0;
    for (; d + kLanes <= op.size; d += kLanes)
      sums += load(dout + d) * load(out + d);
    float sum = sumLanes(sums);
    for (; d < op.size; ++d)
      sum += dout[d] * out[d];
    tile.delta[t] = sum;
  }
  packTransposed(queries, rows, op.size, op.scale, tile.queries);
  packTransposed(douts, rows, op.size, 1.0f, tile.dout);
  return {queries, douts};
}

/// scores -> probabilities, and the gradient of the scores from that of the probabilities.
void probabilities(Tile &tile, int64_t numKeys) {
  for (int column = 0; column < kTileVecs; ++column) {
    const Vec lse = load(tile.lse + column * kLanes);
    for (int64_t s = 0; s < numKeys; ++s) {
      float *score = tile.probs + s * kTile + column * kLanes;
      store(score, vecExp(load(score) - lse));
    }
  }
}
/// dropped = probs * factors, of the queries that there are; 0 for the others.
void dropProbabilities(const Attention &op, Tile &tile, int64_t b, int64_t h, int64_t t0, int64_t rows,
                       int64_t s0, int64_t numKeys) {
  op.drawFactors(tile.factors, b, h, t0, rows, s0, numKeys);
  for (int64_t s = 0; s < numKeys; ++s)
    for (int64_t t = 0; t < rows; ++t)
      tile.dropped[s * kTile + t] = tile.probs[s * kTile + t] * tile.factors[s * kTile + t];
}

/// The gradients of dropped probabilities as those of the probabilities.
void multiplyFactors(Tile &tile, int64_t rows, int64_t numKeys) {
  for (int64_t s = 0; s < numKeys; ++s)
    for (int64_t t = 0; t < rows; ++t)
      tile.dscores[s * kTile + t] *= tile.factors[s * kTile + t];
}

void scoreGradients(Tile &tile, int64_t numKeys, float scale) {
  for (int64_t s = 0; s < numKeys; ++s)
    for (int column = 0; column < kTileVecs; ++column) {
      const int64_t at = s * kTile + column * kLanes;
      store(tile.dscores + at,
            load(tile.probs + at) * (load(tile.dscores + at) - load(tile.delta + column * kLanes)) * scale);
    }
}

/// The gradients of capped scores as those of the scores.
void multiplyDerivatives(Tile &tile, int64_t numKeys) {
  for (int64_t at = 0; at < numKeys * kTile; at += kLanes)
    store(tile.dscores + at, load(tile.dscores + at) * load(tile.derivatives + at));
}

void clearRows(Sums rows, int64_t count, int64_t size) {
  for (int64_t r = 0; r < count; ++r)
    __builtin_memset(rows.data + r * rows.stride, 0, static_cast<size_t>(size) * sizeof(float));
}

/// Where the gradients of `operand`'s rows are summed; `scratch` holds them where they are not f32.
DS_INLINE Sums sumsOf(float *rows, int64_t stride, int64_t, float *) { return {rows, stride}; }
template <class T>
DS_INLINE Sums sumsOf(T *, int64_t, int64_t size, float *scratch) {
  return {scratch, size};
}
DS_INLINE void writeSums(Sums, float *, int64_t, int64_t, int64_t) {}
template <class T>
DS_INLINE void writeSums(Sums from, T *to, int64_t stride, int64_t rows, int64_t size) {
  for (int64_t r = 0; r < rows; ++r)
    convertRow(from.data + r * from.stride, to + r * stride, size);
}

/// The key tile at hand and what is added to for it.
struct KeyTile {
  Rows keys, values;
  float *dk, *dv;
  int64_t dkStride, dvStride;
};

void backwardPair(const Attention &op, Tile &tile, const QueryRows &query, const KeyTile &key, Sums dq,
                  int64_t b, int64_t h, int64_t t0, int64_t rows, int64_t s0, int64_t numKeys) {
  const int64_t size = op.size;
  multiply(numKeys, kTile, size, {key.keys.data, key.keys.stride, 1}, tile.queries, kTile, tile.probs, kTile,
           false);
  op.capScores(tile.probs, numKeys, tile.derivatives);
  op.applyMask(tile.probs, b, h, t0, rows, s0, numKeys);
  probabilities(tile, numKeys);
  const float *weights = tile.probs;
  if (op.dropout.isDrawn) {
    dropProbabilities(op, tile, b, h, t0, rows, s0, numKeys);
    weights = tile.dropped;
  }
  multiply(numKeys, size, rows, {weights, kTile, 1}, query.dout.data, query.dout.stride, key.dv, key.dvStride,
           true);
  multiply(numKeys, kTile, size, {key.values.data, key.values.stride, 1}, tile.dout, kTile, tile.dscores,
           kTile, false);
  if (op.dropout.isDrawn)
    multiplyFactors(tile, rows, numKeys);
  scoreGradients(tile, numKeys, op.scale);
  if (op.cap != 0)
    multiplyDerivatives(tile, numKeys);
  multiply(rows, size, numKeys, {tile.dscores, 1, kTile}, key.keys.data, key.keys.stride, dq.data, dq.stride,
           s0 > op.firstKey(t0));
  multiply(numKeys, size, rows, {tile.dscores, kTile, 1}, query.queries.data, query.queries.stride, key.dk,
           key.dkStride, true);
}

/// The scratch tile of dq, where there is one.
DS_INLINE float *dqScratch(Copies<float> &) { return nullptr; }
template <class T>
DS_INLINE float *dqScratch(Copies<T> &copies) {
  return copies.dq;
}

template <class T>
void backwardHead(const Attention &op, Tile &tile, Copies<T> &copies, Sums dk, Sums dv, int64_t b, int64_t h,
                  int64_t g) {
  for (int64_t t0 = 0; t0 < op.queries; t0 += kTile) {
    const int64_t rows = minOf(kTile, op.queries - t0), first = op.firstKey(t0),
                  visible = op.visibleKeys(t0, rows);
    T *target = op.rowOf<T>(kDq, b, t0, h);
    const Sums dq = sumsOf(target, op.rowStride(kDq), op.size, dqScratch(copies));
    if (visible <= first)
      clearRows(dq, rows, op.size);
    const QueryRows query = loadTile(op, tile, copies, b, h, t0, rows);
    for (int64_t s0 = first; s0 < visible; s0 += kTile) {
      const int64_t numKeys = minOf(kTile, visible - s0);
      const KeyTile key{op.load<T>(kK, b, s0, g, numKeys, copies.keys),
                        op.load<T>(kV, b, s0, g, numKeys, copies.values),
                        dk.data + s0 * dk.stride,
                        dv.data + s0 * dv.stride,
                        dk.stride,
                        dv.stride};
      backwardPair(op, tile, query, key, dq, b, h, t0, rows, s0, numKeys);
    }
    writeSums(dq, target, op.rowStride(kDq), rows, op.size);
  }
}

template <class T>
void backward(const LibraryCall &call) {
  const Attention op(call, kFixed);
  const int64_t perGroup = op.heads / op.groups;
  auto body = [&](int64_t task, uint32_t worker) {
    Tile tile;
    Copies<T> copies;
    const int64_t b = task / op.groups, g = task % op.groups, elements = op.keys * op.size;
    // f32 sums in place and has none.
    float *scratch = call.workspace ? static_cast<float *>(call.workspace) + 2 * worker * elements : nullptr;
    T *keyGrads = op.rowOf<T>(kDk, b, 0, g), *valueGrads = op.rowOf<T>(kDv, b, 0, g);
    const Sums dk = sumsOf(keyGrads, op.rowStride(kDk), op.size, scratch);
    const Sums dv = sumsOf(valueGrads, op.rowStride(kDv), op.size, scratch ? scratch + elements : nullptr);
    clearRows(dk, op.keys, op.size);
    clearRows(dv, op.keys, op.size);
    for (int64_t h = g * perGroup; h < (g + 1) * perGroup; ++h)
      backwardHead(op, tile, copies, dk, dv, b, h, g);
    writeSums(dk, keyGrads, op.rowStride(kDk), op.keys, op.size);
    writeSums(dv, valueGrads, op.rowStride(kDv), op.keys, op.size);
  };
  forTasks(op.batch * op.groups, call.threads, body);
}

} // namespace

void attentionBackward(const LibraryCall &call) {
  withType(call.operands[0].dtype, [&](auto element) { backward<decltype(element)>(call); });
}

} // namespace ds::rt::DS_ISA
