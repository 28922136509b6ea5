//===- RankOutput.h - What the launcher passes on to stderr -----------------------===//
//
// The launcher must take signals and ends of ranks even while nobody reads its stderr. So it writes only when
// poll says that it may, and at most what a pipe takes then; until that is gone it reads nothing more from
// the ranks, which wait in turn. Memory is bounded: of what waits, and of a line that never ends.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_LAUNCH_RANKOUTPUT_H
#define DS_LIB_RUNTIME_LAUNCH_RANKOUTPUT_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ds::rt {

/// Text on its way to a descriptor that may not be ready.
class OutputQueue {
public:
  explicit OutputQueue(int fd) : fd(fd) {}

  void addLine(std::string_view line);
  bool empty() const { return begin == text.size(); }
  /// Whether whoever adds should wait.
  bool full() const { return text.size() - begin >= kMostBytes; }
  /// Writes whole lines, as many as a pipe takes at once (of a longer one, a part); call when the descriptor
  /// is ready. A descriptor that takes nothing (closed, or a full disk) loses the text.
  void writeSome();
  void drop();

private:
  static constexpr size_t kMostBytes = size_t(1) << 18;

  const int fd;
  std::string text;
  size_t begin = 0; ///< of what is not yet written
};

/// What one rank prints, cut into lines, each behind the rank's name.
class RankLines {
public:
  explicit RankLines(uint32_t rank = 0) : rank(rank) {}

  void take(std::string_view bytes, OutputQueue &queue);
  /// What stands there without an end is a line, too.
  void end(OutputQueue &queue);

private:
  /// A line that is longer is cut.
  static constexpr size_t kMostLineBytes = 16384;

  void add(std::string_view line, OutputQueue &queue);

  uint32_t rank;
  std::string rest; ///< below kMostLineBytes
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_LAUNCH_RANKOUTPUT_H
