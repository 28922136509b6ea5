//===- PipelineProgress.cpp - How far the stages of a pipeline have come -------------===//
#include "PipelineProgress.h"

#include <algorithm>

namespace ds::analysis {

double secondsOf(const PipelineChunk &chunk, PipelineWork work) {
  if (work == PipelineWork::Forward)
    return chunk.forward;
  return (makesInputs(work) ? chunk.inputGradient : 0) + (makesWeights(work) ? chunk.weightGradient : 0);
}

PipelineProgress::PipelineProgress(const PipelineProblem &problem)
    : problem(problem), ends(3 * problem.chunks.size() * problem.microBatches, -1) {}

size_t PipelineProgress::indexOf(PipelineWork work, uint32_t chunk, uint32_t microBatch) const {
  const size_t part = work == PipelineWork::Forward ? 0 : makesInputs(work) ? 1 : 2;
  return (part * problem.chunks.size() + chunk) * problem.microBatches + microBatch;
}

std::vector<PipelineEntry> PipelineProgress::readBy(const PipelineEntry &entry) const {
  const auto [work, chunk, microBatch] = entry;
  std::vector<PipelineEntry> read;
  if (work == PipelineWork::Forward && chunk > 0)
    read.push_back({PipelineWork::Forward, chunk - 1, microBatch});
  if (makesInputs(work))
    read.push_back({PipelineWork::Forward, chunk, microBatch});
  if (makesInputs(work) && chunk + 1 < problem.chunks.size())
    read.push_back({PipelineWork::InputGradient, chunk + 1, microBatch});
  if (work == PipelineWork::WeightGradient)
    read.push_back({PipelineWork::InputGradient, chunk, microBatch});
  return read;
}

std::optional<PipelineEntry> PipelineProgress::missingFor(const PipelineEntry &entry) const {
  for (const PipelineEntry &read : readBy(entry))
    if (!isDone(read.work, read.chunk, read.microBatch))
      return read;
  return std::nullopt;
}

double PipelineProgress::readyAt(const PipelineEntry &entry) const {
  double ready = 0;
  for (const PipelineEntry &read : readBy(entry)) {
    const bool travels = problem.chunks[read.chunk].stage != problem.chunks[entry.chunk].stage;
    ready =
        std::max(ready, at(read.work, read.chunk, read.microBatch) + (travels ? problem.transferSeconds : 0));
  }
  return ready;
}

void PipelineProgress::finish(const PipelineEntry &entry, double end) {
  ends[indexOf(entry.work, entry.chunk, entry.microBatch)] = end;
  if (entry.work == PipelineWork::Backward)
    ends[indexOf(PipelineWork::WeightGradient, entry.chunk, entry.microBatch)] = end;
}

} // namespace ds::analysis
