//===- Messages.cpp - How what the tools say reaches a reader ----------------------===//
#include "ds/Support/Messages.h"

#include <algorithm>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

namespace ds {

static bool isControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

/// `text` with its control characters as \xNN, but for those of `kept`.
static std::string escapeControls(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text) {
    if (!isControl(c) || kept.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    char escape[5];
    std::snprintf(escape, sizeof(escape), "\\x%02x", static_cast<unsigned char>(c));
    out += escape;
  }
  return out;
}

/// Parts of arguments that have line breaks, between what separates names (a path may be shown normalised, a
/// blend's files alone): a message's own line breaks cannot be told from theirs.
static std::vector<std::string> &brokenArguments() {
  static std::vector<std::string> arguments;
  return arguments;
}

void rememberArguments(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    for (std::string_view rest = argv[i]; !rest.empty();) {
      const size_t end = std::min(rest.find_first_of("/=:,"), rest.size());
      const std::string_view part = rest.substr(0, end);
      if (part.size() > 1 && part.find('\n') != std::string_view::npos)
        brokenArguments().emplace_back(part);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
}

std::string printableName(std::string_view text) { return escapeControls(text, ""); }

std::string printableText(std::string_view text) {
  std::string out(text);
  for (const std::string &argument : brokenArguments()) {
    const std::string shown = printableName(argument);
    for (size_t at = out.find(argument); at != std::string::npos; at = out.find(argument, at + shown.size()))
      out.replace(at, argument.size(), shown);
  }
  return escapeControls(out, "\n\t");
}

/// Characters that a terminal shows of `text`, which is UTF-8.
static size_t width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// One line of `wrapLines`.
static void wrapLine(std::string &out, std::string_view line, size_t columns, size_t indent) {
  size_t used = 0;
  bool hasWord = false; // on the line that is being made
  while (!line.empty()) {
    const size_t blank = std::min(line.find_first_not_of(' '), line.size());
    const size_t end = std::min(line.find(' ', blank), line.size());
    const size_t wide = width(line.substr(blank, end - blank));
    if (hasWord && used + blank + wide > columns) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else {
      out.append(line.substr(0, blank));
      used += blank;
    }
    out.append(line.substr(blank, end - blank));
    used += wide;
    hasWord = true;
    line.remove_prefix(end);
  }
}

std::string wrapLines(std::string_view text, size_t columns, size_t indent) {
  if (columns <= indent)
    return std::string(text);
  std::string out;
  while (true) {
    const size_t end = std::min(text.find('\n'), text.size());
    wrapLine(out, text.substr(0, end), columns, indent);
    if (end == text.size())
      return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

size_t terminalColumns(int descriptor) {
  struct winsize size = {};
  if (::isatty(descriptor) != 1 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0)
    return 0;
  return size.ws_col;
}

std::string spellError(std::string_view tool, const Error &error, size_t columns) {
  constexpr size_t kIndent = 4;
  const bool isFailure = error.code != ExitCode::Interrupted;
  std::string out = wrapLines(
      std::string(tool) + (isFailure ? ": error: " : ": ") + printableText(error.message), columns, kIndent);
  out += '\n';
  if (!error.hint.empty())
    out += wrapLines("  hint: " + printableText(error.hint), columns, kIndent) + "\n";
  return out;
}

} // namespace ds
