//===- SumOfSquares.cu - The squares of many tensors, added up at once, on CUDA --===//
//
// A list of tensors is the kernel's argument, so that one launch reads them all. A block of threads takes a
// block of elements, each of its warps a piece, all of it at once, for the next block is another's work. A
// second launch adds up the blocks. The order is the CPU kernel's (SumOfSquares.cpp), and so are the bits.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

namespace ds::rt::cuda {

/// Adds this thread's elements of a piece to `sums`: of each row of 256 elements 16 bytes, twice in f32. Of a
/// piece that `isWhole` it has all `count`, and they start at a multiple of 16 bytes.
template <class T, bool isWhole>
DS_DEVICE void addSquares(const T *piece, int64_t count, float *sums) {
  constexpr int kVector = 16 / sizeof(T);
  struct alignas(16) Vector {
    T values[kVector];
  };
  const int64_t own = threadIdx.x % 32 * kVector;
  const bool isAligned = isWhole || reinterpret_cast<uint64_t>(piece) % 16 == 0;
#pragma unroll
  for (int64_t row = 0; row < kSquaresPiece; row += 32 * kVector) {
    const int64_t first = row + own;
    float *to = sums + row % 256 / 32;
    if (isWhole || (isAligned && first + kVector <= count)) {
      const Vector loaded = *reinterpret_cast<const Vector *>(piece + first);
      for (int k = 0; k < kVector; ++k)
        to[k] += toFloat(loaded.values[k]) * toFloat(loaded.values[k]);
    } else if constexpr (!isWhole) {
      for (int k = 0; k < kVector; ++k)
        if (first + k < count)
          to[k] += toFloat(piece[first + k]) * toFloat(piece[first + k]);
    }
  }
}

/// Adds neighbouring lanes, then neighbouring pairs, and so on: the sum of the warp.
DS_DEVICE float addNeighbours(float value) {
  for (int mask = 1; mask < 32; mask *= 2)
    value += __shfl_xor_sync(kAllLanes, value, mask);
  return value;
}

/// The sum of a warp's piece; 8 numbers of a thread are sums of neighbours, in f32 of 4 and, half a row
/// on, 4.
template <class T>
DS_DEVICE float sumPiece(const void *data, int64_t begin, int64_t count) {
  const T *piece = static_cast<const T *>(data) + begin;
  float sums[8] = {};
  if (count >= kSquaresPiece && reinterpret_cast<uint64_t>(piece) % 16 == 0)
    addSquares<T, true>(piece, count, sums);
  else
    addSquares<T, false>(piece, count, sums);
  const float low = (sums[0] + sums[1]) + (sums[2] + sums[3]),
              high = (sums[4] + sums[5]) + (sums[6] + sums[7]);
  return sizeof(T) == 4 ? addNeighbours(low) + addNeighbours(high) : addNeighbours(low + high);
}

/// The tensor that this block is of.
DS_DEVICE const SquaresTensor &tensorOfBlock(const SquaresCall &call) {
  uint32_t low = 0, high = call.tensors;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (call.list[middle].firstBlock <= blockIdx.x)
      low = middle;
    else
      high = middle;
  }
  return call.list[low];
}

DS_DEVICE void sumBlock(const SquaresCall &call) {
  DS_SHARED float pieces[kSquaresThreads / 32];
  const SquaresTensor &tensor = tensorOfBlock(call);
  const unsigned warp = threadIdx.x / 32;
  const int64_t begin = int64_t(blockIdx.x - tensor.firstBlock) * kSquaresBlock + warp * kSquaresPiece;
  const int64_t count = tensor.elements - begin;
  const float sum = tensor.type == SquaresTensor::kFloat      ? sumPiece<float>(tensor.data, begin, count)
                    : tensor.type == SquaresTensor::kBFloat16 ? sumPiece<BFloat16>(tensor.data, begin, count)
                                                              : sumPiece<Half>(tensor.data, begin, count);
  if (threadIdx.x % 32 == 0)
    pieces[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0)
    call.sums[blockIdx.x] = ((pieces[0] + pieces[1]) + (pieces[2] + pieces[3])) +
                            ((pieces[4] + pieces[5]) + (pieces[6] + pieces[7]));
}

/// One block.
DS_DEVICE void addBlocks(const SquaresTotalCall &call) {
  DS_SHARED double totals[kSquaresTotals];
  double total = 0;
  for (int64_t b = threadIdx.x; b < call.blocks; b += kSquaresTotals)
    total += static_cast<double>(call.sums[b]);
  totals[threadIdx.x] = total;
  for (unsigned half = kSquaresTotals / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      totals[threadIdx.x] += totals[threadIdx.x + half];
  }
  if (threadIdx.x == 0)
    *call.result = totals[0];
}

} // namespace ds::rt::cuda

DS_KERNEL __launch_bounds__(ds::rt::cuda::kSquaresThreads) ds_squares_blocks(ds::rt::cuda::SquaresCall call) {
  ds::rt::cuda::sumBlock(call);
}
DS_KERNEL __launch_bounds__(ds::rt::cuda::kSquaresTotals)
    ds_squares_total(ds::rt::cuda::SquaresTotalCall call) {
  ds::rt::cuda::addBlocks(call);
}
