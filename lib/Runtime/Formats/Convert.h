//===- Convert.h - From a file's elements to a program's -----------------------===//
//
// Which conversions are made, and why no others:
//   same type            copied; a Bool must be 0 or 1
//   integer -> integer   each value must fit (tokens are stored as u16, programs index with i64)
//   F16, BF16 -> F32, F64; F32 -> F64   exact
//   F32 -> F16, BF16     rounded to nearest even, because the program's precision asks for it; overflow is
//   refused
// Float data for an integer input, integer data for a float input (what would the scale be?) and F64 for
// anything narrower (numpy's default type, usually a mistake; PyTorch refuses it too) are refused.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_CONVERT_H
#define DS_LIB_RUNTIME_FORMATS_CONVERT_H

#include "ds/Runtime/Formats/FileDType.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace ds::rt {

/// What integer values an input takes; see Input in Program.h.
struct IndexRule {
  int64_t limit = 0; ///< 0: any value
  bool hasIgnore = false;
  int64_t ignore = 0;
};

/// The first value that may not be in an input.
struct BadElement {
  size_t position = 0; ///< within the converted range
  std::string value;
  std::string limit; ///< the rule it breaks
};

bool isConvertible(FileDType from, DType to);

/// Converts `count` packed elements; neither pointer needs to be aligned. Requires isConvertible(from, to).
/// False if an element breaks a rule; `to` is then partly written.
bool convertElements(FileDType from, const void *source, DType to, void *target, size_t count,
                     const IndexRule &rule, BadElement &bad);

/// Bytes of one element of a program's type.
inline size_t elementBytes(DType dtype) { return bitSize(toFileDType(dtype)) / 8; }

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_CONVERT_H
