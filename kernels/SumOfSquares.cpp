//===- SumOfSquares.cpp - The squares of many tensors, added up at once ---------===//
//
// One order of additions for all types, instruction sets and numbers of threads, and for CUDA: a block has
// pieces of 2048 elements, element i of a piece goes to sum i % 256 in turn, and the sums of a piece, then
// the pieces of a block, are added by pairs of neighbours. What a short block lacks counts as 0. Blocks are
// numbered through all inputs; block b goes to sum b % 1024, in f64, and these are added by halves.
//
//===---------------------------------------------------------------------------===//
#include "Narrow.h"

#include "ds/Runtime/Program/Library.h"

namespace ds::rt::DS_ISA {
namespace {

constexpr int64_t kBlock = kSquaresBlock, kPiece = 2048, kSums = 256;
constexpr int kPieces = kBlock / kPiece, kTotals = 1024;
constexpr int64_t kGrain = 4; // blocks that a thread is worth waking for

DS_INLINE int64_t blocksOf(int64_t count) { return (count + kBlock - 1) / kBlock; }

/// Adds neighbours until one number is left.
template <int count>
DS_INLINE float addNeighbours(const float *numbers) {
  if constexpr (count == 1) {
    return *numbers;
  } else {
    float sums[count / 2];
    for (int i = 0; i < count / 2; ++i)
      sums[i] = numbers[2 * i] + numbers[2 * i + 1];
    return addNeighbours<count / 2>(sums);
  }
}

/// The squares of a whole piece; as many sums at once as fit in registers.
template <class T>
DS_INLINE float sumWholePiece(const T *x) {
  constexpr int kVectors = 8;
  float sums[kSums];
  for (int64_t first = 0; first < kSums; first += kVectors * kLanes) {
    Vec some[kVectors] = {};
    for (int64_t row = first; row < kPiece; row += kSums)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const Vec numbers = load(x + row + v * kLanes);
        some[v] += numbers * numbers;
      }
    for (int v = 0; v < kVectors; ++v)
      store(sums + first + v * kLanes, some[v]);
  }
  return addNeighbours<kSums>(sums);
}

template <class T>
DS_INLINE float sumPiece(const T *x, int64_t count) {
  if (count >= kPiece)
    return sumWholePiece(x);
  float sums[kSums] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec numbers = load(x + i);
    store(sums + i % kSums, load(sums + i % kSums) + numbers * numbers);
  }
  for (; i < count; ++i) {
    const float number = toFloat(x[i]);
    sums[i % kSums] += number * number;
  }
  return addNeighbours<kSums>(sums);
}

template <class T>
float sumBlock(const T *x, int64_t count) {
  float sums[kPieces];
  for (int piece = 0; piece < kPieces; ++piece) {
    const int64_t begin = piece * kPiece;
    sums[piece] = begin < count ? sumPiece(x + begin, count - begin) : 0.0f;
  }
  return addNeighbours<kPieces>(sums);
}

/// The blocks [begin, end) of all inputs.
void sumBlocks(const LibraryCall &call, float *sums, int64_t begin, int64_t end) {
  int64_t first = 0; // of the input
  for (uint32_t k = 0; k + 1 < call.numOperands && first < end; ++k) {
    const View &input = call.operands[k];
    const int64_t count = countOf(input), last = first + blocksOf(count);
    withType(input.dtype, [&](auto element) {
      using T = decltype(element);
      for (int64_t b = maxOf(begin, first); b < minOf(end, last); ++b) {
        const int64_t at = (b - first) * kBlock;
        sums[b] = sumBlock(elements<T>(input) + at, count - at);
      }
    });
    first = last;
  }
}

/// The sum of blocks, as they come.
class Total {
public:
  void add(const float *sums, int64_t blocks) {
    for (int64_t b = 0; b < blocks; ++b, ++number)
      totals[number % kTotals] += static_cast<double>(sums[b]);
  }
  double finish() {
    for (int half = kTotals / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i)
        totals[i] += totals[i + half];
    return totals[0];
  }

private:
  double totals[kTotals] = {};
  int64_t number = 0;
};

} // namespace

void sumOfSquares(const LibraryCall &call) {
  const View &result = call.operands[call.numOperands - 1];
  const bool givesBlocks = result.dtype == DType::F32;
  Total total;
  if (call.numParams > 0 && call.params[0] != 0) {
    for (uint32_t k = 0; k + 1 < call.numOperands; ++k)
      total.add(elements<float>(call.operands[k]), countOf(call.operands[k]));
    *static_cast<double *>(result.data) = total.finish();
    return;
  }
  float *sums = static_cast<float *>(givesBlocks ? result.data : call.workspace);
  int64_t blocks = 0;
  for (uint32_t k = 0; k + 1 < call.numOperands; ++k)
    blocks += blocksOf(countOf(call.operands[k]));
  auto body = [&](int64_t begin, int64_t end) { sumBlocks(call, sums, begin, end); };
  forRanges(blocks, kGrain, call.threads, body);
  if (givesBlocks)
    return;
  total.add(sums, blocks);
  *static_cast<double *>(result.data) = total.finish();
}

} // namespace ds::rt::DS_ISA
