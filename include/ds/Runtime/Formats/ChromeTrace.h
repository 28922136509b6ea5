//===- ChromeTrace.h - What ran when, for Perfetto and chrome://tracing --------===//
//
// `--trace`: one track per stream with the commands as slices, counters for memory, and flows from a send to
// its receive. Events are kept in memory (48 bytes each, names once) and written when the run ends, so that
// tracing disturbs what it measures as little as possible; beyond a limit further events are counted, not
// kept, because the viewers give up near 1 GB.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FORMATS_CHROMETRACE_H
#define DS_RUNTIME_FORMATS_CHROMETRACE_H

#include "ds/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ds::rt {

/// Where a rank writes its trace: the first one the file given, rank 2 "trace.rank2.json".
std::string tracePath(const std::string &path, uint32_t rank);

/// A track: the process is a rank (or "plan", beside it), the thread a stream.
struct TraceTrack {
  uint32_t process = 0, thread = 0;
  auto operator<=>(const TraceTrack &) const = default;
};

/// A trace that is being collected. One thread at a time: workers keep their own times and one thread adds
/// them. All times are nanoseconds of one monotonic clock; they are written as microseconds from the origin.
class ChromeTrace {
public:
  /// About 150 bytes of JSON each: well below the viewers' limit.
  static constexpr size_t kDefaultMaxEvents = 4'000'000;

  explicit ChromeTrace(uint32_t rank = 0, uint32_t world = 1, size_t maxEvents = kDefaultMaxEvents)
      : rank(rank), world(world), maxEvents(maxEvents) {}

  void nameProcess(uint32_t process, std::string name, int sortIndex = 0);
  void nameThread(TraceTrack track, std::string name, int sortIndex = 0);

  /// The time that is shown as 0; by default that of the first event. Ranks that give the same one line up.
  void setOrigin(int64_t timeNs) { origin = timeNs; }

  /// A slice. `category` is Kineto's where there is one ("kernel", "gpu_memcpy", "cpu_op"). `bytes` and
  /// `flops` are shown when they are not 0. On one track slices may not overlap: one that begins before the
  /// end of its predecessor is cut to begin there.
  void slice(TraceTrack track, std::string_view name, std::string_view category, int64_t startNs,
             int64_t durationNs, double bytes = 0, double flops = 0);

  /// A mark without duration, such as the begin of a step.
  void instant(TraceTrack track, std::string_view name, int64_t timeNs);

  /// A new value of a curve, such as the bytes in use.
  void counter(uint32_t process, std::string_view name, int64_t timeNs, double value);

  /// An arrow between the slices that enclose the two points; `id` is the same on both and unique.
  void flow(std::string_view name, uint64_t id, TraceTrack from, int64_t fromNs, TraceTrack to, int64_t toNs);

  size_t numEvents() const { return events.size(); }
  size_t numDropped() const { return dropped; }

  /// The whole trace as JSON.
  std::string toJson() const;

  /// The same as a file, atomically.
  Status write(const std::string &path) const;

private:
  enum class Phase : uint8_t { Slice, Instant, Counter, FlowBegin, FlowEnd };
  struct Event {
    Phase phase;
    TraceTrack track;
    uint32_t name, category; ///< into strings
    int64_t timeNs;
    int64_t durationNs; ///< of a slice; the id of a flow
    uint32_t amounts;   ///< into amounts + 1, or 0: bytes and flops of a slice, value of a counter
  };
  struct Amounts {
    double first, second;
  };
  struct Label {
    std::string name;
    int sortIndex = 0;
  };

  uint32_t intern(std::string_view text);
  void add(Event event, Amounts amounts = {0, 0});
  void appendLabels(std::string &out) const;
  void appendDetails(std::string &out, const Event &event) const;
  void appendEvent(std::string &out, const Event &event, int64_t originNs) const;
  template <class Sink>
  Status emit(Sink &&sink) const;

  uint32_t rank, world;
  size_t maxEvents, dropped = 0;
  std::optional<int64_t> origin;
  std::vector<Event> events;
  std::vector<Amounts> amounts;
  std::vector<std::string> strings;
  std::unordered_map<std::string, uint32_t> stringNumbers;
  std::map<uint32_t, Label> processes;
  std::map<TraceTrack, Label> threads;
  std::map<TraceTrack, int64_t> trackEnds; ///< end of the last slice
};

} // namespace ds::rt

#endif // DS_RUNTIME_FORMATS_CHROMETRACE_H
