//===- ChromeTraceTest.cpp - What the viewers are given ------------------------===//

#include "ds/Runtime/Formats/ChromeTrace.h"
#include "TestFiles.h"

#include "gmock/gmock.h"

#include <nlohmann/json.hpp>

using namespace ds;
using namespace ds::rt;
using nlohmann::json;

namespace {
using ChromeTraceTest = FormatsTest;

/// The events of one phase.
std::vector<json> eventsOf(const ChromeTrace &trace, const std::string &phase) {
  json document = json::parse(trace.toJson());
  std::vector<json> out;
  for (const json &event : document["traceEvents"])
    if (event["ph"] == phase)
      out.push_back(event);
  return out;
}

TEST_F(ChromeTraceTest, EmptyTrace) {
  ChromeTrace trace(2, 4);
  json document = json::parse(trace.toJson());
  EXPECT_EQ(document["displayTimeUnit"], "ms");
  EXPECT_EQ(document["distributedInfo"], (json{{"rank", 2}, {"world_size", 4}}));
  EXPECT_TRUE(document["traceEvents"].empty());
  trace.nameProcess(0, "rank 0");
  EXPECT_EQ(eventsOf(trace, "M").size(), 2u);
}

TEST_F(ChromeTraceTest, Slices) {
  ChromeTrace trace;
  trace.slice({0, 1}, "layer.0 matmul", "kernel", 5'000'000'123, 1'500, 64, 128);
  trace.slice({0, 2}, "gather", "kernel", 5'000'000'000, 10);
  auto slices = eventsOf(trace, "X");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0], (json{{"ph", "X"},
                             {"name", "layer.0 matmul"},
                             {"cat", "kernel"},
                             {"ts", 0.123},
                             {"dur", 1.5},
                             {"pid", 0},
                             {"tid", 1},
                             {"args", {{"bytes", 64.0}, {"flops", 128.0}}}}));
  EXPECT_EQ(slices[1]["ts"], 0.0); // the origin is the first in time, not the first that was added
  EXPECT_FALSE(slices[1].contains("args"));
}

TEST_F(ChromeTraceTest, RanksLineUpByACommonOrigin) {
  ChromeTrace trace;
  trace.setOrigin(1'000'000);
  trace.instant({0, 0}, "step 1", 999'500);
  trace.instant({0, 0}, "step 2", 1'002'000);
  auto marks = eventsOf(trace, "i");
  EXPECT_EQ(marks[0]["ts"], -0.5);
  EXPECT_EQ(marks[1]["ts"], 2.0);
  EXPECT_EQ(marks[1]["s"], "t");
}

TEST_F(ChromeTraceTest, SlicesOfATrackDoNotOverlap) {
  ChromeTrace trace;
  trace.slice({0, 0}, "a", "", 0, 1000);
  trace.slice({0, 0}, "b", "", 900, 1000); // ends at 1900, begins at 1000
  trace.slice({0, 0}, "c", "", 950, 10);   // inside its predecessors: nothing is left
  trace.slice({0, 1}, "d", "", 0, 1000);   // another track
  trace.slice({0, 0}, "e", "", 3000, -5);
  auto slices = eventsOf(trace, "X");
  EXPECT_EQ(slices[1]["ts"], 1.0);
  EXPECT_EQ(slices[1]["dur"], 0.9);
  EXPECT_EQ(slices[2]["ts"], 1.9);
  EXPECT_EQ(slices[2]["dur"], 0.0);
  EXPECT_EQ(slices[3]["dur"], 1.0);
  EXPECT_EQ(slices[4]["dur"], 0.0);
}

TEST_F(ChromeTraceTest, LabelsCountersAndFlows) {
  ChromeTrace trace;
  trace.nameProcess(0, "rank 0", 1);
  trace.nameThread({0, 3}, "gather \"stream\"\n", 2);
  trace.counter(0, "device bytes", 1000, 0);
  trace.counter(0, "device bytes", 2000, 1e9);
  trace.flow("activation", 7, {0, 0}, 1000, {1, 0}, 2000);
  auto labels = eventsOf(trace, "M");
  ASSERT_EQ(labels.size(), 4u);
  EXPECT_EQ(labels[2]["args"]["name"], "gather \"stream\"\n");
  EXPECT_EQ(labels[3]["name"], "thread_sort_index");
  EXPECT_EQ(labels[3]["args"]["sort_index"], 2);
  auto counters = eventsOf(trace, "C");
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0]["args"]["value"], 0.0);
  EXPECT_EQ(counters[1]["args"]["value"], 1e9);
  auto begin = eventsOf(trace, "s"), end = eventsOf(trace, "f");
  ASSERT_EQ(begin.size(), 1u);
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(begin[0]["id"], 7);
  EXPECT_EQ(end[0]["id"], 7);
  EXPECT_EQ(end[0]["pid"], 1);
}

TEST_F(ChromeTraceTest, LimitIsKeptAndSaid) {
  ChromeTrace trace(0, 1, 3);
  trace.slice({0, 0}, "a", "", 0, 1);
  trace.slice({0, 0}, "b", "", 1, 1);
  trace.flow("arrow", 1, {0, 0}, 0, {0, 0}, 1); // not half of it
  trace.instant({0, 0}, "i", 2);
  trace.instant({0, 0}, "j", 3);
  EXPECT_EQ(trace.numEvents(), 3u);
  EXPECT_EQ(trace.numDropped(), 3u);
  EXPECT_TRUE(eventsOf(trace, "s").empty());
  EXPECT_EQ(json::parse(trace.toJson())["droppedEvents"], 3);
}

TEST_F(ChromeTraceTest, NamesThatAreNotUtf8) {
  ChromeTrace trace;
  trace.slice({0, 0}, "\xff\x01", "", 0, 1);
  EXPECT_EQ(eventsOf(trace, "X")[0]["name"], "\xef\xbf\xbd\x01");
}

TEST_F(ChromeTraceTest, FileIsWholeOrAbsent) {
  ChromeTrace trace;
  for (int i = 0; i < 30000; ++i) // several pieces of a megabyte
    trace.slice({0, 0}, "kernel", "kernel", i * 10, 5, 1, 1);
  ASSERT_TRUE(trace.write(path("trace.json")));
  EXPECT_EQ(read(path("trace.json")), trace.toJson());
  EXPECT_EQ(json::parse(read(path("trace.json")))["traceEvents"].size(), 30000u);
  Status status = trace.write(path("missing/trace.json"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_EQ(list(), std::set<std::string>{"trace.json"});
}
} // namespace
