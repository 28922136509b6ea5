//===- GeneratePipeline.cpp - Pipelines by rule --------------------------------------===//
#include "PipelineProgress.h"

#include <algorithm>

namespace ds::analysis {

PipelineProblem makeEqualChunks(uint32_t stages, uint32_t chunksPerStage, uint32_t microBatches,
                                const PipelineChunk &like, bool isV) {
  PipelineProblem problem;
  problem.stages = stages;
  problem.microBatches = microBatches;
  for (uint32_t chunk = 0; chunk < stages * chunksPerStage; ++chunk) {
    PipelineChunk &made = problem.chunks.emplace_back(like);
    const uint32_t along = chunk % stages;
    made.stage = isV && chunk / stages % 2 == 1 ? stages - 1 - along : along;
  }
  return problem;
}

PipelineTable makeGPipe(const PipelineProblem &problem) {
  PipelineTable table(problem.stages);
  for (uint32_t stage = 0; stage < problem.stages; ++stage) {
    std::vector<uint32_t> chunks = problem.chunksOf(stage);
    for (uint32_t chunk : chunks)
      for (uint32_t microBatch = 0; microBatch < problem.microBatches; ++microBatch)
        table[stage].push_back({PipelineWork::Forward, chunk, microBatch});
    std::reverse(chunks.begin(), chunks.end());
    for (uint32_t chunk : chunks)
      for (uint32_t microBatch = 0; microBatch < problem.microBatches; ++microBatch)
        table[stage].push_back({PipelineWork::Backward, chunk, microBatch});
  }
  return table;
}

/// `ahead` forwards, then a backward for each forward, then what is left.
static std::vector<PipelineEntry> alternate(const std::vector<PipelineEntry> &forward,
                                            const std::vector<PipelineEntry> &backward, size_t ahead) {
  std::vector<PipelineEntry> entries(
      forward.begin(), forward.begin() + static_cast<ptrdiff_t>(std::min(ahead, forward.size())));
  for (size_t next = entries.size(), back = 0; back < backward.size(); ++back) {
    if (next < forward.size())
      entries.push_back(forward[next++]);
    entries.push_back(backward[back]);
  }
  return entries;
}

/// The works of a stage in turns of as many micro-batches as there are stages: each of its chunks runs them
/// before the next turn begins.
static std::vector<PipelineEntry> inTurns(const PipelineProblem &problem, PipelineWork work,
                                          const std::vector<uint32_t> &chunks) {
  std::vector<PipelineEntry> entries;
  for (uint32_t first = 0; first < problem.microBatches; first += problem.stages)
    for (uint32_t chunk : chunks)
      for (uint32_t microBatch = first; microBatch < std::min(first + problem.stages, problem.microBatches);
           ++microBatch)
        entries.push_back({work, chunk, microBatch});
  return entries;
}

PipelineTable makeOneForwardOneBackward(const PipelineProblem &problem) {
  PipelineTable table;
  for (uint32_t stage = 0; stage < problem.stages; ++stage)
    table.push_back(alternate(inTurns(problem, PipelineWork::Forward, {stage}),
                              inTurns(problem, PipelineWork::Backward, {stage}), problem.stages - stage - 1));
  return table;
}

/// With `more` forwards ahead of the usual.
static PipelineTable interleave(const PipelineProblem &problem, uint32_t more) {
  PipelineTable table;
  for (uint32_t stage = 0; stage < problem.stages; ++stage) {
    std::vector<uint32_t> chunks = problem.chunksOf(stage);
    const std::vector<PipelineEntry> forward = inTurns(problem, PipelineWork::Forward, chunks);
    const size_t ahead = 2 * (problem.stages - stage - 1) + (chunks.size() - 1) * problem.stages + more;
    std::reverse(chunks.begin(), chunks.end());
    table.push_back(alternate(forward, inTurns(problem, PipelineWork::Backward, chunks), ahead));
  }
  return table;
}

PipelineTable makeInterleaved(const PipelineProblem &problem) {
  PipelineProblem unlimited = problem;
  unlimited.budgetBytes.clear();
  PipelineTable table = interleave(problem, 0);
  // A last turn of fewer micro-batches can need more of them ahead; with all ahead none waits for another.
  const auto all = static_cast<uint32_t>(problem.chunks.size()) * problem.microBatches;
  for (uint32_t more = 1; more <= all && !findMistake(unlimited, table).empty(); ++more)
    table = interleave(problem, more);
  return table;
}

PipelineTable makeZeroBubble(const PipelineProblem &problem) {
  PipelineTable table = makeOneForwardOneBackward(problem);
  for (uint32_t stage = 0; stage < problem.stages; ++stage) {
    std::vector<PipelineEntry> split;
    for (const PipelineEntry &entry : table[stage]) {
      if (entry.work == PipelineWork::Forward) {
        split.push_back(entry);
        continue;
      }
      split.push_back({PipelineWork::InputGradient, stage, entry.microBatch});
      if (entry.microBatch >= stage)
        split.push_back({PipelineWork::WeightGradient, stage, entry.microBatch - stage});
    }
    for (uint32_t late = std::min(stage, problem.microBatches); late > 0; --late)
      split.push_back({PipelineWork::WeightGradient, stage, problem.microBatches - late});
    table[stage] = std::move(split);
  }
  return table;
}

} // namespace ds::analysis
