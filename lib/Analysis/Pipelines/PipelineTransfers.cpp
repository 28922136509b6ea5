//===- PipelineTransfers.cpp - In which order stages send and receive ------------------===//
//
// A transfer takes both stages: neither goes on to its next one before it is over. With all transfers in one
// order, in which each comes after what makes it and before what reads it, the first that is not over can
// always begin: what makes it waits for transfers before it alone. The order in which a simulation ends what
// is sent is such an order.
//
//===---------------------------------------------------------------------------===//
#include "PipelineProgress.h"
#include "ds/Analysis/Pipelines/PipelineTimetable.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::analysis {

using Lanes = std::vector<std::vector<PipelineTransfer>>;

static bool isForward(const PipelineTransfer &transfer) { return transfer.from < transfer.to; }

static PipelineEntry makerOf(const PipelineTransfer &transfer) {
  return {isForward(transfer) ? PipelineWork::Forward : PipelineWork::InputGradient, transfer.from,
          transfer.microBatch};
}

/// All that travels, each once.
static std::vector<PipelineTransfer> transfersOf(const PipelineProblem &problem) {
  std::vector<PipelineTransfer> all;
  for (uint32_t chunk = 0; chunk + 1 < problem.chunks.size(); ++chunk)
    if (problem.chunks[chunk].stage != problem.chunks[chunk + 1].stage)
      for (uint32_t microBatch = 0; microBatch < problem.microBatches; ++microBatch) {
        all.push_back({chunk, chunk + 1, microBatch});
        all.push_back({chunk + 1, chunk, microBatch});
      }
  return all;
}

static std::string spellTransfer(const PipelineTransfer &transfer) {
  return fmt::format("micro-batch {} from chunk {} to chunk {}", transfer.microBatch, transfer.from,
                     transfer.to);
}

namespace {
/// Stages that run their entries, and their lanes beside them.
class LaneRun {
public:
  LaneRun(const PipelineProblem &problem, const PipelineTable &table, const Lanes &lanes)
      : problem(problem), table(table), lanes(lanes), made(problem), entries(table.size(), 0),
        sent(table.size(), 0), arrived(2 * problem.chunks.size() * problem.microBatches, false) {}

  /// Runs until nothing moves; what stands still then.
  std::string run();

private:
  size_t indexOf(const PipelineTransfer &transfer) const {
    return (2 * transfer.to + isForward(transfer)) * problem.microBatches + transfer.microBatch;
  }
  bool hasArrived(const PipelineEntry &entry) const;
  bool advanceStage(uint32_t stage);
  bool advanceLane(uint32_t stage);
  bool isNext(uint32_t stage, const PipelineTransfer &transfer) const {
    return sent[stage] < lanes[stage].size() && lanes[stage][sent[stage]] == transfer;
  }

  const PipelineProblem &problem;
  const PipelineTable &table;
  const Lanes &lanes;
  PipelineProgress made;
  std::vector<size_t> entries, sent; ///< how far each stage and its lane have come
  std::vector<bool> arrived;
};
} // namespace

/// Whether what `entry` reads from other stages is here.
bool LaneRun::hasArrived(const PipelineEntry &entry) const {
  for (const PipelineEntry &read : made.readBy(entry))
    if (problem.chunks[read.chunk].stage != problem.chunks[entry.chunk].stage &&
        !arrived[indexOf({read.chunk, entry.chunk, entry.microBatch})])
      return false;
  return true;
}

bool LaneRun::advanceStage(uint32_t stage) {
  const size_t before = entries[stage];
  for (; entries[stage] < table[stage].size(); ++entries[stage]) {
    const PipelineEntry &entry = table[stage][entries[stage]];
    if (made.missingFor(entry) || !hasArrived(entry))
      break;
    made.finish(entry, 0);
  }
  return entries[stage] > before;
}

/// The next transfers of `stage`'s lane that it sends.
bool LaneRun::advanceLane(uint32_t stage) {
  const size_t before = sent[stage];
  while (sent[stage] < lanes[stage].size()) {
    const PipelineTransfer &transfer = lanes[stage][sent[stage]];
    const uint32_t to = problem.chunks[transfer.to].stage;
    const PipelineEntry maker = makerOf(transfer);
    if (problem.chunks[transfer.from].stage != stage || !isNext(to, transfer) ||
        !made.isDone(maker.work, maker.chunk, maker.microBatch))
      break;
    arrived[indexOf(transfer)] = true;
    ++sent[stage];
    ++sent[to];
  }
  return sent[stage] > before;
}

std::string LaneRun::run() {
  for (bool isMoving = true; isMoving;) {
    isMoving = false;
    for (uint32_t stage = 0; stage < table.size(); ++stage) {
      isMoving |= advanceStage(stage);
      isMoving |= advanceLane(stage);
    }
  }
  for (uint32_t stage = 0; stage < table.size(); ++stage)
    if (sent[stage] < lanes[stage].size())
      return fmt::format(
          "transfer {} of stage {}, {}, never comes to its turn on both stages, or is not made", sent[stage],
          stage, spellTransfer(lanes[stage][sent[stage]]));
  return "";
}

Lanes orderTransfers(const PipelineProblem &problem, const PipelineTable &table) {
  const std::vector<std::vector<PipelineItem>> items = makeTimetable(problem, table);
  Lanes lanes(problem.stages);
  for (size_t stage = 0; stage < items.size(); ++stage)
    for (const auto &[kind, entry] : items[stage])
      if (kind != PipelineItem::Compute) {
        const bool goesForth = entry.work == PipelineWork::Forward;
        lanes[stage].push_back(
            {entry.chunk, goesForth ? entry.chunk + 1 : entry.chunk - 1, entry.microBatch});
      }
  return lanes;
}

std::string findMistake(const PipelineProblem &problem, const PipelineTable &table, const Lanes &transfers) {
  if (transfers.size() != problem.stages)
    return fmt::format("has transfers of {} stages, but the pipeline has {}", transfers.size(),
                       problem.stages);
  std::vector<PipelineTransfer> missing[2] = {transfersOf(problem), transfersOf(problem)};
  for (uint32_t stage = 0; stage < problem.stages; ++stage)
    for (const PipelineTransfer &transfer : transfers[stage]) {
      const bool isKnown = transfer.from < problem.chunks.size() && transfer.to < problem.chunks.size();
      const bool sends = isKnown && problem.chunks[transfer.from].stage == stage;
      auto &left = missing[sends];
      const auto found = std::find(left.begin(), left.end(), transfer);
      if (!isKnown || found == left.end() || (!sends && problem.chunks[transfer.to].stage != stage))
        return fmt::format("stage {} has a transfer of {} twice, or has no part in it", stage,
                           spellTransfer(transfer));
      left.erase(found);
    }
  for (const auto &left : missing)
    if (!left.empty())
      return fmt::format("has no transfer of {} on one of its stages", spellTransfer(left.front()));
  return LaneRun(problem, table, transfers).run();
}

} // namespace ds::analysis
