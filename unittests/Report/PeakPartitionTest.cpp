//===- PeakPartitionTest.cpp - What the bytes of a peak are for --------------------===//
#include "ds/Report/PlanReport.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

using namespace ds::report;

static PeakValue valueOf(PeakPart part, const std::string &layer, int64_t bytes, const std::string &source) {
  PeakValue value;
  value.part = part, value.layer = layer, value.bytes = bytes, value.source = source;
  value.name = layer + " value";
  return value;
}

static RankPlan describe(const std::vector<PeakValue> &values, int64_t arenaBytes,
                         const std::string &op = "matmul") {
  PeakExplanation peak;
  peak.op = op;
  peak.largest = values;
  RankPlan rank;
  describePeak(peak, arenaBytes, rank);
  return rank;
}

static int64_t sumOf(const std::vector<MemoryLine> &lines) {
  return std::accumulate(lines.begin(), lines.end(), int64_t{0},
                         [](int64_t sum, const MemoryLine &line) { return sum + line.bytes; });
}

TEST(PeakPartition, EveryPartIsALineOfItsCategory) {
  std::vector<PeakValue> values;
  for (auto part = uint8_t(PeakPart::Parameters); part <= uint8_t(PeakPart::Workspace); ++part)
    values.push_back(valueOf(PeakPart(part), "h.0", int64_t{1} << part, "source " + std::to_string(part)));
  RankPlan rank = describe(values, 1 << 15);
  const char *names[] = {"parameters",
                         "buffers of the model",
                         "master weights",
                         "accumulated gradients",
                         "optimizer moments",
                         "scalars of the step",
                         "inputs",
                         "what waits between segments",
                         "activations of h.0",
                         "temporaries",
                         "gradients",
                         "gathered parameters",
                         "communication buffers",
                         "workspace",
                         "alignment and gaps"};
  ASSERT_EQ(rank.memory.size(), std::size(names));
  for (size_t i = 0; i < rank.memory.size(); ++i) {
    EXPECT_EQ(rank.memory[i].name, names[i]);
    EXPECT_EQ(rank.memory[i].where, "device");
    EXPECT_FALSE(rank.memory[i].beyondArenas);
    if (i + 1 < rank.memory.size()) {
      EXPECT_EQ(rank.memory[i].bytes, int64_t{1} << i);
      EXPECT_EQ(rank.memory[i].source, "source " + std::to_string(i) + ": 1");
    }
  }
  // 2^15 less 2^0 + ... + 2^13 = 2^14 - 1.
  EXPECT_EQ(rank.memory.back().bytes, (1 << 15) - ((1 << 14) - 1));
  EXPECT_EQ(sumOf(rank.memory), rank.peakBytes);
  int64_t gaps = rank.memory.back().bytes;
  EXPECT_EQ(rank.atPeak,
            (CategoryBytes{1 + 2, 8 + 1024, 4 + 16 + 32, 64 + 128 + 256 + 512, 2048 + 4096, 8192 + gaps}));
  EXPECT_EQ(rank.byLayer.size(), 1u);
  EXPECT_EQ(rank.byLayer[0].bytes, (1 << 14) - (1 << 8)); // but what is there for the whole step
}

TEST(PeakPartition, EqualLayersAreOneLine) {
  std::vector<PeakValue> values;
  for (int layer : {2, 0, 1, 3, 10, 11}) // as the first that needs a value makes it
    for (int value = 0; value < 3; ++value)
      values.push_back(valueOf(PeakPart::Activations, "h." + std::to_string(layer) + ".mlp",
                               layer == 3 ? 50 : 100, "read by the backward pass"));
  values.push_back(valueOf(PeakPart::Activations, "", 7, "read by the backward pass"));
  values.push_back(valueOf(PeakPart::Activations, "ln_f", 9, "read by the backward pass"));
  RankPlan rank = describe(values, 15 * 100 + 3 * 50 + 16);
  std::vector<std::string> order;
  for (const LayerBytes &layer : rank.byLayer)
    order.push_back(layer.layer);
  EXPECT_EQ(order, (std::vector<std::string>{"h.0", "h.1", "h.2", "h.3", "h.10", "h.11", "", "ln_f"}));
  const std::vector<MemoryLine> &lines = rank.memory;
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0].name, "activations of h.0 .. 2");
  EXPECT_EQ(lines[0].bytes, 900);
  EXPECT_EQ(lines[0].source, "3 layers of 300 bytes; read by the backward pass: 9");
  EXPECT_EQ(lines[1].name, "activations of h.3");
  EXPECT_EQ(lines[1].source, "read by the backward pass: 3");
  EXPECT_EQ(lines[2].name, "activations of h.10"); // of two layers each has its line
  EXPECT_EQ(lines[3].name, "activations of h.11");
  EXPECT_EQ(lines[4].name, "activations outside of layers");
  EXPECT_EQ(lines[5].name, "activations of ln_f");
}

TEST(PeakPartition, SourcesAreCounted) {
  std::vector<MemoryLine> lines =
      describe({valueOf(PeakPart::Parameters, "", 10, "states of f32, divided by 2 ranks"),
                valueOf(PeakPart::Parameters, "", 20, "states of f32, the same on each rank"),
                valueOf(PeakPart::Parameters, "", 30, "states of f32, divided by 2 ranks")},
               60)
          .memory;
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].source, "states of f32, divided by 2 ranks: 2; states of f32, the same on each rank: 1");
}

TEST(PeakPartition, TheLargestAreNamed) {
  std::vector<PeakValue> values;
  for (int i = 0; i < 30; ++i)
    values.push_back(valueOf(PeakPart::Temporaries, "h." + std::to_string(i), i % 10, "temporary"));
  RankPlan rank = describe(values, 1000);
  ASSERT_EQ(rank.largest.size(), 10u);
  ASSERT_EQ(rank.explanation->largest.size(), 10u);
  const int order[] = {9, 19, 29, 8, 18, 28, 7, 17, 27, 6};
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(rank.largest[i].layer, "h." + std::to_string(order[i]));
    EXPECT_EQ(rank.explanation->largest[i].layer, rank.largest[i].layer);
  }
  EXPECT_FALSE(describe(values, 1000, "").explanation); // no command runs
}

TEST(PeakPartition, AddsUpWhateverIsLive) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<PeakValue> values;
    int64_t live = 0;
    for (unsigned count = random() % 60; count > 0; --count) {
      auto part = PeakPart(random() % (unsigned(PeakPart::Workspace) + 1));
      std::string layer = random() % 4 == 0 ? "" : "h." + std::to_string(random() % 12);
      values.push_back(valueOf(part, layer, random() % 3 * 512, "source " + std::to_string(random() % 2)));
      live += values.back().bytes;
    }
    RankPlan rank = describe(values, live + random() % 5);
    EXPECT_EQ(sumOf(rank.memory), rank.peakBytes);
    EXPECT_EQ(std::accumulate(rank.atPeak.begin(), rank.atPeak.end(), int64_t{0}), rank.peakBytes);
    for (const MemoryLine &line : rank.memory)
      EXPECT_TRUE(line.bytes > 0 || line.name.starts_with("activations")) << line.name;
  }
}
