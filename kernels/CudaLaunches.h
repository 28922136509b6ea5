//===- CudaLaunches.h - What the files that say launches share -----------------===//
#ifndef DS_KERNELS_CUDALAUNCHES_H
#define DS_KERNELS_CUDALAUNCHES_H

#include "CudaCommands.h"

#include <bit>

namespace ds::rt::cuda {

/// Elements of a view.
inline int64_t countOf(const View &view) {
  int64_t count = 1;
  for (uint32_t d = 0; d < view.rank; ++d)
    count *= view.shape[d];
  return count;
}

/// The entry of three for the type.
inline const char *pick(DType dtype, const char *single, const char *bfloat, const char *half) {
  return dtype == DType::BF16 ? bfloat : dtype == DType::F16 ? half : single;
}

/// Appends launches to a list.
struct Launches {
  std::vector<CudaLaunch> list;

  template <class Call>
  void add(const char *entry, int64_t blocks, uint32_t threads, const Call &call, uint32_t sharedBytes = 0) {
    if (blocks <= 0)
      return;
    const auto *bytes = reinterpret_cast<const unsigned char *>(&call);
    list.push_back(
        {entry, static_cast<uint32_t>(blocks), threads, sharedBytes, {bytes, bytes + sizeof(Call)}});
  }
};

/// A param that is a double by its bit pattern.
inline double asDouble(int64_t param) { return std::bit_cast<double>(param); }

/// Threads for rows of `size` elements: whole warps, each thread about four elements, up to `most`.
inline uint32_t threadsFor(int64_t size, uint32_t most) {
  uint32_t threads = 32;
  while (threads < most && int64_t(threads) * 4 < size)
    threads *= 2;
  return threads;
}

/// a / b, rounded up.
inline int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Each appends the launches of its command.
void addAttention(Launches &launches, const LibraryCall &call);
void addAttentionGradient(Launches &launches, const LibraryCall &call);
void addConvolution(Launches &launches, const LibraryCall &call);
void addInputGradient(Launches &launches, const LibraryCall &call);
void addWeightGradient(Launches &launches, const LibraryCall &call);
void addSumOfSquares(Launches &launches, const LibraryCall &call);
void addCrossEntropy(Launches &launches, const LibraryCall &call);
void addCrossEntropyGradient(Launches &launches, const LibraryCall &call);
void addCrossEntropyWithGradient(Launches &launches, const LibraryCall &call);

} // namespace ds::rt::cuda

#endif // DS_KERNELS_CUDALAUNCHES_H
