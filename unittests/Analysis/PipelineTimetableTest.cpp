//===- PipelineTimetableTest.cpp - What stages do is parts of one order ----------------===//
#include "ds/Analysis/Pipelines/PipelineTimetable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

namespace ds::analysis {
namespace {

constexpr PipelineChunk kEqual{0, 1, 1, 1, 1};

std::string spellItem(const PipelineProblem &problem, const PipelineItem &item) {
  return (item.kind == PipelineItem::Send      ? "send "
          : item.kind == PipelineItem::Receive ? "receive "
                                               : "") +
         spell(problem, item.entry);
}

/// Runs each stage entry by entry, in which messages wait for their other end, in one channel between two
/// stages. What has not run in the end.
size_t leftOf(const PipelineProblem &problem, const std::vector<std::vector<PipelineItem>> &items) {
  std::vector<size_t> at(items.size(), 0);
  size_t left = 0;
  for (const auto &stage : items)
    left += stage.size();
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < items.size(); ++stage)
      while (at[stage] < items[stage].size() && items[stage][at[stage]].kind == PipelineItem::Compute)
        ++at[stage], --left, moved = true;
    for (size_t from = 0; from < items.size(); ++from) {
      if (at[from] == items[from].size() || items[from][at[from]].kind != PipelineItem::Send)
        continue;
      const PipelineEntry &entry = items[from][at[from]].entry;
      const bool goesForth = entry.work == PipelineWork::Forward;
      const uint32_t to = problem.chunks[goesForth ? entry.chunk + 1 : entry.chunk - 1].stage;
      if (at[to] < items[to].size() && items[to][at[to]] == PipelineItem{PipelineItem::Receive, entry})
        ++at[from], ++at[to], left -= 2, moved = true;
    }
  }
  return left;
}

/// The example of PipelineTimetable.h.
TEST(PipelineTimetable, HasMessagesBehindWhatMakesThem) {
  const PipelineProblem problem = makeEqualChunks(2, 1, 2, kEqual);
  const auto items = makeTimetable(problem, makeOneForwardOneBackward(problem));
  std::vector<std::string> words;
  for (const PipelineItem &item : items[1])
    words.push_back(spellItem(problem, item));
  EXPECT_THAT(words,
              testing::ElementsAre("receive F0", "receive F1", "F0", "B0", "send B0", "F1", "B1", "send B1"));
}

TEST(PipelineTimetable, RunsEntryByEntryOnAllStages) {
  for (uint32_t stages = 1; stages <= 5; ++stages)
    for (uint32_t microBatches = 1; microBatches <= 9; ++microBatches) {
      const PipelineProblem single = makeEqualChunks(stages, 1, microBatches, kEqual),
                            several = makeEqualChunks(stages, 2, microBatches, kEqual);
      for (const auto &[problem, table] : {std::pair(single, makeGPipe(single)),
                                           {single, makeOneForwardOneBackward(single)},
                                           {single, makeZeroBubble(single)},
                                           {several, makeInterleaved(several)}}) {
        const auto items = makeTimetable(problem, table);
        EXPECT_EQ(leftOf(problem, items), 0u) << spell(problem, table);
        for (uint32_t stage = 0; stage < stages; ++stage) {
          std::vector<PipelineEntry> computed;
          for (const PipelineItem &item : items[stage])
            if (item.kind == PipelineItem::Compute)
              computed.push_back(item.entry);
          EXPECT_EQ(computed, table[stage]);
        }
      }
    }
}

TEST(PipelineSlots, AreAsFewAsKeepMicroBatchesApart) {
  EXPECT_EQ(countSlots({0, 2, 4}, {1, 3, 5}), 1u);
  EXPECT_EQ(countSlots({0, 1, 4}, {3, 5, 6}), 2u);
  EXPECT_EQ(countSlots({0, 1, 2}, {5, 6, 7}), 3u);
  EXPECT_EQ(countSlots({0}, {9}), 1u);
  // Of a micro-batch that has no part in it.
  EXPECT_EQ(countSlots({0, 99, 4}, {3, -1, 6}), 1u);
  // 0 and 2 meet, so that two slots do not do, though no three micro-batches live at once.
  EXPECT_EQ(countSlots({0, 5, 4}, {4, 6, 9}), 3u);
}

} // namespace
} // namespace ds::analysis
