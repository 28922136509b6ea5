//===- Value.h - A configuration value that knows where it was written --------------===//
//
// The parsed tree of a configuration: JSON's kinds, with the place of every value and the spelling of every
// number, so that any later check can point at the byte it complains about and integers are read exactly.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CONFIG_VALUE_H
#define DS_LIB_CONFIG_VALUE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds::config {

/// A place in the file (line and column count from 1) or, with `set` not empty, in a `--set` argument.
struct TextLocation {
  uint64_t byte = 0;
  uint32_t line = 1, column = 1;
  std::string set;
};

/// One mistake: what and where, and what to do about it (may be empty).
struct Complaint {
  std::string message, hint;
  uint64_t order = UINT64_MAX; ///< complaints are told by this: the byte in the file, then --set, then rules
};

struct Value {
  enum class Kind : uint8_t { Null, Bool, Number, String, Array, Object };
  Kind kind = Kind::Null;
  bool boolean = false;
  double number = 0;        ///< finite
  std::string text;         ///< String: the text; Number: its spelling
  std::vector<Value> items; ///< Array: the elements; Object: the members, in the order of the file
  std::string key;          ///< of a member
  TextLocation place;       ///< of a member: its key's

  bool is(Kind other) const { return kind == other; }
  bool isText(std::string_view other) const { return kind == Kind::String && text == other; }

  /// The member of this name, or null.
  Value *member(std::string_view name);
  const Value *member(std::string_view name) const;
  /// Removes a member and returns it.
  std::optional<Value> take(std::string_view name);
};

/// Values without a place.
Value makeObject();
Value makeBool(bool boolean);
Value makeInt(int64_t integer);
Value makeNumber(double number);
Value makeString(std::string_view text);

/// Compact JSON; numbers as they were spelt.
std::string toJson(const Value &value);

/// "the string \"auto\"", "the number 1.5", "an object": for "but got".
std::string describe(const Value &value);

/// The number as an integer when it is one, however it is spelt (5e8, 25e-1 * 10^1 ...). Exact: no rounding,
/// and empty when it has a fraction or does not fit 64 bits.
std::optional<int64_t> exactInteger(std::string_view spelling);

/// Shortest decimal spelling that reads back as the same double, always with a point or an exponent.
std::string spellDouble(double number);

/// A string as JSON.
std::string quote(std::string_view text);

} // namespace ds::config

#endif // DS_LIB_CONFIG_VALUE_H
