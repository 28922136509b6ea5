//===- RankOutput.cpp - What the launcher passes on to stderr ---------------------===//
#include "RankOutput.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>
#include <unistd.h>
#include <utility>

namespace ds::rt {

void OutputQueue::addLine(std::string_view line) {
  text += line;
  text += '\n';
}

void OutputQueue::drop() {
  text.clear();
  begin = 0;
}

void OutputQueue::writeSome() {
  const std::string_view waiting = std::string_view(text).substr(begin, PIPE_BUF);
  const size_t newline = waiting.rfind('\n');
  const size_t size = newline == std::string_view::npos ? waiting.size() : newline + 1;
  const ssize_t written = ::write(fd, waiting.data(), size);
  if (written < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  begin += written > 0 ? static_cast<size_t>(written) : size;
  if (empty())
    drop();
  else if (begin >= kMostBytes) // so that what was written does not pile up
    text.erase(0, std::exchange(begin, 0));
}

void RankLines::add(std::string_view line, OutputQueue &queue) {
  queue.addLine(fmt::format("[rank {}] {}", rank, line));
}

void RankLines::take(std::string_view bytes, OutputQueue &queue) {
  rest += bytes;
  std::string_view left = rest;
  while (true) {
    const size_t end = left.find('\n');
    if (end == std::string_view::npos && left.size() < kMostLineBytes)
      break;
    const size_t size = std::min(end, kMostLineBytes);
    add(left.substr(0, size), queue);
    left.remove_prefix(size + (end == size));
  }
  rest.erase(0, rest.size() - left.size());
}

void RankLines::end(OutputQueue &queue) {
  if (!rest.empty())
    add(std::exchange(rest, {}), queue);
}

} // namespace ds::rt
