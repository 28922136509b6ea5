//===- TextStream.cpp - Text on stdout, as it comes ------------------------------------===//
#include "TextStream.h"

#include "ds/Support/Messages.h"

#include <cstdio>
#include <unistd.h>

namespace ds::rt {

TextStream::TextStream() : isTerminal(::isatty(STDOUT_FILENO) == 1) {}

/// Bytes of `text` that end no character, at its end: 0 to 3.
static size_t unfinished(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80)
      return 0;
    if (byte >= 0xC0) // begins one of so many bytes
      return back < (byte >= 0xF0 ? 4U : byte >= 0xE0 ? 3U : 2U) ? back : 0;
  }
  return 0;
}

Status TextStream::flush(size_t count) {
  const std::string text = waiting.substr(0, count);
  waiting.erase(0, count);
  const std::string shown = isTerminal ? printableText(text) : text;
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0)
    return {};
  return Error{ExitCode::Io, "cannot write to standard output", "free space where it goes"};
}

Status TextStream::write(std::string_view bytes) {
  waiting += bytes;
  return flush(waiting.size() - unfinished(waiting));
}

Status TextStream::end() {
  waiting += '\n';
  return flush(waiting.size());
}

} // namespace ds::rt
