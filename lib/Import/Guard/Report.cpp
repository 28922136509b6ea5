//===- Report.cpp - What the import process tells the process that started it ---===//

#include "Report.h"

#include <cerrno>
#include <charconv>

#include <unistd.h>

namespace ds::import_report {

static void writeRecord(int fd, std::string_view kind, std::string_view text) {
  std::string record(kind);
  record += " " + std::to_string(text.size()) + "\n";
  record += text;
  std::string_view rest = record;
  while (!rest.empty()) {
    ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return; // The parent sees an incomplete report.
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

void writeNotice(int fd, std::string_view text) { writeRecord(fd, "notice", text); }
void writeDone(int fd) { writeRecord(fd, "done", ""); }

void writeError(int fd, const Error &error) {
  writeRecord(fd, "code", std::to_string(static_cast<int>(error.code)));
  writeRecord(fd, "hint", error.hint);
  writeRecord(fd, "error", error.message);
}

std::string printable(std::string_view text, size_t limit) {
  std::string result;
  for (char c : text.substr(0, limit)) {
    auto byte = static_cast<unsigned char>(c);
    result += byte == '\n' || (byte >= 0x20 && byte != 0x7f) ? c : '?';
  }
  return result;
}

/// The exit code that a number stands for; `Internal` for one that an import never reports.
static ExitCode codeOf(std::string_view text) {
  int code = 0;
  std::from_chars(text.data(), text.data() + text.size(), code);
  for (ExitCode known :
       {ExitCode::Usage, ExitCode::Invalid, ExitCode::Corrupt, ExitCode::Io, ExitCode::Device})
    if (static_cast<int>(known) == code)
      return known;
  return ExitCode::Internal;
}

Report parse(std::string_view bytes) {
  constexpr size_t maxText = 1 << 20;
  Report report;
  Error error;
  while (!bytes.empty()) {
    size_t space = bytes.find(' '), newline = bytes.find('\n');
    if (space == bytes.npos || newline == bytes.npos || space > newline)
      break;
    size_t length = 0;
    auto [end, failure] = std::from_chars(bytes.data() + space + 1, bytes.data() + newline, length);
    if (failure != std::errc() || end != bytes.data() + newline || length > bytes.size() - newline - 1)
      break;
    std::string_view kind = bytes.substr(0, space);
    std::string text = printable(bytes.substr(newline + 1, length), maxText);
    bytes.remove_prefix(newline + 1 + length);
    if (kind == "notice")
      report.notices.push_back(text);
    else if (kind == "code")
      error.code = codeOf(text);
    else if (kind == "hint")
      error.hint = text;
    else if (kind == "error") {
      error.message = text;
      report.error = error;
    } else if (kind == "done")
      report.isComplete = true;
  }
  return report;
}

} // namespace ds::import_report
