//===- Attention.cpp - Tiled attention, forward --------------------------------===//
//
// One task is a tile of 64 queries of one head: it visits the key tiles it can see, keeps the running
// maximum, sum and weighted values, and writes the output and the log of the sum of exponentials once. The T
// x S scores exist 64 x 64 at a time.
//
//===---------------------------------------------------------------------------===//
#include "AttentionTiles.h"

namespace ds::rt::DS_ISA {
namespace {

/// What a task keeps per query while it walks the keys.
struct Running {
  alignas(64) float top[kTile];     ///< largest score so far
  alignas(64) float sum[kTile];     ///< of exp(score - top)
  alignas(64) float rescale[kTile]; ///< of what was summed before the last tile
  alignas(64) float queries[kMaxHead * kTile];
  alignas(64) float scores[kTile * kTile];
  alignas(64) float factors[kTile * kTile]; ///< of probabilities, where some are dropped
  alignas(64) float values[kTile * kMaxHead];
  alignas(64) float rows[kTile * kMaxHead]; ///< of the operand at hand, where it is not f32
};

/// Turns a tile of scores into exponentials and updates the running maximum and sum of one vector of queries.
DS_INLINE void softmaxColumn(Running &run, int column, int64_t numKeys) {
  const float kInf = __builtin_inff();
  float *scores = run.scores + column * kLanes;
  const Vec before = load(run.top + column * kLanes);
  Vec top = before;
  for (int64_t s = 0; s < numKeys; ++s)
    top = vecMax(load(scores + s * kTile), top);
  store(run.top + column * kLanes, top);
  const Vec shift = top == -kInf ? Vec{} : top; // a query that has seen nothing yet
  Vec sum{};
  for (int64_t s = 0; s < numKeys; ++s) {
    const Vec p = vecExp(load(scores + s * kTile) - shift);
    store(scores + s * kTile, p);
    sum += p;
  }
  const Vec rescale = vecExp(before - shift);
  store(run.rescale + column * kLanes, rescale);
  store(run.sum + column * kLanes, load(run.sum + column * kLanes) * rescale + sum);
}

/// Scales what earlier key tiles contributed to the new maximum.
DS_INLINE void rescaleValues(Running &run, int64_t rows, int64_t size) {
  for (int64_t t = 0; t < rows; ++t) {
    if (run.rescale[t] == 1.0f)
      continue;
    float *row = run.values + t * size;
    for (int64_t d = 0; d < size; ++d)
      row[d] *= run.rescale[t];
  }
}

/// Drops some of a tile's exponentials, of which the sums are taken.
void dropScores(const Attention &op, Running &run, int64_t b, int64_t h, int64_t t0, int64_t rows, int64_t s0,
                int64_t numKeys) {
  op.drawFactors(run.factors, b, h, t0, rows, s0, numKeys);
  for (int64_t s = 0; s < numKeys; ++s)
    for (int64_t t = 0; t < rows; ++t)
      run.scores[s * kTile + t] *= run.factors[s * kTile + t];
}

template <class T>
void writeTile(const Attention &op, const Running &run, int64_t b, int64_t h, int64_t t0, int64_t rows) {
  const View &lse = op.operands[4];
  for (int64_t t = 0; t < rows; ++t) {
    T *out = op.rowOf<T>(3, b, t0 + t, h);
    const float factor = run.sum[t] > 0 || run.sum[t] != run.sum[t] ? 1.0f / run.sum[t] : 0.0f;
    const float *from = run.values + t * op.size;
    int64_t d = 0;
    for (; d + kLanes <= op.size; d += kLanes)
      store(out + d, load(from + d) * factor);
    for (; d < op.size; ++d)
      setFloat(out[d], from[d] * factor);
    floats(lse)[b * lse.strides[0] + h * lse.strides[1] + (t0 + t) * lse.strides[2]] =
        run.sum[t] == 0 ? -__builtin_inff() : run.top[t] + __builtin_logf(run.sum[t]);
  }
}

template <class T>
void forwardTile(const Attention &op, int64_t b, int64_t h, int64_t t0) {
  Running run;
  const int64_t rows = minOf(kTile, op.queries - t0), group = h / (op.heads / op.groups);
  for (int t = 0; t < kTile; ++t) {
    run.top[t] = -__builtin_inff();
    run.sum[t] = 0;
  }
  __builtin_memset(run.values, 0, static_cast<size_t>(kTile * op.size) * sizeof(float));
  packTransposed(op.load<T>(0, b, t0, h, rows, run.rows), rows, op.size, op.scale, run.queries);
  const int64_t visible = op.visibleKeys(t0, rows);
  for (int64_t s0 = op.firstKey(t0); s0 < visible; s0 += kTile) {
    const int64_t numKeys = minOf(kTile, visible - s0);
    const Rows keys = op.load<T>(1, b, s0, group, numKeys, run.rows);
    multiply(numKeys, kTile, op.size, {keys.data, keys.stride, 1}, run.queries, kTile, run.scores, kTile,
             /*accumulate=*/false);
    op.capScores(run.scores, numKeys, /*derivatives=*/nullptr);
    op.applyMask(run.scores, b, h, t0, rows, s0, numKeys);
    for (int column = 0; column < kTileVecs; ++column)
      softmaxColumn(run, column, numKeys);
    rescaleValues(run, rows, op.size);
    if (op.dropout.isDrawn)
      dropScores(op, run, b, h, t0, rows, s0, numKeys);
    const Rows values = op.load<T>(2, b, s0, group, numKeys, run.rows);
    multiply(rows, op.size, numKeys, {run.scores, 1, kTile}, values.data, values.stride, run.values, op.size,
             /*accumulate=*/true);
  }
  writeTile<T>(op, run, b, h, t0, rows);
}

template <class T>
void forward(const LibraryCall &call) {
  const Attention op(call, /*fixed=*/5);
  const int64_t tiles = op.tilesOf(op.queries), heads = op.batch * op.heads;
  auto body = [&](int64_t task, uint32_t) {
    // The tiles with the most visible keys first, so that the threads end together.
    const int64_t tile = tiles - 1 - task / heads, head = task % heads;
    forwardTile<T>(op, head / op.heads, head % op.heads, tile * kTile);
  };
  forTasks(tiles * heads, call.threads, body);
}

} // namespace

void attentionForward(const LibraryCall &call) {
  withType(call.operands[0].dtype, [&](auto element) { forward<decltype(element)>(call); });
}

} // namespace ds::rt::DS_ISA
