//===- Attention.cu - Tiled attention in f32, forward and backward, on CUDA ----===//
//
// The reference, and what runs where no library does. A block has 32 rows of its own (queries, or in dkdv
// keys), four for each of its eight warps, and walks tiles of 32 rows of the other side in shared memory. For
// a product over the head's elements each lane takes one row of the tile; for a sum over the tile's rows each
// lane takes every 32nd element of the head. Sums are formed in a fixed order and rounded once; scores exist
// 32 x 32 at a time; tiles that causality or a window hides from all of the block's rows are not computed.
//
//===---------------------------------------------------------------------------===//
#include "Philox.cuh"

namespace ds::rt::cuda {

constexpr int kTile = 32;    ///< rows of a tile, and of a block
constexpr int kOwn = 4;      ///< rows of a warp
constexpr int kElements = 8; ///< of a head, per lane: heads of up to 256

template <class T>
DS_DEVICE T *rowAt(const Heads &view, int64_t b, int64_t row, int64_t head) {
  return static_cast<T *>(view.data) + b * view.batchStride + row * view.rowStride + head * view.headStride;
}

/// Copies rows [first, first + 32) as f32 to rows of `stride` floats; those from `rows` on become 0.
template <class T>
DS_DEVICE void loadTile(const Heads &view, int64_t b, int64_t head, int first, int rows, int size,
                        float factor, float *to, int stride) {
  for (int at = threadIdx.x; at < kTile * size; at += blockDim.x) {
    const int row = at / size, d = at % size;
    to[row * stride + d] =
        first + row < rows ? toFloat(rowAt<T>(view, b, first + row, head)[d]) * factor : 0.0f;
  }
}

/// scores[j] = own row j times the tile's row of this lane.
DS_DEVICE void multiplyRows(const float *own, const float *tile, int size, float scores[kOwn]) {
  const float *row = tile + (threadIdx.x % 32) * (size + 1);
  for (int j = 0; j < kOwn; ++j)
    scores[j] = 0;
  for (int d = 0; d < size; ++d) {
    const float x = row[d];
    for (int j = 0; j < kOwn; ++j)
      scores[j] = fmaf(own[j * size + d], x, scores[j]);
  }
}

/// sums[j][e] += weights[j] of lane s times element lane + 32 e of the tile's row s, for all s.
DS_DEVICE void addRows(const float weights[kOwn], const float *tile, int size, float sums[kOwn][kElements]) {
  const int lane = threadIdx.x % 32;
  for (int s = 0; s < kTile; ++s) {
    float weight[kOwn];
    for (int j = 0; j < kOwn; ++j)
      weight[j] = __shfl_sync(kAllLanes, weights[j], s);
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      if (lane + 32 * e >= size)
        continue;
      const float x = tile[s * (size + 1) + lane + 32 * e];
      for (int j = 0; j < kOwn; ++j)
        sums[j][e] = fmaf(weight[j], x, sums[j][e]);
    }
  }
}

DS_DEVICE void clear(float sums[kOwn][kElements]) {
#pragma unroll
  for (int e = 0; e < kElements; ++e)
    for (int j = 0; j < kOwn; ++j)
      sums[j][e] = 0;
}

/// Writes this warp's rows [first, first + 4), scaled.
template <class T>
DS_DEVICE void writeRows(const Heads &view, int64_t b, int64_t head, int first, int rows, int size,
                         const float sums[kOwn][kElements], const float factors[kOwn]) {
  const int lane = threadIdx.x % 32;
  for (int j = 0; j < kOwn; ++j) {
    if (first + j >= rows)
      continue;
    T *to = rowAt<T>(view, b, first + j, head);
#pragma unroll
    for (int e = 0; e < kElements; ++e)
      if (lane + 32 * e < size)
        setFloat(to[lane + 32 * e], sums[j][e] * factors[j]);
  }
}

