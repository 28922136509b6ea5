//===- Text.cpp - Text for messages and for the files we write -----------------===//

#include "Text.h"

#include "ds/Support/FileSizeLimit.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace ds;
using namespace ds::rt;

unsigned ds::rt::utf8Length(std::string_view text) {
  if (text.empty())
    return 0;
  auto byte = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : 0; };
  auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  uint8_t first = byte(0);
  if (first < 0x80)
    return 1;
  if (first >= 0xc2 && first <= 0xdf)
    return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    bool overlong = first == 0xe0 && byte(1) < 0xa0;
    bool surrogate = first == 0xed && byte(1) > 0x9f;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    bool overlong = first == 0xf0 && byte(1) < 0x90;
    bool tooLarge = first == 0xf4 && byte(1) > 0x8f;
    return follows(1) && follows(2) && follows(3) && !overlong && !tooLarge ? 4 : 0;
  }
  return 0;
}

bool ds::rt::isUtf8(std::string_view text) {
  while (!text.empty()) {
    unsigned length = utf8Length(text);
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

/// Appends `text` with everything that is not printable UTF-8 as \xNN.
static void appendPrintable(std::string &out, std::string_view text) {
  while (!text.empty()) {
    unsigned length = utf8Length(text);
    uint8_t first = text[0];
    if (length == 0 || first < 0x20 || first == 0x7f) {
      char escape[5];
      snprintf(escape, sizeof(escape), "\\x%02x", first);
      out += escape;
      length = 1;
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
}

std::string ds::rt::quote(std::string_view text) {
  constexpr size_t kHead = 160, kTail = 60;
  std::string out = "'";
  if (text.size() <= kHead + kTail) {
    appendPrintable(out, text);
  } else {
    appendPrintable(out, text.substr(0, kHead));
    out += "[... " + std::to_string(text.size() - kHead - kTail) + " bytes ...]";
    appendPrintable(out, text.substr(text.size() - kTail));
  }
  return out + "'";
}

std::string ds::rt::spellShape(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

std::string ds::rt::spellNames(std::span<const std::string> names) {
  constexpr size_t kMost = 20;
  if (names.empty())
    return "none";
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    out += (i ? ", " : "") + quote(names[i]);
  if (names.size() > kMost)
    out += " and " + std::to_string(names.size() - kMost) + " more";
  return out;
}

Error ds::rt::ioError(std::string_view action, std::string_view path, int errorNumber, std::string hint) {
  char buffer[128];
  const char *reason =
      strerror_r(errorNumber, buffer, sizeof(buffer)); // GNU's: thread-safe, returns the text
  if (hint.empty() && errorNumber == ENOENT)
    hint = "check the spelling, and that the directory exists";
  if (hint.empty() && errorNumber == ENOSPC)
    hint = "free space on the device or write elsewhere";
  if (hint.empty() && errorNumber == EFBIG)
    hint = fileSizeHint();
  if (hint.empty() && (errorNumber == EMFILE || errorNumber == ENFILE))
    hint = "raise the number of descriptors (ulimit -n)";
  return {ExitCode::Io, "cannot " + std::string(action) + " " + quote(path) + ": " + reason, std::move(hint)};
}

void ds::rt::appendJsonString(std::string &out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    unsigned length = utf8Length(text);
    uint8_t first = text[0];
    if (length == 0) {
      out += "\xef\xbf\xbd";
      length = 1;
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += char(first);
    } else if (first < 0x20) {
      char escape[7];
      snprintf(escape, sizeof(escape), "\\u%04x", first);
      out += escape;
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void ds::rt::appendJsonNumber(std::string &out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string_view text(buffer, size_t(end - buffer));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos)
    out += ".0";
}

bool ds::rt::checkedProduct(std::span<const int64_t> shape, int64_t &count) {
  count = 1;
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count))
      return false;
  return true;
}
