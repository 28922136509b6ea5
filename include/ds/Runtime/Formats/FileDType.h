//===- FileDType.h - Element types as data files spell them --------------------===//
//
// Files know more element types than programs do (unsigned words, 8-bit and sub-byte floats). One enumeration
// serves safetensors, .npy and token streams; converting to what a program computes in is a separate
// question.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FORMATS_FILEDTYPE_H
#define DS_RUNTIME_FORMATS_FILEDTYPE_H

#include "ds/Runtime/Program/Program.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace ds::rt {

/// In the order of the safetensors reference, which sorts the tensors of a file by it (largest alignment
/// first).
enum class FileDType : uint8_t {
  Bool,
  F4,
  F6E2M3,
  F6E3M2,
  U8,
  I8,
  F8E5M2,
  F8E4M3,
  F8E8M0,
  F8E4M3FNUZ,
  F8E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64,
};
inline constexpr unsigned kNumFileDTypes = 22;

/// Size of one element in bits; F4 and F6 are the only ones that are not whole bytes.
unsigned bitSize(FileDType dtype);

/// Spelling in a safetensors header ("BF16", "F8_E4M3").
std::string_view spell(FileDType dtype);

/// The inverse of `spell`; nothing for an unknown spelling.
std::optional<FileDType> parseFileDType(std::string_view text);

/// Whether the values are (unsigned or signed) integers; Bool is not one.
bool isInteger(FileDType dtype);

/// The file's name for a program's element type. Every program type has one.
FileDType toFileDType(DType dtype);

/// The program's element type with the same bits, or nothing (unsigned words, 8-bit floats, complex).
std::optional<DType> toDType(FileDType dtype);

} // namespace ds::rt

#endif // DS_RUNTIME_FORMATS_FILEDTYPE_H
