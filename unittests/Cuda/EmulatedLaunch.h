//===- EmulatedLaunch.h - Library functions as CUDA launches them, on the CPU ----===//
#ifndef DS_UNITTESTS_CUDA_EMULATEDLAUNCH_H
#define DS_UNITTESTS_CUDA_EMULATEDLAUNCH_H

#include "../Runtime/KernelTestUtil.h"
#include "CudaCommands.h"
#include "EmulatedKernels.h"

#include <algorithm>

namespace ds::rt {

using test::Tensor;

inline void launch(const cuda::CudaLaunch &launch) {
  namespace e = cuda::emulation;
  const e::Entry *entry = e::findEntry(launch.entry);
  ASSERT_TRUE(entry) << launch.entry;
  ASSERT_LE(launch.sharedBytes, sizeof e::dynamicShared);
  ASSERT_EQ(launch.argument.size(), entry->bytes) << launch.entry;
  ASSERT_TRUE(e::run(*entry, launch.argument.data(), launch.blocks, launch.threads, launch.sharedBytes))
      << launch.entry << " waits for ever";
}

/// Runs `fn` as CUDA launches.
inline void callCuda(LibraryFn fn, std::vector<View> operands, std::vector<int64_t> params,
                     void *workspace = nullptr) {
  const LibraryCall call{operands.data(),
                         params.data(),
                         static_cast<uint32_t>(operands.size()),
                         static_cast<uint32_t>(params.size()),
                         1,
                         workspace};
  const std::vector<cuda::CudaLaunch> launches = cuda::cudaLaunches(fn, call);
  ASSERT_FALSE(launches.empty());
  for (const cuda::CudaLaunch &one : launches)
    launch(one);
}
inline void callCpu(LibraryFn fn, std::vector<View> operands, std::vector<int64_t> params,
                    void *workspace = nullptr) {
  test::call(fn, bestIsa(), std::move(operands), std::move(params), 1, workspace);
}

inline float valueOf(uint16_t bits, DType dtype) {
  return dtype == DType::F16 ? static_cast<float>(std::bit_cast<_Float16>(bits))
                             : std::bit_cast<float>(uint32_t(bits) << 16);
}

/// A tensor of f32 or 16-bit floats, filled from a seed.
struct Numbers {
  DType dtype;
  Tensor<> shape;              ///< where elements lie; its own elements if f32
  std::vector<uint16_t> words; ///< else these

  Numbers(DType dtype, std::vector<int64_t> sizes, uint32_t seed, int64_t gap = 0)
      : dtype(dtype), shape(sizes, gap) {
    shape.randomize(seed);
    if (dtype == DType::F32)
      return;
    for (float value : shape.data)
      words.push_back(dtype == DType::F16 ? std::bit_cast<uint16_t>(static_cast<_Float16>(value))
                                          : static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
  }
  View view() {
    View view = shape.view();
    view.dtype = dtype;
    if (dtype != DType::F32)
      view.data = words.data();
    return view;
  }
  float at(size_t i) const { return dtype == DType::F32 ? shape.data[i] : valueOf(words[i], dtype); }
  size_t size() const { return shape.data.size(); }
};

/// The numbers agree within `relative` of the largest; 0: to the bit, the gaps included.
inline void expectNear(const Numbers &got, const Numbers &expected, float relative, const char *what) {
  ASSERT_EQ(got.size(), expected.size());
  float largest = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    if (std::isfinite(expected.at(i)))
      largest = std::max(largest, std::abs(expected.at(i)));
  size_t wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const float x = got.at(i), y = expected.at(i);
    wrong += !(x == y || std::abs(x - y) <= relative * largest || (std::isnan(x) && std::isnan(y)));
  }
  EXPECT_EQ(wrong, 0u) << what << " of " << expected.size();
}

} // namespace ds::rt

#endif // DS_UNITTESTS_CUDA_EMULATEDLAUNCH_H
