//===- SortIds.cu - Numbers of ids in the order of the ids, on CUDA ---------------===//
//
// One digit of a stable radix sort takes three launches: each block counts the digits of its tile of ids,
// each bin's counts are summed up over the tiles, and each block places its tile. Within a tile a thread has
// an id, and finds its place by what the lanes before it and the warps before its own have. Whole numbers
// only: the order follows from the ids alone.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

#include "ds/Runtime/Program/IdSort.h"

namespace ds::rt::cuda {

constexpr int kIds = 512, kMostBins = 512;
static_assert(kIds == kSortTile && kMostBins == 1 << kMostDigitBits && kMostBins <= kIds);

/// The id with number `i`; one outside the table is the row behind the last.
DS_DEVICE int32_t keyAt(const SortCall &call, int32_t i) {
  const int64_t id =
      call.wideIds ? static_cast<const int64_t *>(call.ids)[i] : static_cast<const int32_t *>(call.ids)[i];
  return static_cast<int32_t>(id >= 0 && id < call.rows ? id : call.rows);
}

/// What this thread places: the number of an id, and its digit; no id has digit -1.
struct SortItem {
  int32_t number, key, digit;
};
DS_DEVICE SortItem itemOf(const SortCall &call) {
  const int32_t place = static_cast<int32_t>(blockIdx.x) * kIds + static_cast<int32_t>(threadIdx.x);
  if (place >= call.numIds)
    return {0, 0, -1};
  const int32_t number = call.from ? call.from[place] : place, key = keyAt(call, number);
  return {number, key, key >> call.shift & (call.bins - 1)};
}

/// The sum of the values of the threads up to this one; `memory` has two ints for each thread.
DS_DEVICE int32_t sumUpTo(int32_t value, int32_t *memory) {
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  int32_t *from = memory, *to = memory + threads;
  from[thread] = value;
  for (int width = 1; width < threads; width *= 2) {
    __syncthreads();
    to[thread] = value = from[thread] + (thread >= width ? from[thread - width] : 0);
    int32_t *swap = from;
    from = to;
    to = swap;
  }
  __syncthreads();
  return value;
}

/// counts[bin][tile]
DS_DEVICE void countDigits(const SortCall &call) {
  DS_SHARED int32_t counts[kMostBins];
  const int thread = static_cast<int>(threadIdx.x);
  counts[thread] = 0;
  __syncthreads();
  const SortItem item = itemOf(call);
  if (item.digit >= 0)
    atomicAdd(&counts[item.digit], 1);
  __syncthreads();
  if (thread < call.bins)
    call.counts[static_cast<int64_t>(thread) * call.tiles + blockIdx.x] = counts[thread];
}

/// A block has a bin: its counts become how many the tiles before have, and their sum is the bin's.
DS_DEVICE void sumDigits(const SortCall &call) {
  DS_SHARED int32_t memory[2 * 256];
  DS_SHARED int32_t all;
  int32_t *counts = call.counts + static_cast<int64_t>(blockIdx.x) * call.tiles;
  int32_t before = 0;
  for (int32_t first = 0; first < call.tiles; first += static_cast<int32_t>(blockDim.x)) {
    const int32_t tile = first + static_cast<int32_t>(threadIdx.x);
    const int32_t count = tile < call.tiles ? counts[tile] : 0;
    const int32_t sum = sumUpTo(count, memory);
    if (tile < call.tiles)
      counts[tile] = before + sum - count;
    if (threadIdx.x == blockDim.x - 1)
      all = sum;
    __syncthreads();
    before += all;
  }
  if (threadIdx.x == 0)
    call.totals[blockIdx.x] = before;
}

DS_DEVICE void placeDigits(const SortCall &call) {
  constexpr int kWarps = kIds / 32;
  DS_SHARED int32_t before[kWarps][kMostBins]; ///< ids of a bin in the warps before
  DS_SHARED int32_t starts[2 * kIds];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  for (int w = 0; w < kWarps; ++w)
    before[w][thread] = 0;
  const int32_t total = thread < call.bins ? call.totals[thread] : 0;
  const int32_t start = sumUpTo(total, starts) - total; // and all counts are 0
  const SortItem item = itemOf(call);
  const uint32_t peers = __match_any_sync(kAllLanes, item.digit);
  const int rank = __popc(peers & ((1u << lane) - 1));
  if (rank == 0 && item.digit >= 0)
    before[warp][item.digit] = __popc(peers);
  __syncthreads();
  if (thread < call.bins) {
    int32_t sum = start + call.counts[static_cast<int64_t>(thread) * call.tiles + blockIdx.x];
    for (int w = 0; w < kWarps; ++w) {
      const int32_t count = before[w][thread];
      before[w][thread] = sum;
      sum += count;
    }
  }
  __syncthreads();
  if (item.digit < 0)
    return;
  const int32_t place = before[warp][item.digit] + rank;
  call.to[place] = item.number;
  if (call.keys)
    call.keys[place] = item.key;
}

} // namespace ds::rt::cuda

DS_KERNEL __launch_bounds__(512) ds_sort_count(ds::rt::cuda::SortCall call) {
  ds::rt::cuda::countDigits(call);
}
DS_KERNEL __launch_bounds__(256) ds_sort_sum(ds::rt::cuda::SortCall call) { ds::rt::cuda::sumDigits(call); }
DS_KERNEL __launch_bounds__(512) ds_sort_place(ds::rt::cuda::SortCall call) {
  ds::rt::cuda::placeDigits(call);
}
