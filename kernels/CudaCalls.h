//===- CudaCalls.h - What the kernels of the CUDA library take -----------------===//
//
// Every entry of ds_kernels.fatbin takes one of these structs by value. Addresses are of the device, strides
// in elements.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_CUDACALLS_H
#define DS_KERNELS_CUDACALLS_H

#include <stdint.h>
#include <string.h>

namespace ds::rt::cuda {

struct EmbeddingCall {
  const void *table; ///< forward: rows to look up; backward: gradients of the rows that were looked up
  const void *ids;
  void *out; ///< forward: packed rows; backward: the table's gradient
  int64_t numIds, rows, width;
  int64_t tableStride; ///< of the table, or of its gradient
  int32_t wideIds;     ///< ids are i64, else i32
  int32_t isPart;      ///< forward: other rows of a larger table are elsewhere
  int32_t floatTable;  ///< backward: the table's gradient is f32, else of the entry's type
  int32_t aligned;     ///< backward: rows on both sides are whole vectors of 16 bytes
  /// Backward: the numbers of the ids by id, and those ids; of one outside the table it is `rows`.
  const int32_t *order, *keys;
};
/// Rows of one id up to which a warp adds them; the launches of the gradient say so too.
constexpr int kFewRows = 16;

/// One digit of the sort of ids by number.
struct SortCall {
  const void *ids;
  const int32_t *from;      ///< the numbers by the digits before; null: as they come
  int32_t *to;              ///< the numbers by this one too
  int32_t *keys;            ///< the ids in that order; null: nobody asks yet
  int32_t *counts, *totals; ///< [bin][tile], [bin]
  int64_t rows;             ///< of the table
  int32_t numIds, tiles, bins, shift;
  int32_t wideIds;
};

struct CrossEntropyCall {
  const void *logits, *targets;
  void *dlogits;
  float *loss, *count;
  float *lse; ///< with gradient: the terms of the rows
  const float *dloss;
  const float *denominator;            ///< what the sum is divided by; null: the count
  int64_t rows, size, stride, dstride; ///< of logits and dlogits
  int64_t ignoreIndex;
  int32_t wideIds;
  float cap;    ///< of the logits; 0: none
  int32_t kept; ///< with gradient: vectors of 16 bytes of a row that shared memory keeps
};

/// Strided memory: dimensions are merged where memory makes one of several.
struct WalkCall {
  static constexpr int kMaxRank = 8;
  const void *from; ///< null: `value` is written
  void *to;
  uint64_t value; ///< bits of one element
  int64_t count;
  int64_t shape[kMaxRank], fromStrides[kMaxRank], toStrides[kMaxRank];
  int32_t rank;
};

/// GELU of `count` packed elements, or the gradient: result *= GELU'(input).
struct GeluCall {
  const void *input;
  void *result; ///< may be the input, but for the gradient
  int64_t count;
  int64_t vectors; ///< of 16 bytes, with which both begin; 0 where one is not aligned
};

struct FillRandomCall {
  void *data; ///< of the entry's type
  int64_t first, count;
  uint64_t seed, stream;
  float offset, scale;
  int32_t normal;
};

/// [batch, row, head, element]; the last has stride 1.
struct Heads {
  void *data;
  int64_t batchStride, rowStride, headStride;
};
struct AttentionCall {
  Heads q, k, v, out, dout, dq, dk, dv;
  float *lse;
  const float *mask;
  int64_t lseStrides[3], maskStrides[3]; ///< of batch, head and query; 0 where the mask repeats
  int32_t batch, queries, keys, heads, groups, size;
  int32_t causal;
  float scale;
  const float *slopes;   ///< null: none
  int32_t before, after; ///< keys that a query sees to either side of its own
  float cap;             ///< of scores before mask and slopes; 0: none
  /// Dropout of probabilities: (seed, counter), or null; the number of the draw; a random word with less in
  /// its high 24 bits drops; the factor of what is kept.
  const int64_t *generator;
  uint32_t drawId, least;
  float keptFactor;
  /// Of how many heads these are some, and which is the first of these; null: the first of all.
  int32_t allHeads;
  const int64_t *firstHead;
};

/// What dropout leaves of the probabilities of some heads, queries and keys: 1 or 0 for each that is seen, 0
/// for those that no query sees, which are not drawn.
struct AttentionMaskCall {
  void *mask; ///< packed heads, queries and keys, of the entry's type, on 16 bytes
  const int64_t *generator;
  uint64_t first;            ///< number of the first one, but for what `firstHead` adds
  const int64_t *firstHead;  ///< heads of the attention before the command's first; null: none
  int64_t perSample;         ///< numbers of a sample that are of other heads than the command's
  int32_t heads;             ///< of the command
  int64_t perHead, perQuery; ///< numbers from one head, and from one query, to the next
  int64_t rows;              ///< queries of all heads; fewer than 2^32
  int32_t queries, keys;     ///< of a head, and of a query
  int32_t own;               ///< key of the first query's own, counted from the first key that is meant
  int32_t before, after;     ///< keys beside its own that a query sees, as in AttentionCall
  uint32_t isWhole;          ///< rows are whole vectors, whose first number begins a draw
  uint32_t drawId, least;
};

/// Elements of a head that are added at once.
constexpr int kAttentionVector = 8;
/// What one block of scores gives of a gradient, and where it goes (AttentionParts.cu).
struct AttentionPart {
  const void *part;                    ///< packed rows, heads and elements, of the entry's type
  float *sum;                          ///< likewise
  void *out;                           ///< the first row of the gradient
  int64_t rows, rowStride, headStride; ///< strides of `out`
  int64_t summed, ended; ///< the sums of the first so many rows are read; end, and are not written
  int32_t heads;
};
struct AttentionPartsCall {
  AttentionPart parts[3]; ///< of queries, keys and values
  int32_t size;           ///< of a head, a multiple of kAttentionVector
};

/// Logarithms of the sums of rows, plus the slopes of their heads times a distance.
struct AttentionShiftCall {
  const float *from;
  float *to; ///< may be `from`
  const float *slopes;
  int64_t fromStrides[2], toStrides[2]; ///< of heads and rows
  int32_t heads, rows;
  float distance;
};

/// A convolution's two operands and its result, packed, in the order of its command. Three sliding
/// dimensions: where there are fewer, sizes and windows of 1 come first.
struct ConvCall {
  const void *first, *second, *bias; ///< bias: forward, or null
  void *result;
  int64_t count; ///< elements of the result
  int64_t batch, groups, inputChannels, outputChannels;
  int64_t input[3], window[3], output[3], stride[3], padding[3], dilation[3];
};

/// Elements that CUDA's and the CPU's kernel add up as one block, and those of a warp among them.
constexpr int64_t kSquaresBlock = 16384, kSquaresPiece = 2048;
constexpr unsigned kSquaresThreads = kSquaresBlock / kSquaresPiece * 32;
/// Sums of blocks that are added up side by side.
constexpr unsigned kSquaresTotals = 1024;

struct SquaresTensor {
  enum Type : int32_t { kFloat, kBFloat16, kHalf };
  const void *data;
  int64_t elements;    ///< at least 1
  uint32_t firstBlock; ///< of the launch
  Type type;
};
/// As many tensors as 4 KiB of parameters hold, which every driver takes.
struct SquaresCall {
  static constexpr unsigned kMaxTensors = 170;
  float *sums; ///< one for each block
  uint32_t tensors;
  SquaresTensor list[kMaxTensors];
};
static_assert(sizeof(SquaresCall) <= 4096);
struct SquaresTotalCall {
  const float *sums;
  double *result;
  int64_t blocks;
};

} // namespace ds::rt::cuda

#endif // DS_KERNELS_CUDACALLS_H
