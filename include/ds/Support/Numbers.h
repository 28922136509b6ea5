//===- Numbers.h - Numbers on a command line ------------------------------------===//
//
// One reading for all tools. What the C library would guess about is refused: a sign where none belongs, a
// leading zero (octal to some, decimal to others), hexadecimal, spaces, digits with something behind them,
// and what does not fit 64 bits.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_SUPPORT_NUMBERS_H
#define DS_SUPPORT_NUMBERS_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ds {

/// A whole number in decimal digits from `least` to `most`. Usage, naming `option`, else.
Result<uint64_t> parseWhole(const std::string &option, std::string_view text, uint64_t least = 0,
                            uint64_t most = UINT64_MAX);

/// A finite number from `least` to `most`: "600", "0.5", "1e3". Usage, naming `option`, else.
Result<double> parseReal(const std::string &option, std::string_view text, double least, double most);

/// A positive number of bytes: "1073741824", "512MiB", "1.5GiB". Usage, naming `option`, else.
Result<uint64_t> parseBytes(const std::string &option, std::string_view text);

} // namespace ds

#endif // DS_SUPPORT_NUMBERS_H
