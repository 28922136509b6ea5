//===- Numbers.cpp - Numbers on a command line ------------------------------------===//
#include "ds/Support/Numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

namespace ds {

/// The value as it was given, fit for a message.
static std::string quoted(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string out = "'";
  for (char c : text.substr(0, kMost))
    out += c >= 0x20 && c < 0x7f ? c : '?';
  return out + (text.size() > kMost ? "...'" : "'");
}

static Error usage(const std::string &option, std::string_view text, const std::string &accepted,
                   std::string hint) {
  return {ExitCode::Usage, option + " expects " + accepted + ", but got " + quoted(text), std::move(hint)};
}

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Whether `text` begins as people write decimal numbers: a digit, and no zero before another one.
static bool startsDecimal(std::string_view text) {
  return !text.empty() && isDigit(text[0]) && !(text.size() > 1 && text[0] == '0' && isDigit(text[1]));
}

/// All of `text` as `Number`.
template <class Number>
static std::optional<Number> readAll(std::string_view text) {
  Number value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!startsDecimal(text) || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

Result<uint64_t> parseWhole(const std::string &option, std::string_view text, uint64_t least, uint64_t most) {
  if (std::optional<uint64_t> value = readAll<uint64_t>(text); value && *value >= least && *value <= most)
    return *value;
  return usage(option, text, "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
               "write decimal digits alone: no sign, no leading zero, no exponent");
}

Result<double> parseReal(const std::string &option, std::string_view text, double least, double most) {
  if (std::optional<double> value = readAll<double>(text);
      value && std::isfinite(*value) && *value >= least && *value <= most)
    return *value;
  std::ostringstream accepted;
  accepted << "a number from " << least << " to " << most;
  return usage(option, text, accepted.str(), "write it as 600, 0.5 or 1e3");
}

Result<uint64_t> parseBytes(const std::string &option, std::string_view text) {
  constexpr double kMost = 9e18; // sums of a few must not overflow
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view unit = text.substr(digits);
  const double scale = unit.empty() || unit == "B" ? 1
                       : unit == "KiB"             ? 1024.0
                       : unit == "MiB"             ? 1048576.0
                       : unit == "GiB"             ? 1073741824.0
                                                   : 0;
  const std::optional<double> value = readAll<double>(text.substr(0, digits));
  if (!value || scale == 0 || *value * scale < 1 || *value * scale > kMost)
    return usage(option, text, "a positive number of bytes", "write 8589934592, 8192MiB or 8GiB");
  return static_cast<uint64_t>(*value * scale);
}

} // namespace ds
