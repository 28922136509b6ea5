//===- PipelineTimetable.cpp - What a stage computes, sends and receives, in one order --===//
#include "ds/Analysis/Pipelines/PipelineTimetable.h"

#include "PipelineProgress.h"

#include <algorithm>

namespace ds::analysis {

/// The stage that reads what `entry` makes; its own, or none, for nothing that is sent.
static uint32_t readerOf(const PipelineProblem &problem, const PipelineEntry &entry) {
  const bool isForward = entry.work == PipelineWork::Forward;
  const uint32_t to = isForward ? entry.chunk + 1 : entry.chunk - 1; // before the first: none
  const bool isRead = (isForward || makesInputs(entry.work)) && to < problem.chunks.size();
  return problem.chunks[isRead ? to : entry.chunk].stage;
}

std::vector<std::vector<PipelineItem>> makeTimetable(const PipelineProblem &problem,
                                                     const PipelineTable &table) {
  const PipelineRun run = simulate(problem, table);
  PipelineProgress times(problem);
  for (size_t stage = 0; stage < table.size(); ++stage)
    for (size_t index = 0; index < table[stage].size(); ++index)
      times.finish(table[stage][index], run.spans[stage][index].end);
  // What ends is in order on each stage, and behind what it has waited for.
  std::vector<PipelineEntry> made = run.order;
  std::stable_sort(made.begin(), made.end(), [&](const PipelineEntry &a, const PipelineEntry &b) {
    return times.endOf(a) < times.endOf(b);
  });
  std::vector<std::vector<PipelineItem>> items(problem.stages);
  for (const PipelineEntry &entry : made) {
    const uint32_t stage = problem.chunks[entry.chunk].stage, reader = readerOf(problem, entry);
    items[stage].push_back({PipelineItem::Compute, entry});
    if (reader == stage)
      continue;
    items[stage].push_back({PipelineItem::Send, entry});
    items[reader].push_back({PipelineItem::Receive, entry});
  }
  return items;
}

uint32_t countSlots(const std::vector<int64_t> &first, const std::vector<int64_t> &last) {
  const size_t count = first.size();
  for (uint32_t slots = 1; slots < count; ++slots) {
    bool fits = true;
    for (size_t m = 0; m < count && fits; ++m)
      for (size_t next = m + slots; next < count && fits; next += slots)
        fits = last[m] < first[m] || last[next] < first[next] || last[m] < first[next];
    if (fits)
      return slots;
  }
  return std::max<uint32_t>(1, static_cast<uint32_t>(count));
}

} // namespace ds::analysis
