//===- Convert.cpp - From a file's elements to a program's ---------------------===//

#include "Convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

using namespace ds::rt;

static bool isFloat(FileDType dtype) {
  return dtype == FileDType::F16 || dtype == FileDType::BF16 || dtype == FileDType::F32 ||
         dtype == FileDType::F64;
}

bool ds::rt::isConvertible(FileDType from, DType to) {
  FileDType target = toFileDType(to);
  if (from == target)
    return true;
  if (isInteger(target))
    return isInteger(from);
  if (!isFloat(from) || !isFloat(target) || from == FileDType::F64)
    return false;
  bool fromHalf = bitSize(from) == 16, toHalf = bitSize(target) == 16;
  return !(fromHalf && toHalf); // F16 and BF16 do not hold each other's values
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

namespace {
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
} // namespace

static float widen(float value) { return value; }
static float widen(Brain value) { return std::bit_cast<float>(uint32_t(value.bits) << 16); }
static float widen(Half value) {
  uint32_t sign = uint32_t(value.bits & 0x8000) << 16, rest = value.bits & 0x7fff;
  if (rest >= 0x7c00) // infinity, NaN with its payload
    return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  if (rest >= 0x0400) // rebias the exponent: 127 - 15 = 112
    return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
  float magnitude = float(rest) * 0x1p-24f; // subnormal, exact
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

static void narrow(float value, float &out) { out = value; }
static void narrow(float value, double &out) { out = value; }
static void narrow(float value, Brain &out) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    out.bits = uint16_t(bits >> 16 | 0x40); // stays a NaN when the low half is cut off
  else
    out.bits = uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static void narrow(float value, Half &out) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000;
  float magnitude = std::fabs(value);
  if (std::isnan(value)) {
    out.bits = uint16_t(sign | 0x7e00 | (bits >> 13 & 0x1ff));
  } else if (magnitude >= 65520.0f) { // half-way between the largest value and the next power of two
    out.bits = uint16_t(sign | 0x7c00);
  } else if (magnitude < 0x1p-14f) { // subnormal: let the addition round at the last place, 2^-24
    uint32_t rounded = std::bit_cast<uint32_t>(magnitude + 0.5f) - std::bit_cast<uint32_t>(0.5f);
    out.bits = uint16_t(sign | rounded);
  } else {
    uint32_t rebased = (bits & 0x7fffffff) - (112u << 23);
    out.bits = uint16_t(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
  }
}

template <class T>
static bool isFinite(T value) {
  if constexpr (std::is_same_v<T, double>)
    return std::isfinite(value);
  else
    return std::isfinite(widen(value));
}

template <class From, class To>
static bool convertFloats(const char *source, char *target, size_t count, BadElement &bad) {
  for (size_t i = 0; i < count; ++i) {
    From value;
    To result;
    memcpy(&value, source + i * sizeof(From), sizeof(From));
    float wide = widen(value);
    narrow(wide, result);
    if (sizeof(To) < sizeof(From) && std::isfinite(wide) && !isFinite(result)) {
      bad = {i, std::to_string(wide),
             std::is_same_v<To, Half> ? "the largest F16, 65504" : "the largest BF16"};
      return false;
    }
    memcpy(target + i * sizeof(To), &result, sizeof(To));
  }
  return true;
}

template <class From>
static bool convertFloatsFrom(const char *source, DType to, char *target, size_t count, BadElement &bad) {
  switch (to) {
  case DType::F16:
    return convertFloats<From, Half>(source, target, count, bad);
  case DType::BF16:
    return convertFloats<From, Brain>(source, target, count, bad);
  case DType::F32:
    return convertFloats<From, float>(source, target, count, bad);
  case DType::F64:
    return convertFloats<From, double>(source, target, count, bad);
  default:
    __builtin_unreachable();
  }
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Whether `value` may stand in an input of this rule.
static bool allows(const IndexRule &rule, int64_t value) {
  return rule.limit == 0 || uint64_t(value) < uint64_t(rule.limit) ||
         (rule.hasIgnore && value == rule.ignore);
}

template <class From, class To>
static bool convertIntegers(const char *source, char *target, size_t count, const IndexRule &rule,
                            BadElement &bad) {
  for (size_t i = 0; i < count; ++i) {
    From value;
    memcpy(&value, source + i * sizeof(From), sizeof(From));
    To result = To(value);
    bool fits = From(result) == value && (result < To(0)) == (value < From(0));
    if (!fits || !allows(rule, int64_t(result))) {
      std::string limit =
          fits ? "0 <= value < " + std::to_string(rule.limit) +
                     (rule.hasIgnore ? " or " + std::to_string(rule.ignore) : "")
               : "the range of " + std::string(spell(toFileDType(std::is_same_v<To, int64_t>   ? DType::I64
                                                                 : std::is_same_v<To, int32_t> ? DType::I32
                                                                 : std::is_same_v<To, int8_t>  ? DType::I8
                                                                                               : DType::U8)));
      bad = {i, std::to_string(value), limit};
      return false;
    }
    memcpy(target + i * sizeof(To), &result, sizeof(To));
  }
  return true;
}

template <class From>
static bool convertIntegersFrom(const char *source, DType to, char *target, size_t count,
                                const IndexRule &rule, BadElement &bad) {
  switch (to) {
  case DType::I64:
    return convertIntegers<From, int64_t>(source, target, count, rule, bad);
  case DType::I32:
    return convertIntegers<From, int32_t>(source, target, count, rule, bad);
  case DType::I8:
    return convertIntegers<From, int8_t>(source, target, count, rule, bad);
  case DType::U8:
    return convertIntegers<From, uint8_t>(source, target, count, rule, bad);
  default:
    __builtin_unreachable();
  }
}

static bool convertIntegers(FileDType from, const char *source, DType to, char *target, size_t count,
                            const IndexRule &rule, BadElement &bad) {
  switch (from) {
  case FileDType::U8:
    return convertIntegersFrom<uint8_t>(source, to, target, count, rule, bad);
  case FileDType::I8:
    return convertIntegersFrom<int8_t>(source, to, target, count, rule, bad);
  case FileDType::U16:
    return convertIntegersFrom<uint16_t>(source, to, target, count, rule, bad);
  case FileDType::I16:
    return convertIntegersFrom<int16_t>(source, to, target, count, rule, bad);
  case FileDType::U32:
    return convertIntegersFrom<uint32_t>(source, to, target, count, rule, bad);
  case FileDType::I32:
    return convertIntegersFrom<int32_t>(source, to, target, count, rule, bad);
  case FileDType::U64:
    return convertIntegersFrom<uint64_t>(source, to, target, count, rule, bad);
  case FileDType::I64:
    return convertIntegersFrom<int64_t>(source, to, target, count, rule, bad);
  default:
    __builtin_unreachable();
  }
}

bool ds::rt::convertElements(FileDType from, const void *source, DType to, void *target, size_t count,
                             const IndexRule &rule, BadElement &bad) {
  const char *in = static_cast<const char *>(source);
  char *out = static_cast<char *>(target);
  if (isInteger(from))
    return convertIntegers(from, in, to, out, count, rule, bad);
  if (from == toFileDType(to)) {
    memcpy(out, in, count * elementBytes(to));
    for (size_t i = 0; to == DType::Bool && i < count; ++i)
      if (uint8_t(in[i]) > 1) {
        bad = {i, std::to_string(uint8_t(in[i])), "0 or 1"};
        return false;
      }
    return true;
  }
  switch (from) {
  case FileDType::F16:
    return convertFloatsFrom<Half>(in, to, out, count, bad);
  case FileDType::BF16:
    return convertFloatsFrom<Brain>(in, to, out, count, bad);
  case FileDType::F32:
    return convertFloatsFrom<float>(in, to, out, count, bad);
  default:
    __builtin_unreachable();
  }
}
