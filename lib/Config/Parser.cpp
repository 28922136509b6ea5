//===- Parser.cpp - JSON with the liberties that DeepSpeed's hjson allows ------------===//
//
// One pass over the bytes by recursive descent, its depth bounded. The first mistake ends it: what follows a
// syntax error is guesswork. nlohmann's reader is not used because it knows neither places nor trailing
// commas, keeps the last of duplicate keys and turns 2^64 into a double.
//
//===---------------------------------------------------------------------------===//
#include "Parser.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>

namespace ds::config {

std::string spellLocation(const std::string &name, const TextLocation &place) {
  if (!place.set.empty())
    return "--set " + place.set;
  return name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + " (byte " +
         std::to_string(place.byte) + ")";
}

/// Length of the UTF-8 character at the head of `text`, or 0 when it is none.
static size_t utf8Length(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned lead = byte(0);
  size_t length = lead < 0x80                   ? 1
                  : lead >= 0xC2 && lead < 0xE0 ? 2
                  : (lead & 0xF0) == 0xE0       ? 3
                  : lead >= 0xF0 && lead < 0xF5 ? 4
                                                : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  bool outside = (lead == 0xED && byte(1) >= 0xA0) || (lead == 0xF4 && byte(1) >= 0x90);
  return overlong || outside ? 0 : length;
}

static void appendUtf8(std::string &out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr unsigned kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[more] | (code >> (6 * more)));
  while (more-- > 0)
    out += static_cast<char>(0x80 | ((code >> (6 * more)) & 0x3F));
}

static bool isKeyChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == '$';
}

namespace {
/// The text from its start on, with the place of its cursor, and the first fault.
class Lexer {
public:
  Lexer(std::string_view text, const std::string &set) : text(text), set(set) {}

  bool atEnd() const { return pos >= text.size(); }
  char peek(size_t ahead = 0) const { return pos + ahead < text.size() ? text[pos + ahead] : '\0'; }
  bool startsWith(std::string_view head) const { return text.substr(pos).starts_with(head); }

  TextLocation place() const { return {pos, line, static_cast<uint32_t>(pos - lineStart + 1), set}; }
  void advance() {
    if (text[pos++] == '\n') {
      ++line;
      lineStart = pos;
    }
  }
  bool fail(std::string message, std::string hint = "") {
    return failAt(place(), std::move(message), std::move(hint));
  }
  bool failAt(TextLocation where, std::string message, std::string hint = "") {
    if (!complaint) {
      complaint = Complaint{std::move(message), std::move(hint)};
      complaintLocation = std::move(where);
    }
    return false;
  }

  /// What stands at the cursor, for "but got".
  std::string here() const {
    if (atEnd())
      return "the end of the text";
    size_t length = utf8Length(text.substr(pos));
    if (length == 0)
      return "a byte that is not UTF-8";
    size_t end = pos;
    while (end < text.size() && isKeyChar(text[end]) && end - pos < 40)
      ++end;
    return quote(text.substr(pos, std::max(length, end - pos)));
  }

  /// Skips white space and comments; false for a comment that does not end.
  bool skipBlank() {
    while (!atEnd()) {
      char c = peek();
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        advance();
      } else if (c == '#' || startsWith("//")) {
        while (!atEnd() && peek() != '\n')
          advance();
      } else if (startsWith("/*")) {
        TextLocation start = place();
        size_t end = text.find("*/", pos + 2);
        if (end == std::string_view::npos)
          return failAt(start, "the comment does not end", "close it with */");
        while (pos < end + 2)
          advance();
      } else {
        break;
      }
    }
    return true;
  }

