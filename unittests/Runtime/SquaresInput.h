//===- SquaresInput.h - Tensors whose squares are added up ---------------------===//
#ifndef DS_UNITTESTS_RUNTIME_SQUARESINPUT_H
#define DS_UNITTESTS_RUNTIME_SQUARESINPUT_H

#include "ds/Kernels/Kernels.h"
#include "ds/Runtime/Program/Library.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace ds::rt::test {

/// A packed tensor of f32 or 16-bit floats whose elements begin `offset` elements behind an address that is a
/// multiple of 16 bytes, with NaN before and after them.
struct SquaresInput {
  DType dtype;
  std::vector<int64_t> shape, strides;
  std::vector<float> numbers; ///< as they are in memory

  SquaresInput(DType dtype, std::vector<int64_t> sizes, uint32_t seed, int64_t offset = 0)
      : dtype(dtype), shape(std::move(sizes)), strides(shape.size(), 1), offset(offset) {
    for (size_t d = shape.size(); d-- > 1;)
      strides[d - 1] = strides[d] * shape[d];
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    numbers.resize(static_cast<size_t>(count));
    memory.assign(static_cast<size_t>((count + 2 * offset) / 4 + 2), Words{~0u, ~0u, ~0u, ~0u});
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 1);
    for (int64_t i = 0; i < count; ++i)
      set(i, normal(random));
  }

  /// Makes `value`, rounded, element `i`.
  void set(int64_t i, float value) {
    if (dtype == DType::F32) {
      put(i, value);
    } else if (dtype == DType::F16) {
      const auto half = static_cast<_Float16>(value);
      put(i, half);
      value = static_cast<float>(half);
    } else {
      const auto word = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      put(i, word);
      value = std::bit_cast<float>(uint32_t(word) << 16);
    }
    numbers[static_cast<size_t>(i)] = value;
  }

  View view() {
    return {data() + offset * size(), shape.data(), strides.data(), static_cast<uint32_t>(shape.size()),
            dtype};
  }

private:
  struct alignas(16) Words {
    uint32_t words[4];
  };
  int64_t size() const { return dtype == DType::F32 ? 4 : 2; }
  std::byte *data() { return reinterpret_cast<std::byte *>(memory.data()); }
  template <class T>
  void put(int64_t i, T value) {
    std::memcpy(data() + (offset + i) * size(), &value, sizeof value);
  }

  int64_t offset;
  std::vector<Words> memory;
};

/// All that is special at once: tensors of every type, of no elements, of rank 0, around the size of a block,
/// at addresses that are no multiple of 16, and more of them than one of CUDA's tables takes.
inline std::vector<SquaresInput> manySquaresInputs() {
  const DType dtypes[] = {DType::F32, DType::BF16, DType::F16};
  std::vector<SquaresInput> inputs;
  uint32_t seed = 0;
  for (DType dtype : dtypes)
    for (int64_t offset : {0, 1, 2, 3}) {
      for (int64_t size : {16383, 16384, 16385, 2500, 0, 1})
        inputs.emplace_back(dtype, std::vector<int64_t>{size}, ++seed, offset);
      inputs.emplace_back(dtype, std::vector<int64_t>{3, 70, 90}, ++seed, offset);
      inputs.emplace_back(dtype, std::vector<int64_t>{}, ++seed, offset);
    }
  for (int64_t i = 0; i < 300; ++i)
    inputs.emplace_back(dtypes[i % 3], std::vector<int64_t>{i % 7}, ++seed, i % 5);
  return inputs;
}

/// The operands and the workspace of a call that writes `result`.
struct SquaresCall {
  std::vector<View> operands;
  std::vector<float> sums;

  SquaresCall(std::vector<SquaresInput> &inputs, double *result) {
    size_t blocks = 0;
    for (SquaresInput &input : inputs) {
      operands.push_back(input.view());
      blocks += (input.numbers.size() + kSquaresBlock - 1) / kSquaresBlock;
    }
    operands.push_back({result, nullptr, nullptr, 0, DType::F64});
    sums.assign(blocks, NAN);
  }
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_SQUARESINPUT_H
