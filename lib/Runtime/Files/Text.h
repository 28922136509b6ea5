//===- Text.h - Text for messages and for the files we write -------------------===//
//
// Names in data files are untrusted: they may hold control characters, 4 kB of one letter, or bytes that are
// not UTF-8. Whatever reaches a message is quoted and shortened; whatever reaches a JSON file is escaped.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_FILES_TEXT_H
#define DS_LIB_RUNTIME_FILES_TEXT_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ds::rt {

/// `text` in single quotes, with control characters and invalid UTF-8 as \xNN and the middle of a long text
/// left out.
std::string quote(std::string_view text);

/// "[2, 3]".
std::string spellShape(std::span<const int64_t> shape);

/// "'a', 'b', 'c'", at most 20 names, then how many more; "none" when empty.
std::string spellNames(std::span<const std::string> names);

/// An I/O error: "cannot <action> 'path': No space left on device".
Error ioError(std::string_view action, std::string_view path, int errorNumber, std::string hint = "");

/// Length in bytes of the well-formed UTF-8 sequence that `text` starts with, 0 if there is none.
unsigned utf8Length(std::string_view text);

/// Whether the whole of `text` is well-formed UTF-8.
bool isUtf8(std::string_view text);

/// Appends `text` as a JSON string; invalid UTF-8 becomes U+FFFD.
void appendJsonString(std::string &out, std::string_view text);

/// Appends the shortest decimal that reads back as `value`, always with a point or exponent; `null` for NaN
/// and infinity, which JSON does not know.
void appendJsonNumber(std::string &out, double value);

/// Product of `shape` in `count`; false if a dimension is negative or the product leaves int64.
bool checkedProduct(std::span<const int64_t> shape, int64_t &count);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FILES_TEXT_H
