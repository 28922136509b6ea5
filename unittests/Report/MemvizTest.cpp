//===- MemvizTest.cpp - Plans as snapshots of an allocator ----------------------------===//
#include "ds/Report/Memviz.h"
#include "TimelineInstances.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

using namespace ds::report;
using namespace ds::report::test;
using Json = nlohmann::json;

static constexpr int64_t kMiB = 1 << 20;

namespace {
/// What an allocator would know after the events of a trace.
struct Replay {
  std::map<int64_t, int64_t> segments, live; ///< address -> bytes
  int64_t peak = 0;

  explicit Replay(const Json &trace) {
    int64_t now = 0;
    for (const Json &event : trace) {
      const std::string action = event["action"];
      int64_t address = event["addr"], bytes = event["size"];
      if (action == "segment_alloc") {
        segments[address] = bytes;
      } else if (action == "alloc") {
        expectFree(address, bytes);
        live[address] = bytes;
        peak = std::max(peak, now += bytes);
      } else if (action == "free_completed") {
        EXPECT_EQ(live.at(address), bytes);
        live.erase(address);
        now -= bytes;
      }
    }
  }

  /// The bytes lie in a segment and are no one's.
  void expectFree(int64_t address, int64_t bytes) {
    auto segment = segments.upper_bound(address);
    ASSERT_NE(segment, segments.begin());
    --segment;
    EXPECT_LE(address + bytes, segment->first + segment->second);
    auto next = live.lower_bound(address);
    if (next != live.end()) {
      EXPECT_LE(address + bytes, next->first);
    }
    if (next != live.begin()) {
      --next;
      EXPECT_LE(next->first + next->second, address);
    }
  }
};
} // namespace

TEST(Memviz, ReplayReachesThePeak) {
  for (int64_t gaps : {int64_t{0}, 3 * kMiB}) {
    PlanTimeline step = stepOf(6, 4, gaps);
    Json snapshot = Json::parse(printMemviz({step}, MemvizFormat::Json));
    Replay replay(snapshot["device_traces"][0]);
    EXPECT_EQ(replay.peak, step.peakBytes);
    EXPECT_EQ(replay.segments.begin()->second, step.arenaBytes);
  }
}

TEST(Memviz, BlocksAreWhatStaysAndFillTheirSegments) {
  PlanTimeline step = stepOf(3, 2, kMiB);
  Json snapshot = Json::parse(printMemviz({step}, MemvizFormat::Json));
  Replay replay(snapshot["device_traces"][0]);
  std::map<int64_t, int64_t> active;
  for (const Json &segment : snapshot["segments"]) {
    int64_t next = segment["address"];
    for (const Json &block : segment["blocks"]) {
      EXPECT_EQ(block["address"], next);
      if (block["state"] == "active_allocated")
        active[next] = block["size"];
      next += block["size"].get<int64_t>();
    }
    EXPECT_EQ(next, segment["address"].get<int64_t>() + segment["total_size"].get<int64_t>());
  }
  EXPECT_EQ(active, replay.live);
}

TEST(Memviz, RanksAreDevicesApart) {
  PlanTimeline step = stepOf(2, 2), host = stepOf(2, 2);
  for (PlanTimeline::Buffer &buffer : host.buffers)
    buffer.space = "host";
  Json snapshot = Json::parse(printMemviz({step, step, host}, MemvizFormat::Json));
  ASSERT_EQ(snapshot["device_traces"].size(), 3u);
  EXPECT_EQ(Replay(snapshot["device_traces"][1]).peak, step.peakBytes);
  EXPECT_EQ(Replay(snapshot["device_traces"][2]).peak, 0); // no device memory
  std::map<int64_t, int64_t> segments;
  for (const Json &segment : snapshot["segments"])
    segments[segment["address"]] = segment["total_size"];
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_LE(segments.begin()->first + segments.begin()->second, std::next(segments.begin())->first);
}

TEST(Memviz, NamesAreText) {
  PlanTimeline step = stepOf(1, 1);
  step.title = step.buffers[0].name = "\xff</script>";
  step.buffers[1].name = std::string(300, 'x');
  EXPECT_NE(printMemviz({step}, MemvizFormat::Json).find("\xef\xbf\xbd</script>"), std::string::npos);
  EXPECT_EQ(printMemviz({step}, MemvizFormat::Pickle).find('\xff'), std::string::npos);
}
