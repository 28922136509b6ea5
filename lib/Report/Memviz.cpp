//===- Memviz.cpp - A plan for PyTorch's memory visualiser ------------------------------===//
//
// The format is that of torch.cuda.memory._snapshot(): segments with their blocks as they are at the end, and
// for each device the events that led there. The arena is a segment of the plan's addresses. What the plan
// counts as alignment and gaps has no address of its own: it is a block of a second segment, so that the
// allocations add up to the peak.
//
//===---------------------------------------------------------------------------===//
#include "ds/Report/Memviz.h"

#include "MemvizPickle.h"

#include <algorithm>
#include <cmath>

namespace ds::report {

using Json = nlohmann::ordered_json;

namespace {
/// One buffer as an allocation.
struct Allocation {
  const PlanTimeline::Buffer *buffer;
  int64_t address;
  Json frames;
  bool stays; ///< until the end of the trace
};

/// The part of a snapshot that is one device.
class Device {
public:
  Device(const PlanTimeline &timeline, int64_t id, int64_t base, Json &segments)
      : timeline(timeline), id(id), arena(base), gaps(base + granule(timeline.arenaBytes)),
        segments(segments) {}

  /// Adds the segments and returns the trace; `after` is the address that follows.
  Json run(int64_t &after);

  /// `bytes`, rounded up as allocators round segments.
  static int64_t granule(int64_t bytes) { return (bytes / kGranule + 1) * kGranule; }

private:
  static constexpr int64_t kGranule = 2 << 20;
  void place();
  void addEvent(const char *action, int64_t address, int64_t bytes, double seconds, const Json &frames);
  void addAllocation(const Allocation &allocation, bool begins);
  void addTrace();
  void addSegment(int64_t address, int64_t bytes);

  const PlanTimeline &timeline;
  int64_t id, arena, gaps;
  int64_t gapBytes = 0;
  Json &segments;
  std::vector<Allocation> allocations;
  Json trace = Json::array();
};
} // namespace

/// `text` without bytes that are no UTF-8.
static std::string clean(const std::string &text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

static Json frame(const std::string &file, int64_t line, const std::string &name) {
  return {{"filename", clean(file)}, {"line", line}, {"name", clean(name)}};
}

/// What stands in place of the stack: the buffer, its layer and its category, innermost first.
static Json framesOf(const PlanTimeline &timeline, const PlanTimeline::Buffer &buffer) {
  Json frames = Json::array();
  frames.push_back(frame(timeline.title, buffer.beginCommand,
                         buffer.name + (buffer.type.empty() ? "" : " " + buffer.type)));
  if (!buffer.layer.empty())
    frames.push_back(frame("layer", 0, buffer.layer));
  frames.push_back(frame("category", 0, spell(buffer.category)));
  return frames;
}

void Device::place() {
  for (const PlanTimeline::Buffer &buffer : timeline.buffers) {
    if (buffer.space != "device" || buffer.bytes <= 0)
      continue;
    int64_t address = buffer.offset >= 0 ? arena + buffer.offset : gaps + gapBytes;
    if (buffer.offset < 0)
      gapBytes += buffer.bytes;
    allocations.push_back({&buffer, address, framesOf(timeline, buffer),
                           buffer.endCommand >= static_cast<uint32_t>(timeline.commands.size())});
  }
}

void Device::addEvent(const char *action, int64_t address, int64_t bytes, double seconds,
                      const Json &frames) {
  trace.push_back({{"action", action},
                   {"addr", address},
                   {"size", bytes},
                   {"stream", 0},
                   {"time_us", std::llround(std::min(seconds, 9e12) * 1e6)},
                   {"frames", frames}});
}

void Device::addAllocation(const Allocation &allocation, bool begins) {
  const PlanTimeline::Buffer &buffer = *allocation.buffer;
  if (begins) {
    addEvent("alloc", allocation.address, buffer.bytes, buffer.begin, allocation.frames);
    trace.back()["category"] = spell(buffer.category);
    return;
  }
  addEvent("free_requested", allocation.address, buffer.bytes, buffer.end, allocation.frames);
  addEvent("free_completed", allocation.address, buffer.bytes, buffer.end, allocation.frames);
}

void Device::addTrace() {
  addEvent("segment_alloc", arena, timeline.arenaBytes, 0, Json::array());
  if (gapBytes > 0)
    addEvent("segment_alloc", gaps, gapBytes, 0, Json::array());
  // (command, whether it begins, allocation): at one command what ends makes room for what begins.
  std::vector<std::tuple<uint32_t, bool, size_t>> events;
  for (size_t index = 0; index < allocations.size(); ++index) {
    const Allocation &allocation = allocations[index];
    events.emplace_back(allocation.buffer->beginCommand, true, index);
    if (!allocation.stays)
      events.emplace_back(allocation.buffer->endCommand, false, index);
  }
  std::sort(events.begin(), events.end());
  for (auto [command, begins, index] : events)
    addAllocation(allocations[index], begins);
  // The visualiser needs "unknown" among the categories, and fails without.
  addEvent("snapshot", 0, 0, timeline.seconds, Json::array());
  trace.back()["category"] = "unknown";
}

void Device::addSegment(int64_t address, int64_t bytes) {
  std::vector<const Allocation *> inside;
  for (const Allocation &allocation : allocations)
    if (allocation.stays && allocation.address >= address && allocation.address < address + bytes)
      inside.push_back(&allocation);
  std::sort(inside.begin(), inside.end(),
            [](const Allocation *a, const Allocation *b) { return a->address < b->address; });
  Json blocks = Json::array();
  int64_t next = address, used = 0;
  auto addBlock = [&](int64_t end, const char *state, const Json &frames) {
    if (end > next)
      blocks.push_back({{"address", next},
                        {"size", end - next},
                        {"requested_size", end - next},
                        {"state", state},
                        {"frames", frames}});
    next = std::max(next, end);
  };
  for (const Allocation *allocation : inside) {
    addBlock(allocation->address, "inactive", Json::array());
    addBlock(allocation->address + allocation->buffer->bytes, "active_allocated", allocation->frames);
    used += allocation->buffer->bytes;
  }
  addBlock(address + bytes, "inactive", Json::array());
  segments.push_back({{"device", id},
                      {"address", address},
                      {"total_size", bytes},
                      {"allocated_size", used},
                      {"active_size", used},
                      {"requested_size", used},
                      {"stream", 0},
                      {"segment_type", "large"},
                      {"segment_pool_id", {0, 0}},
                      {"is_expandable", false},
                      {"frames", Json::array()},
                      {"blocks", std::move(blocks)}});
}

Json Device::run(int64_t &after) {
  place();
  addTrace();
  addSegment(arena, timeline.arenaBytes);
  if (gapBytes > 0)
    addSegment(gaps, gapBytes);
  after = gaps + granule(gapBytes);
  return std::move(trace);
}

std::string printMemviz(const std::vector<PlanTimeline> &timelines, MemvizFormat format) {
  Json segments = Json::array(), traces = Json::array();
  int64_t address = int64_t{0x7f0000000000}; // where drivers put device memory
  for (size_t id = 0; id < timelines.size(); ++id)
    traces.push_back(Device(timelines[id], static_cast<int64_t>(id), address, segments).run(address));
  Json snapshot = {{"segments", std::move(segments)},
                   {"device_traces", std::move(traces)},
                   {"allocator_settings", Json::object()}};
  return format == MemvizFormat::Pickle ? writePickle(snapshot) : snapshot.dump() + "\n";
}

} // namespace ds::report