  bool readHex4(uint32_t &code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++pos) {
      char c = peek();
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0)
        return fail("expects four hexadecimal digits after \\u, but got " + here());
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    return true;
  }

  bool readEscape(std::string &out) {
    static constexpr std::string_view kFrom = "\"\\/'bfnrt", kTo = "\"\\/'\b\f\n\r\t";
    TextLocation start = place();
    ++pos; // the backslash
    char c = peek();
    if (size_t i = kFrom.find(c); !atEnd() && i != std::string_view::npos) {
      out += kTo[i];
      ++pos;
      return true;
    }
    if (c != 'u')
      return failAt(start, "unknown escape in a string",
                    "JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX");
    ++pos;
    uint32_t code = 0, low = 0;
    if (!readHex4(code))
      return false;
    if (code >= 0xD800 && code < 0xDC00 && startsWith("\\u")) {
      pos += 2;
      if (!readHex4(low))
        return false;
      if (low >= 0xDC00 && low < 0xE000)
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code < 0xE000)
      return failAt(start, "half of a surrogate pair in a string");
    if (code == 0)
      return failAt(start, "a string may not hold a zero byte");
    appendUtf8(out, code);
    return true;
  }

  bool readString(std::string &out) {
    TextLocation start = place();
    char end = peek();
    if (startsWith("'''"))
      return fail("multi-line strings are not accepted", "write the text in double quotes");
    ++pos;
    while (!atEnd() && peek() != end) {
      if (peek() == '\\') {
        if (!readEscape(out))
          return false;
        continue;
      }
      if (static_cast<unsigned char>(peek()) < 0x20)
        return fail("a string may not hold a control character or a line break",
                    "close the string, or write \\n");
      size_t length = utf8Length(text.substr(pos));
      if (length == 0)
        return fail("the string is not UTF-8");
      out += text.substr(pos, length);
      pos += length;
    }
    if (atEnd())
      return failAt(start, "the string does not end", "close it with " + std::string(1, end));
    ++pos;
    return true;
  }

  bool readKey(std::string &out) {
    if (peek() == '"' || peek() == '\'')
      return readString(out);
    while (!atEnd() && isKeyChar(peek()))
      out += text[pos++];
    return !out.empty() || fail("expects a key, but got " + here());
  }

  const std::string_view text;
  size_t pos = 0;
  uint32_t line = 1;
  std::optional<Complaint> complaint;
  TextLocation complaintLocation;

private:
  const std::string &set;
  size_t lineStart = 0;
};

/// A method for each rule of the grammar. False after a fault.
class Parser {
public:
  Parser(std::string_view text, const std::string &name, const std::string &set)
      : in(text, set), name(name) {}

  Result<Value> run() {
    Value root;
    if (checkStart() && in.skipBlank() && parseValue(root, 0) && in.skipBlank() && !in.atEnd())
      in.fail("expects the end of the text, but got " + in.here(), "remove what follows the outermost value");
    if (in.complaint)
      return Error{ExitCode::Invalid,
                   spellLocation(name, in.complaintLocation) + ": " + in.complaint->message,
                   in.complaint->hint};
    return root;
  }

private:
  bool checkStart() {
    if (in.text.size() > kMaxConfigBytes)
      return in.fail("expects at most " + std::to_string(kMaxConfigBytes) + " bytes, but got " +
                     std::to_string(in.text.size()));
    if (in.startsWith("\xEF\xBB\xBF") || in.startsWith("\xFE\xFF") || in.startsWith("\xFF\xFE"))
      return in.fail("the text starts with a byte order mark", "save it as UTF-8 without one");
    return true;
  }

  bool parseValue(Value &out, unsigned depth) {
    out.place = in.place();
    if (depth > kMaxDepth)
      return in.fail("expects at most " + std::to_string(kMaxDepth) + " levels of nesting, but got more");
    char c = in.peek();
    if (in.atEnd())
      return in.fail("expects a value, but got the end of the text");
    if (c == '{' || c == '[')
      return parseContainer(out, depth);
    if (c == '"' || c == '\'') {
      out.kind = Value::Kind::String;
      return in.readString(out.text);
    }
    if (c == '-' || (c >= '0' && c <= '9'))
      return parseNumber(out);
    return parseWord(out);
  }

  /// true, false, null; everything else without quotes is refused by what it most likely is.
  bool parseWord(Value &out) {
    size_t end = in.pos;
    while (end < in.text.size() && isKeyChar(in.text[end]))
      ++end;
    std::string_view word = in.text.substr(in.pos, end - in.pos);
    if (word == "true" || word == "false") {
      out.kind = Value::Kind::Bool;
      out.boolean = word == "true";
    } else if (word == "null") {
      out.kind = Value::Kind::Null;
    } else if (word == "True" || word == "False" || word == "None") {
      return in.fail("expects a value, but got " + quote(word), "JSON spells it true, false or null");
    } else if (word == "NaN" || word == "Infinity" || word == "nan" || word == "inf") {
      return in.fail(quote(word) + " is not a number that a configuration may have", "write a finite number");
    } else if (word.empty()) {
      return in.fail("expects a value, but got " + in.here());
    } else {
      return in.fail("expects a value, but got the unquoted text " + in.here(), "put text in quotes");
    }
    in.pos = end;
    return true;
  }