/// What a block works on.
struct Place {
  int b, h, first; ///< batch, head (of keys in dkdv) and first own row
  int warpRow;     ///< first own row of the warp, in the block
};
DS_DEVICE Place placeOf(int heads, int rows) {
  // The blocks with the most visible keys first, so that all end together.
  const int tiles = (rows + kTile - 1) / kTile, perTile = gridDim.x / tiles;
  const int tile = tiles - 1 - blockIdx.x / perTile, rest = blockIdx.x % perTile;
  return {rest / heads, rest % heads, tile * kTile, static_cast<int>(threadIdx.x / 32) * kOwn};
}

/// The key at query t's own position.
DS_DEVICE int ownKey(const AttentionCall &call, int t) { return t + call.keys - call.queries; }
/// The first key that query `t` sees, if it sees any, and one past the last.
DS_DEVICE int firstKey(const AttentionCall &call, int t) { return maxOf(0, ownKey(call, t) - call.before); }
DS_DEVICE int visibleKeys(const AttentionCall &call, int t) {
  return maxOf(0, minOf(call.keys, ownKey(call, t) + call.after + 1));
}
/// The capped `score` of query t and key s with mask and slopes, and minus infinity where it is hidden.
DS_DEVICE float masked(const AttentionCall &call, float score, int b, int h, int t, int s) {
  if (t >= call.queries || s >= visibleKeys(call, t) || s < firstKey(call, t))
    return -infinity();
  if (call.mask)
    score += call.mask[b * call.maskStrides[0] + h * call.maskStrides[1] + t * call.maskStrides[2] + s];
  if (call.slopes)
    score += call.slopes[h] * static_cast<float>(s - ownKey(call, t));
  return score;
}
/// What the probability of query t and key s is multiplied by: 0 where dropout drops it (Library.h).
DS_DEVICE float keptFactor(const AttentionCall &call, int b, int h, int t, int s) {
  if (!call.generator)
    return 1;
  const uint64_t head = uint64_t(b) * call.allHeads + (call.firstHead ? *call.firstHead : 0) + h;
  const uint64_t row = head * call.queries + t, number = row * call.keys + s;
  uint32_t words[4];
  philox(number / 4, call.drawId | static_cast<uint64_t>(call.generator[1]) << 32,
         static_cast<uint64_t>(call.generator[0]), words);
  const uint32_t pair[2] = {number % 2 ? words[1] : words[0], number % 2 ? words[3] : words[2]};
  return (number % 4 < 2 ? pair[0] : pair[1]) >> 8 < call.least ? 0.0f : call.keptFactor;
}
/// What dropout leaves of probabilities by their numbers, four of which are one draw.
template <class T>
struct MaskDraw {
  uint64_t seed, stream;
  uint32_t least;
  T one, zero;

  DS_DEVICE_MEMBER explicit MaskDraw(const AttentionMaskCall &call)
      : seed(static_cast<uint64_t>(call.generator[0])),
        stream(call.drawId | static_cast<uint64_t>(call.generator[1]) << 32), least(call.least) {
    setFloat(one, 1.0f);
    setFloat(zero, 0.0f);
  }
  DS_DEVICE_MEMBER void four(uint64_t block, T to[4]) const {
    uint32_t words[4];
    philox(block, stream, seed, words);
    for (int w = 0; w < 4; ++w)
      to[w] = words[w] >> 8 < least ? zero : one;
  }
};

/// A row of whole vectors whose first number begins a draw. What [first, end) does not touch is 0: engines
/// multiply by all that they load, and memory that nothing wrote may hold what is no number.
template <class T>
DS_DEVICE void dropVectors(const AttentionMaskCall &call, T *row, uint64_t number, int first, int end) {
  constexpr int kSize = Vector<T>::kSize;
  const MaskDraw<T> draw(call);
  for (int at = static_cast<int>(threadIdx.x % 32) * kSize; at < call.keys; at += 32 * kSize) {
    Vector<T> kept;
    if (at < end && at + kSize > first) {
      for (int part = 0; part < kSize; part += 4)
        draw.four((number + static_cast<uint64_t>(at + part)) / 4, kept.values + part);
    } else {
      for (int i = 0; i < kSize; ++i)
        kept.values[i] = draw.zero;
    }
    wholeAt<Vector<T>>(row + at) = kept;
  }
}

