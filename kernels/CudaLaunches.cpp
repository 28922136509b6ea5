//===- CudaLaunches.cpp - Library commands as launches of CUDA kernels ---------===//

#include "CudaLaunches.h"

#include "ds/Runtime/Program/IdSort.h"
#include "ds/Runtime/Program/Library.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace ds::rt::cuda {
namespace {

//===----------------------------------------------------------------------===//
// Fill and copy
//===----------------------------------------------------------------------===//

/// Views walked together, with adjacent dimensions merged. `from` may be `to`.
WalkCall walkOf(const View &from, const View &to) {
  WalkCall call{};
  call.to = to.data;
  call.count = countOf(to);
  int32_t &rank = call.rank;
  for (uint32_t d = 0; d < to.rank; ++d) {
    const int64_t size = to.shape[d], a = from.strides[d], b = to.strides[d];
    if (size == 1)
      continue;
    const bool merges =
        rank > 0 && call.fromStrides[rank - 1] == size * a && call.toStrides[rank - 1] == size * b;
    if (!merges && rank == WalkCall::kMaxRank)
      return WalkCall{}; // no program has it: shapes have at most 16 dimensions, and neighbours merge
    if (!merges)
      call.shape[rank++] = 1;
    call.shape[rank - 1] *= size;
    call.fromStrides[rank - 1] = a;
    call.toStrides[rank - 1] = b;
  }
  if (rank == 0) {
    rank = 1;
    call.shape[0] = call.fromStrides[0] = call.toStrides[0] = 1;
  }
  return call;
}

/// Whether two neighbours of `bytes` bytes can be taken for one element everywhere.
bool canPair(const WalkCall &call, unsigned bytes) {
  const int32_t last = call.rank - 1;
  if (call.toStrides[last] != 1 || call.fromStrides[last] != 1 || call.shape[last] % 2 != 0 ||
      (reinterpret_cast<uint64_t>(call.from) | reinterpret_cast<uint64_t>(call.to)) % (2 * bytes) != 0)
    return false;
  for (int32_t d = 0; d < last; ++d)
    if (call.toStrides[d] % 2 != 0 || call.fromStrides[d] % 2 != 0)
      return false;
  return true;
}

/// Takes elements for larger ones, of up to 16 bytes, as far as that goes; their bytes.
unsigned widen(WalkCall &call, unsigned bytes) {
  for (; bytes < 16 && call.count > 0 && canPair(call, bytes); bytes *= 2) {
    if (bytes < 8)
      call.value = call.value << (8 * bytes) | (call.value & ((uint64_t(1) << (8 * bytes)) - 1));
    call.count /= 2;
    call.shape[call.rank - 1] /= 2;
    for (int32_t d = 0; d < call.rank - 1; ++d) {
      call.toStrides[d] /= 2;
      call.fromStrides[d] /= 2;
    }
  }
  return bytes;
}

void addWalk(Launches &launches, WalkCall call, unsigned bytes) {
  constexpr int64_t kMostBlocks = 1 << 16;
  bytes = widen(call, bytes);
  const bool isPacked = call.rank == 1 && call.toStrides[0] == 1 && call.fromStrides[0] == 1;
  const char *entry = bytes == 1   ? "ds_walk_1"
                      : bytes == 2 ? "ds_walk_2"
                      : bytes == 4 ? "ds_walk_4"
                      : bytes == 8 ? "ds_walk_8"
                      : isPacked   ? "ds_move_16"
                                   : "ds_walk_16";
  const int64_t blocks = divideUp(call.count, 256);
  launches.add(entry, blocks < kMostBlocks ? blocks : kMostBlocks, 256, call);
}

/// The bits of `value` as one element.
uint64_t bitsOf(double value, DType dtype) {
  uint64_t bits = 0;
  const float single = static_cast<float>(value);
  switch (dtype) {
  case DType::F64:
    memcpy(&bits, &value, 8);
    return bits;
  case DType::F32:
    memcpy(&bits, &single, 4);
    return bits;
  case DType::BF16: {
    uint32_t word;
    memcpy(&word, &single, 4);
    return value != value ? 0x7fc0 : (word + 0x7fff + (word >> 16 & 1)) >> 16 & 0xffff;
  }
  case DType::F16: {
    const _Float16 half = static_cast<_Float16>(value);
    memcpy(&bits, &half, 2);
    return bits;
  }
  case DType::Bool:
    return value != 0;
  default:
    return static_cast<uint64_t>(static_cast<int64_t>(value)) &
           (byteSize(dtype) == 8 ? ~uint64_t(0) : (uint64_t(1) << (8 * byteSize(dtype))) - 1);
  }
}

void addFill(Launches &launches, const LibraryCall &call) {
  double value;
  memcpy(&value, &call.params[0], 8);
  const View &out = call.operands[0];
  WalkCall walk = walkOf(out, out);
  walk.value = bitsOf(value, out.dtype);
  addWalk(launches, walk, byteSize(out.dtype));
}

void addCopy(Launches &launches, const LibraryCall &call) {
  WalkCall walk = walkOf(call.operands[0], call.operands[1]);
  walk.from = call.operands[0].data;
  addWalk(launches, walk, byteSize(call.operands[0].dtype));
}

//===----------------------------------------------------------------------===//
// GELU
//===----------------------------------------------------------------------===//

void addGelu(Launches &launches, const LibraryCall &call) {
  constexpr int64_t kMostBlocks = 1 << 16;
  const auto activation = static_cast<Activation>(call.params[3]);
  if (activation < Activation::Gelu)
    return;
  const bool isGradient = activation == Activation::GeluGradient;
  const View &result = call.operands[2];
  GeluCall c{result.data, result.data, countOf(result), 0};
  for (uint32_t k = 3; k < call.numOperands; ++k)
    if (call.operands[k].rank > 1) // no bias
      c.input = call.operands[k].data;
  const unsigned perVector = 16 / byteSize(result.dtype);
  if ((reinterpret_cast<uint64_t>(c.input) | reinterpret_cast<uint64_t>(c.result)) % 16 == 0)
    c.vectors = c.count / perVector;
  const int64_t rest = c.count - c.vectors * perVector;
  const int64_t blocks = divideUp(c.vectors > rest ? c.vectors : rest, 256);
  const bool isHalf = result.dtype == DType::F16;
  launches.add(isGradient ? (isHalf ? "ds_gelu_gradient_f16" : "ds_gelu_gradient_bf16")
                          : (isHalf ? "ds_gelu_f16" : "ds_gelu_bf16"),
               blocks < kMostBlocks ? blocks : kMostBlocks, 256, c);
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

void addEmbedding(Launches &launches, const LibraryCall &call) {
  const View &table = call.operands[0], &ids = call.operands[1], &out = call.operands[2];
  EmbeddingCall c{};
  c.table = table.data;
  c.ids = ids.data;
  c.out = out.data;
  c.numIds = countOf(ids);
  c.rows = table.shape[0];
  c.width = table.shape[1];
  c.tableStride = table.strides[0];
  c.wideIds = ids.dtype == DType::I64;
  c.isPart = call.numParams > 0 && call.params[0] != 0;
  launches.add(
      pick(table.dtype, "ds_embedding_forward_f32", "ds_embedding_forward_bf16", "ds_embedding_forward_f16"),
      c.numIds, threadsFor(c.width, 256), c);
}

/// The sort of the ids of an embedding's gradient; returns the numbers in their order, and the ids in `keys`.
const int32_t *addSort(Launches &launches, const LibraryCall &call, const int32_t *&keys) {
  const View &ids = call.operands[0];
  const int64_t rows = call.operands[2].shape[0];
  const IdSort sort = IdSort::of(countOf(ids), rows);
  int32_t *memory = static_cast<int32_t *>(call.workspace), *halves[] = {memory, memory + sort.ids};
  SortCall c{};
  c.ids = ids.data;
  c.totals = memory + 3 * sort.ids;
  c.counts = c.totals + sort.bins();
  c.rows = rows;
  c.numIds = static_cast<int32_t>(sort.ids);
  c.tiles = static_cast<int32_t>(sort.tiles);
  c.bins = static_cast<int32_t>(sort.bins());
  c.wideIds = ids.dtype == DType::I64;
  for (int digit = 0; digit < sort.digits; ++digit) {
    c.shift = digit * sort.digitBits;
    c.to = halves[digit % 2];
    c.keys = digit + 1 == sort.digits ? memory + 2 * sort.ids : nullptr;
    launches.add("ds_sort_count", sort.tiles, kSortTile, c);
    launches.add("ds_sort_sum", sort.tiles == 0 ? 0 : sort.bins(), 256, c);
    launches.add("ds_sort_place", sort.tiles, kSortTile, c);
    c.from = c.to;
  }
  keys = c.keys;
  return c.to;
}

/// Whether rows of `width` elements at `data`, `stride` apart, are whole vectors.
bool areVectors(const View &view, int64_t width, int64_t stride) {
  const int64_t bytes = byteSize(view.dtype);
  return reinterpret_cast<uint64_t>(view.data) % 16 == 0 && width * bytes % 16 == 0 &&
         stride * bytes % 16 == 0;
}

void addEmbeddingGradient(Launches &launches, const LibraryCall &call) {
  const View &ids = call.operands[0], &dout = call.operands[1], &dtable = call.operands[2];
  if (call.params[0] == 0)
    addWalk(launches, walkOf(dtable, dtable), byteSize(dtable.dtype));
  EmbeddingCall c{};
  c.table = dout.data;
  c.out = dtable.data;
  c.numIds = countOf(ids);
  c.rows = dtable.shape[0];
  c.width = dtable.shape[1];
  c.tableStride = dtable.strides[0];
  c.floatTable = dtable.dtype == DType::F32;
  c.aligned = areVectors(dout, c.width, c.width) && areVectors(dtable, c.width, c.tableStride);
  if (c.width == 0 || c.numIds == 0)
    return;
  c.order = addSort(launches, call, c.keys);
  constexpr uint32_t kFewThreads = 256, kManyThreads = 128;
  launches.add(pick(dout.dtype, "ds_embedding_few_f32", "ds_embedding_few_bf16", "ds_embedding_few_f16"),
               divideUp(c.numIds, kFewThreads / 32), kFewThreads, c);
  const int64_t columns = kManyThreads * (c.aligned ? 2 : 1);
  launches.add(pick(dout.dtype, "ds_embedding_many_f32", "ds_embedding_many_bf16", "ds_embedding_many_f16"),
               c.numIds > kFewRows ? divideUp(c.numIds, kFewRows) * divideUp(c.width, columns) : 0,
               kManyThreads, c);
}

} // namespace

//===----------------------------------------------------------------------===//
// Squares
//===----------------------------------------------------------------------===//

static_assert(kSquaresBlock == ::ds::rt::kSquaresBlock);

/// As many launches as tables are wanted for the tensors, and one that adds up unless the blocks' sums are
/// wanted. Adding up such sums is the host's.
void addSumOfSquares(Launches &launches, const LibraryCall &call) {
  const View &result = call.operands[call.numOperands - 1];
  const bool givesBlocks = result.dtype == DType::F32;
  float *sums = static_cast<float *>(givesBlocks ? result.data : call.workspace);
  int64_t finished = 0, blocks = 0; ///< of the launches before, of this one
  SquaresCall table{sums, 0, {}};
  const auto flush = [&] {
    launches.add("ds_squares_blocks", blocks, kSquaresThreads, table);
    finished += blocks;
    blocks = table.tensors = 0;
    table.sums = sums + finished;
  };
  for (uint32_t k = 0; k + 1 < call.numOperands; ++k) {
    const View &input = call.operands[k];
    const int64_t count = countOf(input);
    if (count == 0)
      continue;
    if (table.tensors == SquaresCall::kMaxTensors)
      flush();
    table.list[table.tensors++] = {input.data, count, static_cast<uint32_t>(blocks),
                                   input.dtype == DType::BF16  ? SquaresTensor::kBFloat16
                                   : input.dtype == DType::F16 ? SquaresTensor::kHalf
                                                               : SquaresTensor::kFloat};
    blocks += divideUp(count, kSquaresBlock);
  }
  flush();
  if (!givesBlocks)
    launches.add("ds_squares_total", 1, kSquaresTotals,
                 SquaresTotalCall{sums, static_cast<double *>(result.data), finished});
}

std::vector<CudaLaunch> cudaLaunches(LibraryFn fn, const LibraryCall &call) {
  // In the order of LibraryFn; products are cuBLASLt's, but for what comes after them.
  static constexpr void (*kAdd[])(Launches &, const LibraryCall &) = {addGelu,
                                                                      addAttention,
                                                                      addAttentionGradient,
                                                                      addEmbedding,
                                                                      addEmbeddingGradient,
                                                                      addCrossEntropy,
                                                                      addCrossEntropyGradient,
                                                                      addFill,
                                                                      addCopy,
                                                                      addConvolution,
                                                                      addInputGradient,
                                                                      addWeightGradient,
                                                                      addSumOfSquares,
                                                                      addCrossEntropyWithGradient};
  static_assert(sizeof kAdd / sizeof *kAdd == static_cast<unsigned>(kLastLibraryFn) + 1);
  Launches launches;
  kAdd[static_cast<unsigned>(fn)](launches, call);
  return std::move(launches.list);
}

std::vector<CudaLaunch> cudaLaunches(const RandomCall &call, void *data, DType dtype) {
  Launches launches;
  const FillRandomCall c{data,        call.first,  call.count, call.seed,
                         call.stream, call.offset, call.scale, call.normal};
  const int64_t quads = call.count > 0 ? divideUp(call.first + call.count, 4) - call.first / 4 : 0;
  launches.add(pick(dtype, "ds_fill_random_f32", "ds_fill_random_bf16", "ds_fill_random_f16"),
               divideUp(quads, 256), 256, c);
  return std::move(launches.list);
}

} // namespace ds::rt::cuda
