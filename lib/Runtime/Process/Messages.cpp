//===- Messages.cpp - Lines that a run writes to its terminal -------------------===//
#include "Messages.h"

#include "Files/WriteSignals.h"
#include "ds/Support/Messages.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace ds::rt {

/// Writes all of `text`; 0 or errno.
static int writeAll(int fd, std::string_view text) {
  BlockWriteSignals guard;
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count < 0 ? errno : ENOSPC;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

void printLine(std::string line) {
  static std::atomic<bool> warned{false};
  line = printableText(line) + '\n';
  const int error = writeAll(STDOUT_FILENO, line);
  if (error != 0 && !warned.exchange(true))
    logLine(fmt::format("cannot write to standard output: {}; training continues, lines will be missing",
                        std::strerror(error)));
}

void logLine(const std::string &text) {
  writeAll(STDERR_FILENO, "ds-run: " + printableText(text) + "\n"); // nobody could be told of a failure
}

std::string bytesText(double bytes) {
  if (bytes >= 1024.0 * 1024 * 1024)
    return fmt::format("{:.2f} GiB", bytes / (1024.0 * 1024 * 1024));
  if (bytes >= 1024.0 * 1024)
    return fmt::format("{:.1f} MiB", bytes / (1024.0 * 1024));
  return bytes >= 1024 ? fmt::format("{:.1f} KiB", bytes / 1024) : fmt::format("{:.0f} B", bytes);
}

} // namespace ds::rt