/// Any other row, draw by draw; the first and the last one may belong to its neighbours too.
template <class T>
DS_DEVICE void dropElements(const AttentionMaskCall &call, T *row, uint64_t number, int first, int end) {
  const MaskDraw<T> draw(call);
  const int ahead = static_cast<int>(number % 4);
  for (int at = static_cast<int>(threadIdx.x % 32) * 4 - ahead; at < call.keys; at += 32 * 4) {
    T kept[4] = {draw.zero, draw.zero, draw.zero, draw.zero};
    if (maxOf(at, 0) < end && at + 4 > first)
      draw.four((number + static_cast<uint64_t>(at + ahead)) / 4, kept);
    for (int w = 0; w < 4; ++w)
      if (at + w >= 0 && at + w < call.keys)
        row[at + w] = kept[w];
  }
}

/// A warp has a row: a query of a head, of whose keys only those that it sees are drawn.
template <class T>
DS_DEVICE void dropMask(const AttentionMaskCall &call) {
  const int64_t row = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (row >= call.rows)
    return;
  const uint32_t head = static_cast<uint32_t>(row) / static_cast<uint32_t>(call.queries);
  const int query = static_cast<int>(static_cast<uint32_t>(row) % static_cast<uint32_t>(call.queries));
  T *to = static_cast<T *>(call.mask) + row * call.keys;
  const uint64_t before = head + static_cast<uint64_t>(call.firstHead ? *call.firstHead : 0);
  const uint64_t number = call.first + before * static_cast<uint64_t>(call.perHead) +
                          head / static_cast<uint32_t>(call.heads) * static_cast<uint64_t>(call.perSample) +
                          static_cast<uint64_t>(query) * static_cast<uint64_t>(call.perQuery);
  const int own = call.own + query; // key of its own, counted from the first of the range
  const int first = maxOf(0, own - call.before), end = minOf(call.keys, own + call.after + 1);
  if (call.isWhole)
    dropVectors(call, to, number, first, end);
  else
    dropElements(call, to, number, first, end);
}

DS_DEVICE float *lseAt(const AttentionCall &call, int b, int h, int t) {
  return call.lse + b * call.lseStrides[0] + h * call.lseStrides[1] + t * call.lseStrides[2];
}

template <class T>
DS_DEVICE void attentionForward(const AttentionCall &call) {
  DS_DYNAMIC_SHARED(float, memory);
  const int size = call.size, lane = threadIdx.x % 32;
  float *tile = memory, *queries = memory + kTile * (size + 1);
  const Place place = placeOf(call.heads, call.queries);
  const int b = place.b, h = place.h, group = h / (call.heads / call.groups);
  const float *own = queries + place.warpRow * size;
  loadTile<T>(call.q, b, h, place.first, call.queries, size, call.scale, queries, size);
  float sums[kOwn][kElements], top[kOwn], total[kOwn], scores[kOwn];
  clear(sums);
  for (int j = 0; j < kOwn; ++j) {
    top[j] = -infinity();
    total[j] = 0;
  }
  const int visible = visibleKeys(call, minOf(place.first + kTile, call.queries) - 1);
  for (int s0 = firstKey(call, place.first); s0 < visible; s0 += kTile) {
    __syncthreads();
    loadTile<T>(call.k, b, group, s0, call.keys, size, 1.0f, tile, size + 1);
    __syncthreads();
    multiplyRows(own, tile, size, scores);
    for (int j = 0; j < kOwn; ++j) {
      const int t = place.first + place.warpRow + j;
      const float score = masked(call, capped(scores[j], call.cap), b, h, t, s0 + lane);
      const float next = maxOf(warpMax(score), top[j]), shift = next == -infinity() ? 0.0f : next;
      const float rescale = expf(top[j] - shift);
      scores[j] = expf(score - shift);
      total[j] = total[j] * rescale + warpSum(scores[j]);
      scores[j] *= keptFactor(call, b, h, t, s0 + lane);
      top[j] = next;
#pragma unroll
      for (int e = 0; e < kElements; ++e)
        sums[j][e] *= rescale;
    }
    __syncthreads();
    loadTile<T>(call.v, b, group, s0, call.keys, size, 1.0f, tile, size + 1);
    __syncthreads();
    addRows(scores, tile, size, sums);
  }
  float factors[kOwn];
  for (int j = 0; j < kOwn; ++j) {
    const int t = place.first + place.warpRow + j;
    factors[j] = total[j] == 0 ? 0.0f : 1.0f / total[j];
    if (lane == 0 && t < call.queries)
      *lseAt(call, b, h, t) = total[j] == 0 ? -infinity() : top[j] + logf(total[j]);
  }
  writeRows<T>(call.out, b, h, place.first + place.warpRow, call.queries, size, sums, factors);
}

