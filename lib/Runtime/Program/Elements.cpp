//===- Elements.cpp - Converts single elements ----------------------------------===//
//
// Half precision goes through the compiler's _Float16 (software where the processor has none); bfloat16 is
// the upper half of a float.
//
//===---------------------------------------------------------------------------===//
#include "Elements.h"

#include <cmath>
#include <cstring>

namespace ds::rt {
namespace {

template <class T>
double loadAs(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

template <class T>
void storeAs(std::byte *to, double value) {
  const T converted = static_cast<T>(value);
  std::memcpy(to, &converted, sizeof converted);
}

uint16_t toBFloat16(float value) {
  if (std::isnan(value))
    return 0x7fc0;
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

} // namespace

double loadElement(const std::byte *from, DType dtype) {
  switch (dtype) {
  case DType::F32:
    return loadAs<float>(from);
  case DType::F64:
    return loadAs<double>(from);
  case DType::F16:
    return loadAs<_Float16>(from);
  case DType::BF16: {
    uint32_t word = 0;
    std::memcpy(reinterpret_cast<std::byte *>(&word) + 2, from, 2);
    return loadAs<float>(reinterpret_cast<const std::byte *>(&word));
  }
  case DType::I64:
    return loadAs<int64_t>(from);
  case DType::I32:
    return loadAs<int32_t>(from);
  case DType::I8:
    return loadAs<int8_t>(from);
  case DType::U8:
  case DType::Bool:
    return loadAs<uint8_t>(from);
  }
  return 0;
}

void storeElement(std::byte *to, DType dtype, double value) {
  switch (dtype) {
  case DType::F32:
    return storeAs<float>(to, value);
  case DType::F64:
    return storeAs<double>(to, value);
  case DType::F16:
    return storeAs<_Float16>(to, value);
  case DType::BF16: {
    const uint16_t word = toBFloat16(static_cast<float>(value));
    std::memcpy(to, &word, sizeof word);
    return;
  }
  case DType::I64:
    return storeAs<int64_t>(to, value);
  case DType::I32:
    return storeAs<int32_t>(to, value);
  case DType::I8:
    return storeAs<int8_t>(to, value);
  case DType::U8:
    return storeAs<uint8_t>(to, value);
  case DType::Bool:
    return storeAs<uint8_t>(to, value != 0);
  }
}

} // namespace ds::rt
