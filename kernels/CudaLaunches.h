//===- CudaLaunches.h - What the files that say launches share -----------------===//
#ifndef DS_KERNELS_CUDALAUNCHES_H
#define DS_KERNELS_CUDALAUNCHES_H

#include "CudaCalls.h"
#include "ds/Runtime/Kernels.h"

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
  CudaLaunch *list;
  unsigned count = 0;

  template <class Call>
  void add(const char *entry, int64_t blocks, uint32_t threads, const Call &call, uint32_t sharedBytes = 0) {
    static_assert(sizeof(Call) <= sizeof(CudaLaunch::argument));
    if (blocks <= 0)
      return;
    CudaLaunch &launch = list[count++];
    launch.entry = entry;
    launch.blocks = static_cast<uint32_t>(blocks);
    launch.threads = threads;
    launch.sharedBytes = sharedBytes;
    launch.argumentBytes = sizeof(Call);
    memcpy(launch.argument, &call, sizeof(Call));
  }
};

/// a / b, rounded up.
inline int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Each appends the launches of its command.
void addConvolution(Launches &launches, const LibraryCall &call);
void addInputGradient(Launches &launches, const LibraryCall &call);
void addWeightGradient(Launches &launches, const LibraryCall &call);

} // namespace ds::rt::cuda

#endif // DS_KERNELS_CUDALAUNCHES_H
