//===- KernelTestUtil.h - Tensors and calls for the kernels' tests -------------===//
//
// A Tensor owns its elements with any strides; gaps between rows hold NaN, so that a kernel that reads
// outside its view is seen.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_KERNELTESTUTIL_H
#define DS_UNITTESTS_RUNTIME_KERNELTESTUTIL_H

#include "ds/Kernels/Kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>

namespace ds::rt::test {

template <class T>
constexpr DType dtypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return DType::F32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::I64;
  else
    return DType::I32;
}

template <class T = float>
struct Tensor {
  std::vector<int64_t> shape, strides;
  std::vector<T> data;

  explicit Tensor(std::vector<int64_t> shape_, int64_t rowGap = 0)
      : shape(std::move(shape_)), strides(shape.size(), 1) {
    int64_t size = shape.empty() ? 1 : shape.back();
    for (size_t d = shape.size(); d-- > 1;) {
      size += d == shape.size() - 1 ? rowGap : 0;
      strides[d - 1] = size;
      size *= shape[d - 1];
    }
    data.assign(static_cast<size_t>(size), std::numeric_limits<T>::quiet_NaN());
  }
  T &at(std::initializer_list<int64_t> index) {
    return data[static_cast<size_t>(
        std::inner_product(index.begin(), index.end(), strides.begin(), int64_t(0)))];
  }
  /// Calls f(element) in row-major order of the indices.
  template <class F>
  void each(F f) {
    std::vector<int64_t> index(shape.size(), 0);
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
    for (int64_t i = 0; i < count; ++i) {
      f(data[static_cast<size_t>(
          std::inner_product(index.begin(), index.end(), strides.begin(), int64_t(0)))]);
      for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];)
        index[d] = 0;
    }
  }
  void randomize(uint32_t seed, float scale = 1.0f) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, scale);
    each([&](T &value) { value = static_cast<T>(normal(random)); });
  }
  View view() {
    return {data.data(), shape.data(), strides.data(), static_cast<uint32_t>(shape.size()), dtypeOf<T>()};
  }
};

inline void call(LibraryFn fn, Isa isa, std::vector<View> operands, std::vector<int64_t> params,
                 uint32_t threads = 2, void *workspace = nullptr) {
  libraryFunction(fn, isa)({operands.data(), params.data(), static_cast<uint32_t>(operands.size()),
                            static_cast<uint32_t>(params.size()), threads, workspace});
}

/// Instruction sets that this machine can test.
inline std::vector<Isa> testableIsas() {
  std::vector<Isa> list;
  for (Isa isa : {Isa::X86_64, Isa::X86_64_V3, Isa::X86_64_V4})
    if (isa <= bestIsa())
      list.push_back(isa);
  return list;
}

class KernelTest : public testing::TestWithParam<Isa> {};

inline std::string isaName(const testing::TestParamInfo<Isa> &info) {
  return "v" + std::to_string(static_cast<int>(info.param));
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_KERNELTESTUTIL_H