/// Sum of dout * out of query t.
template <class T>
DS_DEVICE float deltaOf(const AttentionCall &call, int b, int h, int t) {
  float sum = 0;
  if (t < call.queries) {
    const T *dout = rowAt<const T>(call.dout, b, t, h), *out = rowAt<const T>(call.out, b, t, h);
    for (int d = threadIdx.x % 32; d < call.size; d += 32)
      sum += toFloat(dout[d]) * toFloat(out[d]);
  }
  return warpSum(sum);
}

/// exp(score - lse), and 0 for a query that sees nothing.
DS_DEVICE float probability(float score, float lse) { return lse == -infinity() ? 0.0f : expf(score - lse); }

template <class T>
DS_DEVICE void gradientOfQueries(const AttentionCall &call) {
  DS_DYNAMIC_SHARED(float, memory);
  const int size = call.size, lane = threadIdx.x % 32;
  float *tile = memory, *queries = memory + kTile * (size + 1), *douts = queries + kTile * size;
  const Place place = placeOf(call.heads, call.queries);
  const int b = place.b, h = place.h, group = h / (call.heads / call.groups);
  const int firstRow = place.first + place.warpRow;
  loadTile<T>(call.q, b, h, place.first, call.queries, size, call.scale, queries, size);
  loadTile<T>(call.dout, b, h, place.first, call.queries, size, 1.0f, douts, size);
  float sums[kOwn][kElements], delta[kOwn], lse[kOwn], probs[kOwn], grads[kOwn], factors[kOwn];
  clear(sums);
  for (int j = 0; j < kOwn; ++j) {
    delta[j] = deltaOf<T>(call, b, h, firstRow + j);
    lse[j] = firstRow + j < call.queries ? *lseAt(call, b, h, firstRow + j) : -infinity();
    factors[j] = 1;
  }
  const int visible = visibleKeys(call, minOf(place.first + kTile, call.queries) - 1);
  for (int s0 = firstKey(call, place.first); s0 < visible; s0 += kTile) {
    __syncthreads();
    loadTile<T>(call.v, b, group, s0, call.keys, size, 1.0f, tile, size + 1);
    __syncthreads();
    multiplyRows(douts + place.warpRow * size, tile, size, grads);
    __syncthreads();
    loadTile<T>(call.k, b, group, s0, call.keys, size, 1.0f, tile, size + 1);
    __syncthreads();
    multiplyRows(queries + place.warpRow * size, tile, size, probs);
    for (int j = 0; j < kOwn; ++j) {
      const float y = capped(probs[j], call.cap);
      const float p = probability(masked(call, y, b, h, firstRow + j, s0 + lane), lse[j]);
      const float kept = keptFactor(call, b, h, firstRow + j, s0 + lane);
      grads[j] = p * (grads[j] * kept - delta[j]) * call.scale * slopeOfCap(y, call.cap);
    }
    addRows(grads, tile, size, sums);
  }
  writeRows<T>(call.dq, b, h, firstRow, call.queries, size, sums, factors);
}

