//===- SimulatePipeline.cpp - A pipeline's table as it runs ----------------------------===//
#include "PipelineProgress.h"

#include <algorithm>

namespace ds::analysis {

std::vector<uint32_t> PipelineProblem::chunksOf(uint32_t stage) const {
  std::vector<uint32_t> own;
  for (uint32_t chunk = 0; chunk < chunks.size(); ++chunk)
    if (chunks[chunk].stage == stage)
      own.push_back(chunk);
  return own;
}

/// Bytes and micro-batches that are kept, from each stage's order alone.
static void countKept(const PipelineProblem &problem, const PipelineTable &table, PipelineRun &run) {
  run.slots.assign(problem.chunks.size(), 0);
  for (const std::vector<PipelineEntry> &stage : table) {
    std::vector<uint32_t> kept(problem.chunks.size(), 0);
    int64_t bytes = 0, peak = 0;
    for (const PipelineEntry &entry : stage) {
      if (entry.work == PipelineWork::Forward) {
        run.slots[entry.chunk] = std::max(run.slots[entry.chunk], ++kept[entry.chunk]);
        peak = std::max(peak, bytes += problem.chunks[entry.chunk].bytes);
      } else if (makesWeights(entry.work)) {
        --kept[entry.chunk];
        bytes -= problem.chunks[entry.chunk].bytes;
      }
    }
    run.peakBytes.push_back(peak);
  }
}

PipelineRun simulate(const PipelineProblem &problem, const PipelineTable &table) {
  PipelineRun run;
  PipelineProgress progress(problem);
  std::vector<double> free(table.size(), 0), busy(table.size(), 0);
  run.spans.resize(table.size());
  for (bool isMoving = true; isMoving;) {
    isMoving = false;
    for (size_t stage = 0; stage < table.size(); ++stage)
      while (run.spans[stage].size() < table[stage].size()) {
        const PipelineEntry &entry = table[stage][run.spans[stage].size()];
        if (progress.missingFor(entry))
          break;
        const double seconds = secondsOf(problem.chunks[entry.chunk], entry.work),
                     begin = std::max(free[stage], progress.readyAt(entry));
        free[stage] = begin + seconds;
        busy[stage] += seconds;
        progress.finish(entry, free[stage]);
        run.spans[stage].push_back({begin, free[stage]});
        run.order.push_back(entry);
        isMoving = true;
      }
  }
  run.seconds = free.empty() ? 0 : *std::max_element(free.begin(), free.end());
  for (double seconds : busy)
    run.idleSeconds.push_back(run.seconds - seconds);
  countKept(problem, table, run);
  return run;
}

double bubbleOf(const PipelineRun &run) {
  const double idle = *std::min_element(run.idleSeconds.begin(), run.idleSeconds.end());
  return idle / (run.seconds - idle);
}

} // namespace ds::analysis
