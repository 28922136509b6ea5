//===- Value.cpp - A configuration value that knows where it was written ------------===//
//
// See Value.h. Numbers keep their spelling, because a double cannot tell 2^63 from 2^63 - 1.
//
//===---------------------------------------------------------------------------===//
#include "Value.h"

#include <charconv>
#include <cstdio>

namespace ds::config {

Value *Value::member(std::string_view name) {
  for (Value &item : items)
    if (kind == Kind::Object && item.key == name)
      return &item;
  return nullptr;
}

const Value *Value::member(std::string_view name) const { return const_cast<Value *>(this)->member(name); }

std::optional<Value> Value::take(std::string_view name) {
  for (size_t i = 0; i < items.size(); ++i)
    if (kind == Kind::Object && items[i].key == name) {
      Value taken = std::move(items[i]);
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
      return taken;
    }
  return std::nullopt;
}

Value makeObject() {
  Value value;
  value.kind = Value::Kind::Object;
  return value;
}

Value makeBool(bool boolean) {
  Value value;
  value.kind = Value::Kind::Bool;
  value.boolean = boolean;
  return value;
}

Value makeInt(int64_t integer) {
  Value value;
  value.kind = Value::Kind::Number;
  value.number = static_cast<double>(integer);
  value.text = std::to_string(integer);
  return value;
}

Value makeNumber(double number) {
  Value value;
  value.kind = Value::Kind::Number;
  value.number = number;
  value.text = spellDouble(number);
  return value;
}

Value makeString(std::string_view text) {
  Value value;
  value.kind = Value::Kind::String;
  value.text = text;
  return value;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      char buffer[8];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", byte);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string spellDouble(double number) {
  char buffer[40];
  char *end = std::to_chars(buffer, buffer + sizeof(buffer), number).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text;
}

std::string toJson(const Value &value) {
  switch (value.kind) {
  case Value::Kind::Null:
    return "null";
  case Value::Kind::Bool:
    return value.boolean ? "true" : "false";
  case Value::Kind::Number:
    return value.text;
  case Value::Kind::String:
    return quote(value.text);
  case Value::Kind::Array:
  case Value::Kind::Object:
    break;
  }
  bool object = value.is(Value::Kind::Object);
  std::string out(1, object ? '{' : '[');
  for (const Value &item : value.items) {
    if (out.size() > 1)
      out += ", ";
    if (object)
      out += quote(item.key) + ": ";
    out += toJson(item);
  }
  return out + (object ? '}' : ']');
}

/// At most `limit` bytes of a text that may be anything, for a message.
static std::string shortened(std::string text, size_t limit = 60) {
  if (text.size() <= limit)
    return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80)
    --limit; // not inside a character
  return text.substr(0, limit) + "...";
}

std::string describe(const Value &value) {
  switch (value.kind) {
  case Value::Kind::Null:
    return "null";
  case Value::Kind::Bool:
    return value.boolean ? "true" : "false";
  case Value::Kind::Number:
    return "the number " + shortened(value.text);
  case Value::Kind::String:
    return "the string " + quote(shortened(value.text));
  case Value::Kind::Array:
    return "a list of " + std::to_string(value.items.size());
  case Value::Kind::Object:
    return "an object";
  }
  return "";
}

/// Appends `digits` to the magnitude of a negative accumulator (negative, so that -2^63 fits); false on
/// overflow.
static bool appendDigit(int64_t &negative, int digit) {
  return !__builtin_mul_overflow(negative, int64_t{10}, &negative) &&
         !__builtin_sub_overflow(negative, int64_t{digit}, &negative);
}

std::optional<int64_t> exactInteger(std::string_view spelling) {
  bool minus = spelling.starts_with('-');
  if (minus)
    spelling.remove_prefix(1);
  size_t e = spelling.find_first_of("eE");
  int64_t exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view tail = spelling.substr(e + 1);
    if (tail.starts_with('+'))
      tail.remove_prefix(1);
    if (std::from_chars(tail.data(), tail.data() + tail.size(), exponent).ec != std::errc())
      exponent = tail.starts_with('-') ? INT32_MIN : INT32_MAX;
    spelling = spelling.substr(0, e);
  }
  std::string digits;
  for (char c : spelling)
    if (c != '.')
      digits += c;
  if (size_t point = spelling.find('.'); point != std::string_view::npos)
    exponent -= static_cast<int64_t>(spelling.size() - point - 1);
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  if (digits.find_first_not_of('0') == std::string::npos)
    return 0;
  if (exponent < 0 || exponent > 18)
    return std::nullopt;
  digits.append(static_cast<size_t>(exponent), '0');
  int64_t negative = 0;
  for (char c : digits)
    if (!appendDigit(negative, c - '0'))
      return std::nullopt;
  if (!minus && negative == INT64_MIN)
    return std::nullopt;
  return minus ? negative : -negative;
}

} // namespace ds::config
