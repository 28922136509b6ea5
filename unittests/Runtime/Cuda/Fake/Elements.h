//===- Elements.h - Numbers of three types in the fake device's memory -----------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_ELEMENTS_H
#define DS_UNITTESTS_RUNTIME_CUDA_ELEMENTS_H

#include <library_types.h>

#include <bit>
#include <cstdint>

namespace ds::rt::fake {

/// `type` is a cudaDataType: CUDA_R_32F, CUDA_R_16F or CUDA_R_16BF.
inline float load(const void *at, int64_t index, int type) {
  if (type == CUDA_R_32F)
    return static_cast<const float *>(at)[index];
  const uint16_t bits = static_cast<const uint16_t *>(at)[index];
  return type == CUDA_R_16F ? static_cast<float>(std::bit_cast<_Float16>(bits))
                            : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Rounds to nearest, ties to even.
inline void store(void *at, int64_t index, int type, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float *>(at)[index] = value;
    return;
  }
  const auto bits = std::bit_cast<uint32_t>(value);
  static_cast<uint16_t *>(at)[index] =
      type == CUDA_R_16F ? std::bit_cast<uint16_t>(static_cast<_Float16>(value))
                         : static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

} // namespace ds::rt::fake

#endif // DS_UNITTESTS_RUNTIME_CUDA_ELEMENTS_H