/// Own rows are keys; every query head of the group and every query tile that sees them is walked in order.
template <class T>
DS_DEVICE void gradientOfKeys(const AttentionCall &call) {
  DS_DYNAMIC_SHARED(float, memory);
  DS_SHARED float deltas[kTile];
  const int size = call.size, lane = threadIdx.x % 32, perGroup = call.heads / call.groups;
  float *tile = memory, *keys = memory + kTile * (size + 1), *values = keys + kTile * size;
  const Place place = placeOf(call.groups, call.keys);
  const int b = place.b, g = place.h, firstRow = place.first + place.warpRow;
  loadTile<T>(call.k, b, g, place.first, call.keys, size, 1.0f, keys, size);
  loadTile<T>(call.v, b, g, place.first, call.keys, size, 1.0f, values, size);
  float dk[kOwn][kElements], dv[kOwn][kElements], probs[kOwn], grads[kOwn], slopes[kOwn], ones[kOwn],
      factors[kOwn], dropped[kOwn];
  clear(dk);
  clear(dv);
  for (int j = 0; j < kOwn; ++j)
    ones[j] = 1;
  // Queries at the positions of the block's keys see them, as far as causality and the window let them.
  const int ownQuery = place.first - (call.keys - call.queries), kept = minOf(kTile, call.keys - place.first);
  const int firstQuery = maxOf(0, ownQuery - call.after) / kTile * kTile;
  const int endQuery = minOf(call.queries, ownQuery + kept + call.before);
  for (int h = g * perGroup; h < (g + 1) * perGroup; ++h)
    for (int t0 = firstQuery; t0 < endQuery; t0 += kTile) {
      const int t = t0 + lane;
      const float lse = t < call.queries ? *lseAt(call, b, h, t) : -infinity();
      __syncthreads();
      loadTile<T>(call.q, b, h, t0, call.queries, size, call.scale, tile, size + 1);
      for (int j = 0; j < kOwn; ++j) {
        const float delta = deltaOf<T>(call, b, h, t0 + place.warpRow + j);
        if (lane == 0)
          deltas[place.warpRow + j] = delta;
      }
      __syncthreads();
      multiplyRows(keys + place.warpRow * size, tile, size, probs);
      for (int j = 0; j < kOwn; ++j) {
        const float y = capped(probs[j], call.cap);
        slopes[j] = slopeOfCap(y, call.cap);
        probs[j] = firstRow + j < call.keys ? probability(masked(call, y, b, h, t, firstRow + j), lse) : 0.0f;
        factors[j] = keptFactor(call, b, h, t, firstRow + j);
        dropped[j] = probs[j] * factors[j];
      }
      __syncthreads();
      loadTile<T>(call.dout, b, h, t0, call.queries, size, 1.0f, tile, size + 1);
      __syncthreads();
      multiplyRows(values + place.warpRow * size, tile, size, grads);
      addRows(dropped, tile, size, dv);
      for (int j = 0; j < kOwn; ++j)
        grads[j] = probs[j] * (grads[j] * factors[j] - deltas[lane]) * call.scale * slopes[j];
      __syncthreads();
      loadTile<T>(call.q, b, h, t0, call.queries, size, 1.0f, tile, size + 1);
      __syncthreads();
      addRows(grads, tile, size, dk);
    }
  writeRows<T>(call.dk, b, g, firstRow, call.keys, size, dk, ones);
  writeRows<T>(call.dv, b, g, firstRow, call.keys, size, dv, ones);
}

} // namespace ds::rt::cuda

DS_ENTRIES(ds_attention_forward, attentionForward, AttentionCall, 256)
DS_ENTRIES(ds_attention_mask, dropMask, AttentionMaskCall, 256)
DS_ENTRIES(ds_attention_dq, gradientOfQueries, AttentionCall, 256)
DS_ENTRIES(ds_attention_dkdv, gradientOfKeys, AttentionCall, 256)