  bool parseNumber(Value &out) {
    size_t start = in.pos, p = in.pos + (in.peek() == '-' ? 1 : 0);
    auto digits = [&] {
      size_t before = p;
      while (p < in.text.size() && in.text[p] >= '0' && in.text[p] <= '9')
        ++p;
      return p > before;
    };
    size_t whole = p;
    bool good = digits(), integer = true;
    bool padded = good && in.text[whole] == '0' && p - whole > 1;
    if (good && p < in.text.size() && in.text[p] == '.') {
      integer = false;
      ++p;
      good = digits();
    }
    if (good && p < in.text.size() && (in.text[p] == 'e' || in.text[p] == 'E')) {
      integer = false;
      ++p;
      if (p < in.text.size() && (in.text[p] == '+' || in.text[p] == '-'))
        ++p;
      good = digits();
    }
    size_t end = p;
    while (end < in.text.size() && isKeyChar(in.text[end]))
      ++end;
    std::string spelling(in.text.substr(start, end - start));
    if (!good || padded || end != p)
      return in.fail(quote(spelling.substr(0, 60)) + " is not a number",
                     "write it as JSON does (0.5, 1e-3, 500000000), or put text in quotes");
    return finishNumber(out, std::move(spelling), integer, end);
  }

  bool finishNumber(Value &out, std::string spelling, bool integer, size_t end) {
    if (integer && !exactInteger(spelling))
      return in.fail("the integer " + spelling.substr(0, 60) + " is outside the 64-bit range",
                     "the limits are -9223372036854775808 and 9223372036854775807");
    out.kind = Value::Kind::Number;
    auto result = std::from_chars(spelling.data(), spelling.data() + spelling.size(), out.number);
    if (result.ec != std::errc() || !std::isfinite(out.number))
      return in.fail("the number " + spelling.substr(0, 60) + " is outside the range of a double");
    out.text = std::move(spelling);
    in.pos = end;
    return true;
  }

  /// Key, colon and value of one member.
  bool parseMember(Value &object, std::unordered_map<std::string, TextLocation> &seen, unsigned depth) {
    Value member;
    TextLocation where = in.place();
    if (!in.readKey(member.key))
      return false;
    auto [first, isNew] = seen.emplace(member.key, where);
    if (!isNew)
      return in.failAt(where, "duplicate key " + quote(member.key),
                       "its first value is at line " + std::to_string(first->second.line) +
                           "; keep one of them");
    std::string key = member.key;
    if (!in.skipBlank())
      return false;
    if (in.peek() != ':')
      return in.fail("expects ':' after the key " + quote(key) + ", but got " + in.here());
    ++in.pos;
    if (!in.skipBlank() || !parseValue(member, depth + 1))
      return false;
    member.place = std::move(where);
    object.items.push_back(std::move(member));
    return true;
  }

  bool parseContainer(Value &out, unsigned depth) {
    bool object = in.peek() == '{';
    char end = object ? '}' : ']';
    out.kind = object ? Value::Kind::Object : Value::Kind::Array;
    std::unordered_map<std::string, TextLocation> seen;
    ++in.pos;
    while (true) {
      if (!in.skipBlank())
        return false;
      if (in.atEnd())
        return in.failAt(out.place, object ? "the object does not end" : "the list does not end",
                         "close it with " + std::string(1, end));
      if (in.peek() == end) {
        ++in.pos;
        return true;
      }
      if (object ? !parseMember(out, seen, depth) : !parseValue(out.items.emplace_back(), depth + 1))
        return false;
      uint32_t before = in.line;
      if (!in.skipBlank())
        return false;
      if (in.peek() == ',')
        ++in.pos;
      else if (!in.atEnd() && in.peek() != end && in.line == before)
        return in.fail(std::string("expects ',' or '") + end + "', but got " + in.here());
    }
  }

  Lexer in;
  const std::string &name;
};
} // namespace

Result<Value> parseText(std::string_view text, const std::string &name, const std::string &set) {
  return Parser(text, name, set).run();
}

} // namespace ds::config
