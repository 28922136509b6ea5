//===- AttentionBackward.cpp - Tiled attention, backward -----------------------===//
//
// One task is one key head of one sample: it walks the query heads that read it, their query tiles and the
// key tiles those see, in that fixed order, and adds to dk and dv in place, so that grouped-query sums do not
// depend on the number of threads. Scores are recomputed from q, k and lse; five products per pair of tiles.
//
//===---------------------------------------------------------------------------===//
#include "AttentionTiles.h"

namespace ds::rt::DS_ISA {
namespace {

enum Operand { kQ, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv, kMask };

/// What belongs to the query tile at hand, and the scores of the pair of tiles.
struct Tile {
  alignas(64) float lse[kTile];   ///< +infinity for a query that sees nothing: its probabilities are 0
  alignas(64) float delta[kTile]; ///< sum of dout * out
  alignas(64) float queries[kMaxHead * kTile];
  alignas(64) float dout[kMaxHead * kTile];
  alignas(64) float probs[kTile * kTile];
  alignas(64) float dscores[kTile * kTile];
};

void loadTile(const Attention &op, Tile &tile, int64_t b, int64_t h, int64_t t0, int64_t rows) {
  const View &lse = op.operands[kLse];
  for (int64_t t = 0; t < kTile; ++t) {
    tile.lse[t] = __builtin_inff();
    tile.delta[t] = 0;
  }
  for (int64_t t = 0; t < rows; ++t) {
    const float value = floats(lse)[b * lse.strides[0] + h * lse.strides[1] + (t0 + t) * lse.strides[2]];
    tile.lse[t] = value == -__builtin_inff() ? __builtin_inff() : value;
    const float *dout = op.rowOf(kDout, b, t0 + t, h), *out = op.rowOf(kOut, b, t0 + t, h);
    Vec sums{};
    int64_t d = 0;
    for (; d + kLanes <= op.size; d += kLanes)
      sums += load(dout + d) * load(out + d);
    float sum = sumLanes(sums);
    for (; d < op.size; ++d)
      sum += dout[d] * out[d];
    tile.delta[t] = sum;
  }
  packTransposed(op.rowOf(kQ, b, t0, h), op.rowStride(kQ), rows, op.size, op.scale, tile.queries);
  packTransposed(op.rowOf(kDout, b, t0, h), op.rowStride(kDout), rows, op.size, 1.0f, tile.dout);
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
void scoreGradients(Tile &tile, int64_t numKeys, float scale) {
  for (int64_t s = 0; s < numKeys; ++s)
    for (int column = 0; column < kTileVecs; ++column) {
      const int64_t at = s * kTile + column * kLanes;
      store(tile.dscores + at,
            load(tile.probs + at) * (load(tile.dscores + at) - load(tile.delta + column * kLanes)) * scale);
    }
}

void clearRows(const Attention &op, int operand, int64_t b, int64_t rows, int64_t head) {
  for (int64_t r = 0; r < rows; ++r)
    __builtin_memset(op.rowOf(operand, b, r, head), 0, static_cast<size_t>(op.size) * sizeof(float));
}

void backwardPair(const Attention &op, Tile &tile, int64_t b, int64_t h, int64_t g, int64_t t0, int64_t rows,
                  int64_t s0, int64_t numKeys) {
  const int64_t size = op.size;
  const float *keys = op.rowOf(kK, b, s0, g), *values = op.rowOf(kV, b, s0, g);
  multiply(numKeys, kTile, size, {keys, op.rowStride(kK), 1}, tile.queries, kTile, tile.probs, kTile, false);
  op.applyMask(tile.probs, b, h, t0, rows, s0, numKeys);
  probabilities(tile, numKeys);
  multiply(numKeys, size, rows, {tile.probs, kTile, 1}, op.rowOf(kDout, b, t0, h), op.rowStride(kDout),
           op.rowOf(kDv, b, s0, g), op.rowStride(kDv), true);
  multiply(numKeys, kTile, size, {values, op.rowStride(kV), 1}, tile.dout, kTile, tile.dscores, kTile, false);
  scoreGradients(tile, numKeys, op.scale);
  multiply(rows, size, numKeys, {tile.dscores, 1, kTile}, keys, op.rowStride(kK), op.rowOf(kDq, b, t0, h),
           op.rowStride(kDq), s0 > 0);
  multiply(numKeys, size, rows, {tile.dscores, kTile, 1}, op.rowOf(kQ, b, t0, h), op.rowStride(kQ),
           op.rowOf(kDk, b, s0, g), op.rowStride(kDk), true);
}

void backwardHead(const Attention &op, Tile &tile, int64_t b, int64_t h, int64_t g) {
  for (int64_t t0 = 0; t0 < op.queries; t0 += kTile) {
    const int64_t rows = minOf(kTile, op.queries - t0), visible = op.visibleKeys(t0, rows);
    if (visible == 0) {
      for (int64_t t = 0; t < rows; ++t)
        __builtin_memset(op.rowOf(kDq, b, t0 + t, h), 0, static_cast<size_t>(op.size) * sizeof(float));
      continue;
    }
    loadTile(op, tile, b, h, t0, rows);
    for (int64_t s0 = 0; s0 < visible; s0 += kTile)
      backwardPair(op, tile, b, h, g, t0, rows, s0, minOf(kTile, visible - s0));
  }
}

} // namespace

void attentionBackward(const LibraryCall &call) {
  const Attention op(call, kMask);
  const int64_t perGroup = op.heads / op.groups;
  auto body = [&](int64_t task) {
    Tile tile;
    const int64_t b = task / op.groups, g = task % op.groups;
    clearRows(op, kDk, b, op.keys, g);
    clearRows(op, kDv, b, op.keys, g);
    for (int64_t h = g * perGroup; h < (g + 1) * perGroup; ++h)
      backwardHead(op, tile, b, h, g);
  };
  forTasks(op.batch * op.groups, call.threads, body);
}

} // namespace ds::rt::DS_ISA
