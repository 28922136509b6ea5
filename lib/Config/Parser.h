//===- Parser.h - JSON with the liberties that DeepSpeed's hjson allows --------------===//
//
// Comments (#, //, /* */), trailing commas, a new line in place of a comma, unquoted keys and single quotes
// are read; what would let a mistake pass is not: text without quotes as a value, duplicate keys, NaN,
// integers beyond 64 bits, a byte order mark, bytes that are not UTF-8. Every refusal names byte, line and
// column.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CONFIG_PARSER_H
#define DS_LIB_CONFIG_PARSER_H

#include "Value.h"
#include "ds/Support/Error.h"

namespace ds::config {

/// Bounds on what is read.
inline constexpr size_t kMaxConfigBytes = size_t{16} << 20;
inline constexpr unsigned kMaxDepth = 64;

/// Parses a whole text. `name` is what messages call it; a text from `--set` has places that say `set`.
Result<Value> parseText(std::string_view text, const std::string &name, const std::string &set = "");

/// "name:line:column (byte n)", or "--set KEY".
std::string spellLocation(const std::string &name, const TextLocation &place);

} // namespace ds::config

#endif // DS_LIB_CONFIG_PARSER_H
