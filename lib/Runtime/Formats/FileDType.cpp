//===- FileDType.cpp - Element types as data files spell them ------------------===//

#include "ds/Runtime/Formats/FileDType.h"

#include <iterator>

using namespace ds::rt;

namespace {
struct Description {
  std::string_view name;
  unsigned bits;
};

/// By FileDType.
constexpr Description kDescriptions[] = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
};
static_assert(std::size(kDescriptions) == kNumFileDTypes);
} // namespace

unsigned ds::rt::bitSize(FileDType dtype) { return kDescriptions[unsigned(dtype)].bits; }

std::string_view ds::rt::spell(FileDType dtype) { return kDescriptions[unsigned(dtype)].name; }

std::optional<FileDType> ds::rt::parseFileDType(std::string_view text) {
  for (unsigned i = 0; i < kNumFileDTypes; ++i)
    if (kDescriptions[i].name == text)
      return FileDType(i);
  return std::nullopt;
}

bool ds::rt::isInteger(FileDType dtype) {
  switch (dtype) {
  case FileDType::U8:
  case FileDType::I8:
  case FileDType::I16:
  case FileDType::U16:
  case FileDType::I32:
  case FileDType::U32:
  case FileDType::I64:
  case FileDType::U64:
    return true;
  default:
    return false;
  }
}

FileDType ds::rt::toFileDType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return FileDType::F32;
  case DType::F64:
    return FileDType::F64;
  case DType::F16:
    return FileDType::F16;
  case DType::BF16:
    return FileDType::BF16;
  case DType::I64:
    return FileDType::I64;
  case DType::I32:
    return FileDType::I32;
  case DType::I8:
    return FileDType::I8;
  case DType::U8:
    return FileDType::U8;
  case DType::Bool:
    return FileDType::Bool;
  }
  __builtin_unreachable();
}

std::optional<DType> ds::rt::toDType(FileDType dtype) {
  for (DType candidate : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I8,
                          DType::U8, DType::Bool})
    if (toFileDType(candidate) == dtype)
      return candidate;
  return std::nullopt;
}
